"""Tailed files: how far each growing file was read, and its complete lines after that.

A digest identifies what was read of a file. A file that is shorter now, or begins differently, is an error. A line
counts once it is terminated, so that no line is read in two parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from os import stat_result
from pathlib import Path
from typing import IO

from hybrid.errors import DataError
from hybrid.files.limits import DEFAULT_LIMITS
from hybrid.files.records import Shape, Slice

_EMPTY = hashlib.sha256().hexdigest()
_BLOCK = 1024 * 1024
NOTHING_MORE = "Nothing more was loaded."


@dataclass(frozen=True)
class ReadUpTo:
    """The read position in a file: its first `bytes`, which are `lines` lines and have this digest.

    `modified_ns` and `inode` are the file's own at that moment; a renamed file keeps its inode.
    """

    bytes: int = 0
    lines: int = 0
    sha256: str = _EMPTY
    modified_ns: int = 0
    inode: int = 0


@dataclass(frozen=True)
class TailedFile:
    """Complete lines of a file after its first `start` bytes; with them it is read up to `end`."""

    path: Path
    start: int
    end: ReadUpTo
    slices: tuple[Slice, ...] = field(repr=False)

    @property
    def bytes(self) -> int:
        """The number of bytes of the lines."""
        return self.end.bytes - self.start

    @property
    def modified_ns(self) -> int:
        """The file's modification time when it was read."""
        return self.end.modified_ns

    def check_unchanged(self) -> None:
        """DataError when the file no longer begins with what was read; it may have more lines."""
        check_begins(self.path, stat_of(self.path), self.end)


def tail_file(
    path: Path, known: ReadUpTo, shape: Shape, slice_bytes: int = DEFAULT_LIMITS.slice_bytes
) -> TailedFile | None:
    """The complete lines of `path` after `known`; None without any.

    Raises DataError when the file does not begin with what was read of it.
    """
    now = stat_of(path)
    if is_as_known(now, known):
        return None
    check_begins(path, now, known)
    digest = _hashed(path, known.bytes, now.st_ino, now.st_size, now.st_mtime_ns).copy()
    at, line = known.bytes, known.lines
    for piece in _pieces(path, at, now.st_size, slice_bytes):
        digest.update(piece)
        at, line = at + len(piece), line + piece.count(b"\n")
    if at == known.bytes:
        return None
    end = ReadUpTo(at, line, digest.hexdigest(), now.st_mtime_ns, now.st_ino)
    if shape is Shape.CSV:  # where a row begins depends on the row before it
        slices: tuple[Slice, ...] = (Slice(path, shape, known.lines, known.bytes, at - known.bytes),)
    else:
        slices = tuple(_slices(path, known, at, shape, slice_bytes))
    return TailedFile(path, known.bytes, end, slices)


def is_as_known(now: stat_result, known: ReadUpTo) -> bool:
    """Whether a file is unchanged since it was read to its end."""
    return (now.st_size, now.st_mtime_ns, now.st_ino) == (known.bytes, known.modified_ns, known.inode)


def check_begins(path: Path, now: stat_result, known: ReadUpTo) -> None:
    """DataError unless a file begins with what was read of it."""
    if is_as_known(now, known):
        return
    if now.st_size < known.bytes:
        raise DataError(
            f"{path} has {now.st_size} bytes, and {known.bytes} were read of it: it was cut. {NOTHING_MORE}",
            hint="Put the old one back. A file that is full may be renamed, within what the connector reads.",
        )
    if not _begins(path, now, known):
        raise DataError(
            f"{path} does not begin with the {known.bytes} bytes that were read of it: it was changed, or is another "
            f"file. {NOTHING_MORE}",
            hint="Put the old one back. Corrections of what was read are jobs: hybrid job run",
        )


def continues(path: Path, now: stat_result, known: ReadUpTo) -> bool:
    """Whether a file begins with what was read of another; it may have more lines."""
    return now.st_size >= known.bytes and _begins(path, now, known)


def read_whole(path: Path, now: stat_result) -> ReadUpTo:
    """The read position at the end of a file that was read as a whole."""
    digest = _hashed(path, now.st_size, now.st_ino, now.st_size, now.st_mtime_ns)
    return ReadUpTo(now.st_size, 0, digest.hexdigest(), now.st_mtime_ns, now.st_ino)


def stat_of(path: Path) -> stat_result:
    """The status of a file. DataError when it cannot be read."""
    try:
        return path.stat()
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> DataError:
    """The error for a file that cannot be read."""
    return DataError(f"{path} cannot be read: {error.strerror or error}. {NOTHING_MORE}")


def _begins(path: Path, now: stat_result, known: ReadUpTo) -> bool:
    digest = _hashed(path, known.bytes, now.st_ino, now.st_size, now.st_mtime_ns)
    return digest.hexdigest() == known.sha256


@lru_cache(maxsize=1024)
def _hashed(path: Path, count: int, inode: int, size: int, modified_ns: int) -> hashlib._Hash:
    """The digest of a file's first bytes, computed once while the file is unchanged."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while count > 0 and (block := file.read(min(_BLOCK, count))):
                digest.update(block)
                count -= len(block)
    except OSError as error:
        raise unreadable(path, error) from error
    return digest


def _slices(path: Path, known: ReadUpTo, end: int, shape: Shape, slice_bytes: int) -> Iterator[Slice]:
    start, line = known.bytes, known.lines
    for piece in _pieces(path, start, end, slice_bytes):
        yield Slice(path, shape, line, start, len(piece))
        start, line = start + len(piece), line + piece.count(b"\n")


def _pieces(path: Path, at: int, end: int, slice_bytes: int) -> Iterator[bytes]:
    """The complete lines of a byte range, about `slice_bytes` at a time."""
    try:
        with path.open("rb") as file:
            file.seek(at)
            while piece := _whole_lines(file, end - file.tell(), slice_bytes):
                yield piece
    except OSError as error:
        raise unreadable(path, error) from error


def _whole_lines(file: IO[bytes], left: int, slice_bytes: int) -> bytes:
    """About `slice_bytes` out of the next `left` bytes; empty when no line ends there."""
    piece = file.read(min(slice_bytes, left))
    if len(piece) < left and not piece.endswith(b"\n"):
        piece += file.readline(left - len(piece))
    return piece[: piece.rfind(b"\n") + 1]
