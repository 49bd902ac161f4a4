"""Files of JSON lines that several processes append to and rotate, and that are read back by time.

`cli.log` is the newest, then `cli.log.1` and so on, older by number.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hybrid.runtime import durable
from hybrid.runtime.file_lock import file_lock, try_lock

_DAY_S = 86_400


@dataclass(frozen=True)
class Rotation:
    """When a file is rotated, and which older files are kept. None: no such bound.

    `size_max` is of the newest file, `bytes_max` of all files together, in bytes. `age_max_s` counts from a file's last
    line; with it a file has the lines of one day (UTC).
    """

    size_max: int
    files_max: int | None = None
    bytes_max: int | None = None
    age_max_s: float | None = None

    def is_due(self, status: os.stat_result, length: int) -> bool:
        """Whether a file is rotated before `length` bytes are appended to it."""
        if not status.st_size:
            return False
        return status.st_size + length > self.size_max or (self.age_max_s is not None and _day(status) != _today())

    def keeps(self, number: int, size: int, age_s: float) -> bool:
        """Whether the older file `number` is kept; `size` is that of it and all newer ones."""
        return (
            (self.files_max is None or number <= self.files_max)
            and (self.bytes_max is None or size <= self.bytes_max)
            and (self.age_max_s is None or age_s <= self.age_max_s)
        )


class RotatedFile:
    """A file that several processes append to and rotate. A line is a single write."""

    def __init__(self, path: Path, rotation: Rotation) -> None:
        self.path, self._rotation = path, rotation
        self._descriptor: int | None = None
        self._inode: int | None = None

    def append(self, lines: bytes) -> int:
        """Write complete lines; returns how many bytes were written. OSError when none can be."""
        status = self._there()
        if status is not None and self._rotation.is_due(status, len(lines)):
            self._rotate(len(lines))
            status = self._there()
        if self._descriptor is None or status is None or status.st_ino != self._inode:
            self._open()
        assert self._descriptor is not None
        written = os.write(self._descriptor, lines)
        if written < len(lines):
            self.close()  # the disk is full; reopening the file terminates the torn line
        return written

    def remove_old(self) -> None:
        """Remove the files that are too old, also when nothing is appended any more."""
        with suppress(OSError), _gate(self.path).open("w") as gate:
            status = self._there()
            if status is None or not try_lock(gate):
                return
            age_max_s = self._rotation.age_max_s
            if age_max_s is not None and time.time() - status.st_mtime > age_max_s:
                self._shift()
            self._remove_surplus()

    def close(self) -> None:
        """Close the descriptor; the next line opens the file again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _there(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except FileNotFoundError:
            return None

    def _open(self) -> None:
        self.close()
        durable.make_private(self.path.parent.parent)
        durable.make_private(self.path.parent)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        status = os.fstat(self._descriptor)
        self._inode = status.st_ino
        if status.st_size and os.pread(self._descriptor, 1, status.st_size - 1) != b"\n":
            os.write(self._descriptor, b"\n")  # the last writer died, or the disk was full

    def _rotate(self, length: int) -> None:
        """Rotate the files, unless another process does or did so; our line then follows."""
        with _gate(self.path).open("w") as gate:
            if not try_lock(gate):
                return
            status = self._there()
            if status is not None and self._rotation.is_due(status, length):
                self._shift()
                self._remove_surplus()

    def _shift(self) -> None:
        """Number each file one higher."""
        for number, _ in reversed(_older_files(self.path)):
            with suppress(FileNotFoundError):
                os.replace(_rotated(self.path, number), _rotated(self.path, number + 1))
        with suppress(FileNotFoundError):
            os.replace(self.path, _rotated(self.path, 1))

    def _remove_surplus(self) -> None:
        size, now = self._rotation.size_max, time.time()  # the newest file may become as large
        for number, status in _older_files(self.path):
            size += status.st_size
            if not self._rotation.keeps(number, size, now - status.st_mtime):
                _rotated(self.path, number).unlink(missing_ok=True)


@contextmanager
def rotation_paused(path: Path) -> Iterator[None]:
    """No process rotates the file within the block; lines are appended all the same."""
    with file_lock(_gate(path)):
        yield


class RotatedReader:
    """A rotated file as its records, and how far it was read: by inode, because files are renamed meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[int, int] = {}

    def unread(self) -> Iterator[dict[str, Any]]:
        """The unread records, older files first. An unterminated line is left for the next call."""
        with ExitStack() as opened:
            files = self._open(opened)
            self._read = {inode: position for inode, position in self._read.items() if inode in files}
            for inode, file in reversed(files.items()):
                yield from self._records(file, inode)

    def newest_first(self) -> Iterator[dict[str, Any]]:
        """All records, the last line first. One file is in memory at a time."""
        with ExitStack() as opened:
            for file in self._open(opened).values():
                for line in reversed(file.read().splitlines(keepends=True)):
                    record = _record(line) if line.endswith(b"\n") else None
                    if record is not None:
                        yield record

    def _open(self, opened: ExitStack) -> dict[int, BinaryIO]:
        """The files by inode, newest first. A file that is renamed meanwhile is found twice, but never missed."""
        oldest = max((number for number, _ in _older_files(self._path)), default=0)
        files: dict[int, BinaryIO] = {}
        for path in [self._path, *(_rotated(self._path, number) for number in range(1, oldest + 2))]:
            with suppress(OSError):  # gone, or not readable for us
                file = opened.enter_context(path.open("rb"))
                files.setdefault(os.fstat(file.fileno()).st_ino, file)
        return files

    def _records(self, file: BinaryIO, inode: int) -> Iterator[dict[str, Any]]:
        position = self._read.get(inode, 0)
        if position > os.fstat(file.fileno()).st_size:  # an inode may be reused for another file
            position = 0
        file.seek(position)
        for line in file:
            if not line.endswith(b"\n"):
                return
            position += len(line)
            self._read[inode] = position
            record = _record(line)
            if record is not None:
                yield record


def _gate(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _older_files(path: Path) -> list[tuple[int, os.stat_result]]:
    """The rotated files that exist, newest first, each with its number."""
    found = []
    for older in path.parent.glob(f"{path.name}.*"):
        number = older.name.rpartition(".")[2]
        if number.isascii() and number.isdigit():
            with suppress(FileNotFoundError):
                found.append((int(number), older.stat()))
    return sorted(found, key=lambda file: file[0])


def _day(status: os.stat_result) -> int:
    return int(status.st_mtime // _DAY_S)


def _today() -> int:
    return int(time.time() // _DAY_S)


def _record(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None for a torn line, or one written by another program."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("ts"), str) else None
