"""Locks on files: who waits, who gives up, and who sees them."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hybrid.runtime.file_lock import file_lock, is_locked, try_lock

HOLDER = """
import sys, time
from pathlib import Path
from hybrid.runtime.file_lock import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_waited_for_and_given_up(tmp_path: Path) -> None:
    waited: list[str] = []
    with (tmp_path / "lock").open("a") as ours, (tmp_path / "lock").open("a") as theirs:
        assert try_lock(theirs, waiting=lambda: waited.append("theirs")) and not waited
        assert not try_lock(ours, 0.12, waiting=lambda: waited.append("ours")) and waited == ["ours"]
        assert not try_lock(ours, 60.0, gives_up=lambda: True)
        threading.Timer(0.1, theirs.close).start()
        assert try_lock(ours, 5.0)


@pytest.mark.process
def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        assert is_locked(path)
        said: list[str] = []
        threading.Timer(0.2, other.kill).start()
        with file_lock(path, lambda: said.append("waits")):
            assert said == ["waits"] and is_locked(path)
        assert not is_locked(path)


def test_a_lock_is_private_and_a_folder_can_be_locked(tmp_path: Path) -> None:
    with file_lock(tmp_path / "lock"), file_lock(tmp_path):
        assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600


def test_those_who_ask_at_once_do_not_see_each_other(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    answers: list[bool] = []
    threads = [
        threading.Thread(target=lambda: answers.extend(is_locked(tmp_path / "lock") for _ in range(200)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 800 and not any(answers)
