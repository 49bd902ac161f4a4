"""Folders for staged rows: gone with their act, swept when it was killed, left alone while it lives."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hybrid.lake.staging import bytes_in, staging_folder
from hybrid.runtime.durable import write_text

pytestmark = pytest.mark.process

OWNER = """
import sys, time
from pathlib import Path
from hybrid.lake.staging import staging_folder
with staging_folder(Path(sys.argv[1])) as path:
    path.mkdir()
    (path / "rows.parquet").touch()
    print("staged", flush=True)
    time.sleep(60)
"""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir()}


@pytest.fixture
def other(tmp_path: Path):
    """Another process that stages `other`."""
    command = [sys.executable, "-c", OWNER, str(tmp_path / "other")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "staged\n"
        yield process
        process.kill()


def test_it_is_removed_at_the_end(tmp_path):
    with staging_folder(tmp_path / "staging" / "move-1") as path:
        assert not path.exists(), "Spark makes it"
        path.mkdir()
    with pytest.raises(ValueError), staging_folder(tmp_path / "staging" / "move-2") as path:
        path.mkdir()
        raise ValueError
    assert names(tmp_path / "staging") == set()
    assert not list((tmp_path / "staging").glob("*.owned"))


def test_what_a_killed_act_left_is_swept_by_the_next(tmp_path, other):
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    (tmp_path / "orphans-last-write").mkdir()
    assert names(tmp_path) == {"other", "orphans-last-write"}
    with staging_folder(tmp_path / "mine") as path:
        path.mkdir()
        assert names(tmp_path) == {"mine"}


def test_an_act_that_goes_on_keeps_its_rows(tmp_path, other):
    with staging_folder(tmp_path / "mine"), staging_folder(tmp_path / "mine-too"):
        assert names(tmp_path) == {"other"}
        assert (tmp_path / "other" / "rows.parquet").exists()


def test_a_file_that_several_put_is_always_whole(tmp_path: Path) -> None:
    path, texts = tmp_path / "wanted.json", [str(number) * 5000 for number in range(4)]
    writers = [threading.Thread(target=lambda text=text: [write_text(path, text) for _ in range(50)]) for text in texts]
    write_text(path, texts[0])
    for one in writers:
        one.start()
    while any(one.is_alive() for one in writers):
        assert path.read_text() in texts
    assert os.listdir(tmp_path) == ["wanted.json"]
    assert bytes_in(tmp_path) == 5000 and bytes_in(tmp_path / "nothing") == 0
