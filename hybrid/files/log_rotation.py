"""Tracks files that are read while they grow, across log rotation.

A renamed file is recognized by its inode, a compressed one by its unpacked content. Names prove nothing, because
rotation gives them to other files. One case is ambiguous: a new file with the inode of a deleted one that begins with
all that was read of the deleted one. It is taken for that file under another name.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import stat_result
from pathlib import Path

from hybrid.errors import DataError
from hybrid.files.records import is_gzip
from hybrid.files.tailed_file import NOTHING_MORE, ReadUpTo, continues, is_as_known, read_whole, stat_of, unreadable

_BLOCK = 1024 * 1024


def by_new_names(paths: Iterable[Path], known: Mapping[str, ReadUpTo]) -> dict[str, ReadUpTo]:
    """The read positions of files by their current names; a renamed file is read on under its new name.

    So is an equal copy in a file's place, which is recognized by its own inode from then on. Raises DataError for a
    compressed file with more lines than were read before compression.
    """
    names = _Names({str(path): stat_of(path) for path in paths}, known)
    names.renamed()
    names.copied()
    names.compressed()
    return names.found


class _Names:
    """Matches files in steps.

    `found` holds the results by current name; each step leaves fewer files to the next one.
    """

    def __init__(self, now: Mapping[str, stat_result], known: Mapping[str, ReadUpTo]) -> None:
        self._now, self._known = now, known
        self.found = dict(known)
        # Known files whose names belong to other files now.
        self._displaced: dict[str, ReadUpTo] = {}

    def renamed(self) -> None:
        """Match files whose inodes have other names now."""
        now, earlier = self._now, self._known
        missing_inodes = {
            position.inode: name
            for name, position in earlier.items()
            if name not in now or now[name].st_ino != position.inode
        }
        moved: dict[str, str] = {}
        for name, of_now in now.items():
            before = missing_inodes.get(of_now.st_ino)
            if before is None or (name in earlier and earlier[name].inode == of_now.st_ino):
                continue
            if continues(Path(name), of_now, earlier[before]):
                moved[name] = before
        self.found = {name: position for name, position in earlier.items() if name not in moved.values()}
        self.found.update({name: earlier[before] for name, before in moved.items()})

    def copied(self) -> None:
        """Match equal copies, in a file's place or under a new name."""
        for name, position in self._known.items():
            now = self._now.get(name)
            if now is None or self.found.get(name) is not position or is_as_known(now, position):
                continue
            if continues(Path(name), now, position):
                self.found[name] = replace(position, inode=now.st_ino)
            else:  # the inode proves nothing: the next new file may reuse that of a deleted one
                self._displaced[name] = position
        for name in self._new():
            # Nobody could continue a displaced file, so matching an equal file to it loses nothing. A file that is
            # merely gone differs: an equal file that appears later is a new one.
            displaced = self._displaced.items()
            before = next(
                (old for old, position in displaced if continues(Path(name), self._now[name], position)), None
            )
            if before is not None:
                self.found[name] = self._displaced.pop(before)
                del self.found[before]

    def compressed(self) -> None:
        """Match files that unpack to what was read."""
        gone = {
            name: position for name, position in self.found.items() if name not in self._now or name in self._displaced
        }
        for name in self._new():
            plain = name.removesuffix(".gz")  # gzip removes the original once the compressed file is complete
            beside = {plain: self.found[plain]} if plain in self.found else {}
            before = _packed(Path(name), gone | beside)
            if before is not None:
                self.found[name] = read_whole(Path(name), self._now[name])
                if gone.pop(before, None) is not None:
                    del self.found[before]

    def _new(self) -> list[str]:
        return [name for name in self._now if name not in self.found]


def _packed(path: Path, read: Mapping[str, ReadUpTo]) -> str | None:
    """The name of the file among `read` that `path` is the compressed form of; None when it is none of them.

    Raises DataError when it holds more than was read.
    """
    try:
        if not read or not is_gzip(path):
            return None
        digest, at, original = hashlib.sha256(), 0, None
        with gzip.open(path) as file:
            for name, position in sorted(read.items(), key=lambda item: item[1].bytes):
                while at < position.bytes and (block := file.read(min(_BLOCK, position.bytes - at))):
                    digest.update(block)
                    at += len(block)
                if at == position.bytes and digest.hexdigest() == position.sha256:
                    original = name  # the longest match counts
            if original is None or (at == read[original].bytes and not file.read(1)):
                return original
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return None  # it is then handled as a file of its own, and reported
    except OSError as error:
        raise unreadable(path, error) from error
    raise DataError(
        f"{path} is {original} compressed, with more than the {read[original].bytes} bytes that were read of it. "
        f"{NOTHING_MORE}",
        hint=f"Unpack it in its place, as {original} if no other file has that name, and compress it when all is read.",
    )
