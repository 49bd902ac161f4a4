"""Files that several processes append to: rotated by size and day, and removed by number, bytes and age."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from hybrid.runtime.rotated_file import RotatedFile, RotatedReader, Rotation, rotation_paused

DAY_S = 86_400


def line(number: int) -> bytes:
    return f'{{"ts": "2026", "n": {number}}}\n'.encode()


def numbers(path: Path) -> list[int]:
    return [record["n"] for record in RotatedReader(path).newest_first()]


def age(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * DAY_S,) * 2)


def test_it_is_read_from_its_newest_line_back(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.log"
    file = RotatedFile(path, Rotation(size_max=100, files_max=9))
    for number in range(20):
        assert file.append(line(number)) == len(line(number))
    with path.open("ab") as torn:
        torn.write(b'no record\n{"ts": "2026", "n": 99')
    assert len(list(path.parent.glob("a.log.*"))) > 2
    assert numbers(path) == list(range(19, -1, -1))


@pytest.mark.slow
def test_all_files_together_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.log"
    file = RotatedFile(path, Rotation(size_max=200, bytes_max=1000))
    for number in range(500):
        file.append(line(number))
        size = sum(one.stat().st_size for one in path.parent.glob("a.log*"))
        assert size <= 1000
    assert size > 700 and numbers(path)[0] == 499


def test_a_file_has_one_day_and_goes_when_it_is_too_old(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.log"
    file = RotatedFile(path, Rotation(size_max=10_000, age_max_s=30 * DAY_S))
    file.append(line(1))
    age(path, 29)
    file.append(line(2))
    file.append(line(3))
    assert sorted(one.name for one in path.parent.glob("a.log*")) == ["a.log", "a.log.1"]
    assert numbers(path) == [3, 2, 1]
    age(path.with_name("a.log.1"), 31)
    file.remove_old()
    assert numbers(path) == [3, 2]
    age(path, 31)
    file.remove_old()
    assert numbers(path) == [] and list(path.parent.glob("a.log*")) == []
    file.append(line(4))
    assert numbers(path) == [4]


def test_nothing_is_removed_where_nothing_is(tmp_path: Path) -> None:
    RotatedFile(tmp_path / "none" / "a.log", Rotation(100, age_max_s=1.0)).remove_old()
    assert not (tmp_path / "none").exists()


def test_a_pause_keeps_the_names_and_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.log"
    file = RotatedFile(path, Rotation(size_max=60, files_max=9))
    file.append(line(0))
    with rotation_paused(path):
        for number in range(1, 9):
            file.append(line(number))
        assert list(path.parent.glob("a.log.*")) == []
    file.append(line(9))
    assert numbers(path) == list(range(9, -1, -1)) and path.with_name("a.log.1").exists()


@pytest.mark.slow
def test_several_writers_rotate_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.log"

    def write(first: int) -> None:
        own = RotatedFile(path, Rotation(size_max=500, files_max=1000))
        for number in range(first, first + 200):
            own.append(line(number))

    writers = [threading.Thread(target=write, args=(1000 * writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(numbers(path)) == sorted(1000 * writer + number for writer in range(4) for number in range(200))


def test_records_are_json_objects_with_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in ([1], {"n": 1}, {"ts": 5}, {"ts": "2026", "n": 2})))
    assert numbers(path) == [2]
