"""Files that lines are added to: how far each was read, and the whole lines that have come since.

What was read of a file is known by its digest: a file that is shorter by now, or begins otherwise, is an error. A line
counts once its end is there, so that none is read in two parts.
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
from hybrid.files.inputs import SLICE_BYTES
from hybrid.files.records import Shape, Slice

_EMPTY = hashlib.sha256().hexdigest()
_BLOCK = 1024 * 1024
NOTHING_MORE = "Nothing more was loaded."


@dataclass(frozen=True)
class ReadUpTo:
    """How far a file was read: its first `bytes`, which are `lines` lines and have this digest.

    `modified_ns` and `inode` are the file's own at that moment; a file that is renamed keeps its inode.
    """

    bytes: int = 0
    lines: int = 0
    sha256: str = _EMPTY
    modified_ns: int = 0
    inode: int = 0


@dataclass(frozen=True)
class TailedFile:
    """Whole lines of a file behind its first `start` bytes; with them it is read up to `end`."""

    path: Path
    start: int
    end: ReadUpTo
    slices: tuple[Slice, ...] = field(repr=False)

    @property
    def bytes(self) -> int:
        """How many bytes the lines have."""
        return self.end.bytes - self.start

    @property
    def modified_ns(self) -> int:
        """When the file was changed last, as far as it is read."""
        return self.end.modified_ns

    def check_unchanged(self) -> None:
        """DataError when what was read is not in the file any more; lines may have come."""
        check_begins(self.path, stat_of(self.path), self.end)


def tail_file(path: Path, known: ReadUpTo, shape: Shape) -> TailedFile | None:
    """The whole lines that `path` has behind what is `known`; None without any.

    DataError when the file does not begin with what is known of it.
    """
    now = stat_of(path)
    if is_as_known(now, known):
        return None
    check_begins(path, now, known)
    digest = _hashed(path, known.bytes, now.st_ino, now.st_size, now.st_mtime_ns).copy()
    at, line = known.bytes, known.lines
    for piece in _pieces(path, at, now.st_size):
        digest.update(piece)
        at, line = at + len(piece), line + piece.count(b"\n")
    if at == known.bytes:
        return None
    end = ReadUpTo(at, line, digest.hexdigest(), now.st_mtime_ns, now.st_ino)
    return TailedFile(path, known.bytes, end, _slices(path, known.bytes, known.lines, at, shape))


def is_as_known(now: stat_result, known: ReadUpTo) -> bool:
    """Whether nothing has happened to a file since it was read to its end."""
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
    """Whether a file begins with what was read of one; lines may have come."""
    return now.st_size >= known.bytes and _begins(path, now, known)


def read_whole(path: Path, now: stat_result) -> ReadUpTo:
    """What is known of a file that was read as a whole."""
    digest = _hashed(path, now.st_size, now.st_ino, now.st_size, now.st_mtime_ns)
    return ReadUpTo(now.st_size, 0, digest.hexdigest(), now.st_mtime_ns, now.st_ino)


def stat_of(path: Path) -> stat_result:
    """A file as it is now. DataError when nobody can say."""
    try:
        return path.stat()
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> DataError:
    """The error for a file that cannot be read."""
    return DataError(f"{path} cannot be read: {error.strerror or error}. {NOTHING_MORE}")


def _begins(path: Path, now: stat_result, known: ReadUpTo) -> bool:
    found = _hashed(path, known.bytes, now.st_ino, now.st_size, now.st_mtime_ns)
    return found.hexdigest() == known.sha256


@lru_cache(maxsize=1024)
def _hashed(path: Path, count: int, inode: int, size: int, modified_ns: int) -> hashlib._Hash:
    """The digest of a file's first bytes, taken once as long as the file stays as it is."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while count > 0 and (block := file.read(min(_BLOCK, count))):
                digest.update(block)
                count -= len(block)
    except OSError as error:
        raise unreadable(path, error) from error
    return digest


def _slices(path: Path, start: int, line: int, end: int, shape: Shape) -> tuple[Slice, ...]:
    if shape is Shape.CSV:  # a row is told from the one before it
        return (Slice(path, shape, line, start, end - start),)
    slices: list[Slice] = []
    for piece in _pieces(path, start, end):
        slices.append(Slice(path, shape, line, start, len(piece)))
        start, line = start + len(piece), line + piece.count(b"\n")
    return tuple(slices)


def _pieces(path: Path, at: int, end: int) -> Iterator[bytes]:
    """The whole lines of a stretch, about SLICE_BYTES at a time."""
    try:
        with path.open("rb") as file:
            file.seek(at)
            while piece := _whole_lines(file, end - file.tell()):
                yield piece
    except OSError as error:
        raise unreadable(path, error) from error


def _whole_lines(file: IO[bytes], left: int) -> bytes:
    """About SLICE_BYTES out of the next `left` bytes; empty when no line has its end there."""
    piece = file.read(min(SLICE_BYTES, left))
    if len(piece) < left and not piece.endswith(b"\n"):
        piece += file.readline(left - len(piece))
    return piece[: piece.rfind(b"\n") + 1]
