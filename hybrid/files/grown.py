"""Files that lines are added to: how far each was read, and the whole lines that have come since.

What was read of a file is known by its digest: a file that is shorter by now, or begins otherwise, is an error. A line
counts once its end is there, so that none is read in two parts.

A file that is renamed is known by its inode, and one that was compressed by what it unpacks to. A name tells nothing:
rotation gives it to another file. So one case is ambiguous: a new file that got the inode of one that is gone, and
begins with all that was read of that, is taken for it, under another name.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import stat_result
from pathlib import Path
from typing import IO

from hybrid.errors import DataError
from hybrid.files.inputs import SLICE_BYTES
from hybrid.files.records import Shape, Slice, is_gzip

_EMPTY = hashlib.sha256().hexdigest()
_BLOCK = 1024 * 1024
_NOTHING_MORE = "Nothing more was loaded."


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
class Growth:
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
        check_begins(self.path, _stat(self.path), self.end)


def grown(path: Path, known: ReadUpTo, shape: Shape) -> Growth | None:
    """The whole lines that `path` has behind what is `known`; None without any.

    DataError when the file does not begin with what is known of it.
    """
    now = _stat(path)
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
    return Growth(path, known.bytes, end, _slices(path, known.bytes, known.lines, at, shape))


def is_as_known(now: stat_result, known: ReadUpTo) -> bool:
    """Whether nothing has happened to a file since it was read to its end."""
    return (now.st_size, now.st_mtime_ns, now.st_ino) == (known.bytes, known.modified_ns, known.inode)


def check_begins(path: Path, now: stat_result, known: ReadUpTo) -> None:
    """DataError unless a file begins with what was read of it."""
    if is_as_known(now, known):
        return
    if now.st_size < known.bytes:
        raise DataError(
            f"{path} has {now.st_size} bytes, and {known.bytes} were read of it: it was cut. {_NOTHING_MORE}",
            hint="Put the old one back. A file that is full may be renamed, within what the connector reads.",
        )
    if not _begins(path, now, known):
        raise DataError(
            f"{path} does not begin with the {known.bytes} bytes that were read of it: it was changed, or is another "
            f"file. {_NOTHING_MORE}",
            hint="Put the old one back. Corrections of what was read are jobs: hybrid job run",
        )


def by_new_names(paths: Iterable[Path], known: Mapping[str, ReadUpTo]) -> dict[str, ReadUpTo]:
    """What is known of files by the names that they have now: one that was renamed is read on under its new name.

    So is one that lies in the place of an equal copy: it is known by its own inode from now on. DataError for a
    compressed file that has lines more than were read before it was compressed.
    """
    now = {str(path): _stat(path) for path in paths}
    left = {one.inode: name for name, one in known.items() if name not in now or now[name].st_ino != one.inode}
    moved: dict[str, str] = {}
    for name, of_now in now.items():
        before = left.get(of_now.st_ino)
        if before is None or (name in known and known[name].inode == of_now.st_ino):
            continue
        if _is_grown_of(Path(name), of_now, known[before]):
            moved[name] = before
    found = {name: one for name, one in known.items() if name not in moved.values()}
    found.update({name: known[before] for name, before in moved.items()})
    displaced: dict[str, ReadUpTo] = {}
    for name, one in known.items():
        if name not in now or found.get(name) is not one or is_as_known(now[name], one):
            continue
        if _is_grown_of(Path(name), now[name], one):
            found[name] = replace(one, inode=now[name].st_ino)
        else:  # the inode does not count: what is removed leaves it to what comes next
            displaced[name] = one
    new = [name for name in now if name not in found]
    for name in new:
        # Nobody could go on with what is displaced, so nothing is lost by taking an equal file for it. Of one that is
        # merely gone that would not hold: an equal file that comes later is another one.
        before = next((old for old, one in displaced.items() if _is_grown_of(Path(name), now[name], one)), None)
        if before is not None:
            found[name] = displaced.pop(before)
            del found[before]
    gone = {name: one for name, one in found.items() if name not in now or name in displaced}
    for name in new:
        if name in found:
            continue
        plain = name.removesuffix(".gz")  # gzip takes it away when the compressed one is there
        before = _packed(Path(name), gone | ({plain: found[plain]} if plain in found else {}))
        if before is not None:
            found[name] = _whole(Path(name), now[name])
            if gone.pop(before, None) is not None:
                del found[before]
    return found


def _is_grown_of(path: Path, now: stat_result, known: ReadUpTo) -> bool:
    return now.st_size >= known.bytes and _begins(path, now, known)


def _packed(path: Path, read: Mapping[str, ReadUpTo]) -> str | None:
    """The name of the file, among some that were read, that is compressed in `path`; None when it is none of them.

    DataError when it has more than was read.
    """
    try:
        if not read or not is_gzip(path):
            return None
        digest, at, found = hashlib.sha256(), 0, None
        with gzip.open(path) as file:
            for name, one in sorted(read.items(), key=lambda item: item[1].bytes):
                while at < one.bytes and (block := file.read(min(_BLOCK, one.bytes - at))):
                    digest.update(block)
                    at += len(block)
                if at == one.bytes and digest.hexdigest() == one.sha256:
                    found = name  # the longest counts
            if found is None or (at == read[found].bytes and not file.read(1)):
                return found
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return None  # as a file of its own it is looked at, and named
    except OSError as error:
        raise _unreadable(path, error) from error
    raise DataError(
        f"{path} is {found} compressed, with more than the {read[found].bytes} bytes that were read of it. "
        f"{_NOTHING_MORE}",
        hint=f"Unpack it in its place, as {found} if no other file has that name, and compress it when all is read.",
    )


def _whole(path: Path, now: stat_result) -> ReadUpTo:
    digest = _hashed(path, now.st_size, now.st_ino, now.st_size, now.st_mtime_ns)
    return ReadUpTo(now.st_size, 0, digest.hexdigest(), now.st_mtime_ns, now.st_ino)


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
        raise _unreadable(path, error) from error
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
        raise _unreadable(path, error) from error


def _whole_lines(file: IO[bytes], left: int) -> bytes:
    """About SLICE_BYTES out of the next `left` bytes; empty when no line has its end there."""
    piece = file.read(min(SLICE_BYTES, left))
    if len(piece) < left and not piece.endswith(b"\n"):
        piece += file.readline(left - len(piece))
    return piece[: piece.rfind(b"\n") + 1]


def _stat(path: Path) -> stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be read: {error.strerror or error}. {_NOTHING_MORE}")
