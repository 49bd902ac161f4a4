"""Files that are read as they grow, by the names that they have now.

One that is renamed is known by its inode, and one that was compressed by what it unpacks to. A name tells nothing:
rotation gives it to another file. So one case is ambiguous: a new file that got the inode of one that is gone, and
begins with all that was read of that, is taken for it, under another name.
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
    """What is known of files, by their names now: one that was renamed is read on under its new name.

    So is one that lies in the place of an equal copy: it is known by its own inode from now on. DataError for a
    compressed file that has lines more than were read before it was compressed.
    """
    names = _Names({str(path): stat_of(path) for path in paths}, known)
    names.renamed()
    names.copied()
    names.compressed()
    return names.found


class _Names:
    """`found` is by the names of now, as far as the steps have come; each leaves the next one fewer files to know."""

    def __init__(self, now: Mapping[str, stat_result], known: Mapping[str, ReadUpTo]) -> None:
        self._now, self._known = now, known
        self.found = dict(known)
        # Known files whose names hold something else now.
        self._displaced: dict[str, ReadUpTo] = {}

    def renamed(self) -> None:
        """Files whose inodes have other names."""
        now, known = self._now, self._known
        left = {one.inode: name for name, one in known.items() if name not in now or now[name].st_ino != one.inode}
        moved: dict[str, str] = {}
        for name, of_now in now.items():
            before = left.get(of_now.st_ino)
            if before is None or (name in known and known[name].inode == of_now.st_ino):
                continue
            if continues(Path(name), of_now, known[before]):
                moved[name] = before
        self.found = {name: one for name, one in known.items() if name not in moved.values()}
        self.found.update({name: known[before] for name, before in moved.items()})

    def copied(self) -> None:
        """Equal copies, in the place of what was read or under a name that is new."""
        for name, one in self._known.items():
            now = self._now.get(name)
            if now is None or self.found.get(name) is not one or is_as_known(now, one):
                continue
            if continues(Path(name), now, one):
                self.found[name] = replace(one, inode=now.st_ino)
            else:  # the inode does not count: what is removed leaves it to what comes next
                self._displaced[name] = one
        for name in self._new():
            # Nobody could go on with what is displaced, so nothing is lost by taking an equal file for it. Of one that
            # is merely gone that would not hold: an equal file that comes later is another one.
            displaced = self._displaced.items()
            before = next((old for old, one in displaced if continues(Path(name), self._now[name], one)), None)
            if before is not None:
                self.found[name] = self._displaced.pop(before)
                del self.found[before]

    def compressed(self) -> None:
        """Files that unpack to what was read."""
        gone = {name: one for name, one in self.found.items() if name not in self._now or name in self._displaced}
        for name in self._new():
            plain = name.removesuffix(".gz")  # gzip takes it away when the compressed one is there
            beside = {plain: self.found[plain]} if plain in self.found else {}
            before = _packed(Path(name), gone | beside)
            if before is not None:
                self.found[name] = read_whole(Path(name), self._now[name])
                if gone.pop(before, None) is not None:
                    del self.found[before]

    def _new(self) -> list[str]:
        return [name for name in self._now if name not in self.found]


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
        raise unreadable(path, error) from error
    raise DataError(
        f"{path} is {found} compressed, with more than the {read[found].bytes} bytes that were read of it. "
        f"{NOTHING_MORE}",
        hint=f"Unpack it in its place, as {found} if no other file has that name, and compress it when all is read.",
    )
