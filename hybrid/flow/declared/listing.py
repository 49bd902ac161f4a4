"""The files of a source: a path, a folder with all below it, or a pattern, filtered by its options."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hybrid.errors import DataError, NotFoundError
from hybrid.flow.declared.options import DeclaredFileSource

_MAGIC = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, order=True)
class SourceFile:
    """A file; `modified_ms` is its last change, epoch milliseconds. Older files come first."""

    modified_ms: int
    path: str
    bytes: int

    def check_unchanged(self) -> None:
        """DataError when the file has changed or is gone, because only a part of it may have been read."""
        try:
            now = _file(self.path)
        except FileNotFoundError as error:
            raise DataError(f"{self.path} was removed while it was read. Nothing of it was kept.") from error
        if now != self:
            raise DataError(
                f"{self.path} was changed while it was read. Nothing of it was kept.",
                hint="Write files elsewhere and rename them into place; then run it again.",
            )


def list_files(source: DeclaredFileSource) -> list[SourceFile]:
    """The files of a source, oldest first. NotFoundError when the base folder of a pattern does not exist."""
    roots = _roots(source.path)
    if not roots:
        base = base_folder(source.path)
        if not os.path.exists(base):
            raise NotFoundError(f"'{source.path}': there is no folder {base}.")
        return []
    by_path = {path: _there(path) for root in roots for path in _files(root, source.recursive)}
    return sorted(file for file in by_path.values() if file is not None and _is_wanted(source, file))


def _there(path: str) -> SourceFile | None:
    """A file; None when it was deleted since the listing, or is a broken link."""
    try:
        return _file(path)
    except OSError:
        return None


def base_folder(path: str) -> str:
    """The part of a path before its first pattern; the path itself when it has none."""
    parts = Path(os.path.abspath(path)).parts
    plain = [part for place, part in enumerate(parts) if not any(map(_MAGIC.search, parts[: place + 1]))]
    return str(Path(*plain))


def is_pattern(path: str) -> bool:
    """Whether a path contains pattern characters."""
    return bool(_MAGIC.search(path))


def _roots(path: str) -> list[str]:
    matches = (match for plain in _expanded(os.path.abspath(path)) for match in glob.glob(plain))
    return sorted(root for root in set(matches) if not _is_hidden(root))


def _expanded(path: str) -> Iterator[str]:
    """Expands `{a,b}` of Hadoop's patterns, which Python's do not support."""
    match = _BRACES.search(path)
    if match is None:
        yield path
        return
    for choice in match[1].split(","):
        yield from _expanded(path[: match.start()] + choice + path[match.end() :])


def _files(root: str, recursive: bool) -> Iterator[str]:
    if os.path.isfile(root):
        yield root
        return
    seen: set[str] = set()
    for folder, below, names in os.walk(root, followlinks=True):
        place = os.path.realpath(folder)
        if place in seen:  # a link to a folder that was read already, or to a parent
            below.clear()
            continue
        seen.add(place)
        # Partition folders (`year=2024`) are always read, as in Spark.
        below[:] = sorted(name for name in below if not _is_hidden(name) and (recursive or "=" in name))
        yield from (os.path.join(folder, name) for name in names if not _is_hidden(name))


def _is_hidden(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _is_wanted(source: DeclaredFileSource, file: SourceFile) -> bool:
    after, before = source.modified_after_ms, source.modified_before_ms
    if (after is not None and file.modified_ms <= after) or (before is not None and file.modified_ms >= before):
        return False
    patterns = list(_expanded(source.name_pattern)) if source.name_pattern else ["*"]
    return any(fnmatch.fnmatchcase(os.path.basename(file.path), pattern) for pattern in patterns)


def _file(path: str) -> SourceFile:
    stat = os.stat(path)
    return SourceFile(stat.st_mtime_ns // 1_000_000, path, stat.st_size)


def next_files(source: DeclaredFileSource, files: Iterable[SourceFile]) -> list[SourceFile]:
    """The files of one micro-batch: at most `files_max`, and `bytes_max` bytes unless the first alone exceeds that."""
    taken: list[SourceFile] = []
    remaining = source.bytes_max
    for file in files:
        if len(taken) == source.files_max or (remaining is not None and taken and file.bytes > remaining):
            break
        taken.append(file)
        remaining = None if remaining is None else remaining - file.bytes
    return taken
