"""The pipeline gives way while nothing is late, and has its full priority while something is."""

import builtins
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hybrid.serve import priority
from hybrid.serve.priority import FIXED_MAX, Priority, Rounds, can_raise_again, set_session_niceness


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError, ProcessLookupError])
def test_a_system_that_refuses_is_left_as_it_is(error: type[OSError], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(priority, "open", refuse, raising=False)
    set_session_niceness(7, 10)


def test_a_niceness_that_another_change_of_the_machine_holds_up_is_set_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def busy_twice(path: str, *rest: Any, **more: Any) -> Any:
        tries.append(path)
        if len(tries) < 3:
            raise BlockingIOError("EAGAIN")
        return builtins.open(path, *rest, **more)

    (tmp_path / "7").mkdir()
    monkeypatch.setattr(priority, "open", busy_twice, raising=False)
    set_session_niceness(7, 10, f"{tmp_path}/{{}}/autogroup", pause_s=0.0)
    assert (tmp_path / "7" / "autogroup").read_text() == "10" and len(tries) == 3


def _sessions(folder: Path, *leaders: int) -> list[int]:
    for leader in leaders:
        (folder / str(leader)).mkdir(parents=True, exist_ok=True)
    return list(leaders)


def test_it_follows_need_and_lowers_itself_after_a_calm_time_only(tmp_path: Path) -> None:
    niceness = Priority(10, lambda: _sessions(tmp_path, 7), tmp_path, can_raise=True)
    needs = [(False, 0.0), (False, 1.9), (False, 2.0), (True, 2.1), (False, 4.0), (False, 4.2), (True, 9.0)]
    assert [niceness.follow(is_late, now) for is_late, now in needs] == [0, 0, 10, 0, 0, 10, 0]
    assert (tmp_path / "7" / "autogroup").read_text() == str(os.getpriority(os.PRIO_PROCESS, 0))
    assert niceness.follow(False, 11.0) == 10
    assert (tmp_path / "7" / "autogroup").read_text() == str(os.getpriority(os.PRIO_PROCESS, 0) + 10)
    niceness.restore()
    assert (tmp_path / "7" / "autogroup").read_text() == str(os.getpriority(os.PRIO_PROCESS, 0))


def test_without_a_niceness_it_never_gives_way(tmp_path: Path) -> None:
    niceness = Priority(0, list, tmp_path, can_raise=True)
    assert [niceness.follow(False, now) for now in (0.0, 5.0, 10.0)] == [0, 0, 0]


@pytest.mark.process
@pytest.mark.skipif(not can_raise_again(), reason="niceness cannot be raised again without a privilege")
def test_all_threads_of_a_session_and_of_this_process_follow() -> None:
    code = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); print(1, flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as other:
        end = threading.Event()
        own = threading.Thread(target=end.wait, args=(60,))
        own.start()
        base = os.getpriority(os.PRIO_PROCESS, 0)
        follower = Priority(3, lambda: [other.pid])
        try:
            assert other.stdout is not None and other.stdout.readline()
            assert follower.follow(False, 0.0) == 0 and follower.follow(False, 5.0) == 3
            threads = [own.native_id or 0, *(int(task.name) for task in Path(f"/proc/{other.pid}/task").iterdir())]
            assert len(threads) == 3
            assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {base + 3}
            follower.restore()
            assert {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads} == {base}
        finally:
            follower.restore()
            end.set()
            other.kill()


@pytest.mark.process
def test_where_niceness_cannot_be_raised_again_threads_keep_a_small_one(tmp_path: Path) -> None:
    code = (
        "import os; from hybrid.serve.priority import Priority; before = os.nice(0)\n"
        "priority = Priority(10, list, can_raise=False); first = os.nice(0) - before\n"
        "levels = [priority.follow(False, now) for now in (0.0, 5.0)]; print(first, os.nice(0) - before, levels)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split(None, 2) == [str(FIXED_MAX), str(FIXED_MAX), "[0, 10]\n"]


def test_a_round_is_late_when_it_is_the_first_or_leaves_a_rest_or_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(priority.time, "monotonic", lambda: now[0])
    rounds = Rounds()
    assert not rounds.is_late  # not begun: its table may be paused
    with rounds.one():
        assert rounds.is_late
    assert not rounds.is_late
    with rounds.one():
        assert not rounds.is_late
        now[0] = 1.1
        assert rounds.is_late
    rounds.has_rest = True
    assert rounds.is_late
    with pytest.raises(OSError), rounds.one():
        raise OSError
    assert rounds.is_late
    rounds.has_rest = False
    assert not rounds.is_late
