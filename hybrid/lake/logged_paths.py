"""How a log spells the paths of its files: a removal must name its file by the very text that added it.

Writers percent-encode paths each in their own way. delta-rs gives those of a version as it would encode them itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

from hybrid.lake.log_entries import entry_path

# Paths below a half that every writer spells alike.
_PLAIN = re.compile(r"[A-Za-z0-9_.=/-]+")


def logged_paths(half: Path, version: int, paths: Collection[str]) -> dict[str, str]:
    """The text in the log up to `version` of each path that delta-rs gives; without those that the log does not hold.

    The log is read only for paths that writers may spell differently.
    """
    texts = {path: path for path in paths if _PLAIN.fullmatch(path)}
    missing = {unquote(path): path for path in paths if path not in texts}
    for text in _added_texts(half, version) if missing else ():
        path = missing.pop(unquote(text), None)
        if path is not None:  # the newest text, where a file was removed and added again
            texts[path] = text
            if not missing:
                break
    return texts


def _added_texts(half: Path, version: int) -> Iterator[str]:
    """The paths of added files as the log has them: of its entries, newest first, then of its newest checkpoint."""
    for number in range(version, -1, -1):
        try:
            text = entry_path(half, number).read_text(encoding="utf-8")
        except FileNotFoundError:  # the log has been cleaned up to here
            yield from _checkpoint_texts(half, version)
            return
        for line in text.split("\n"):
            if line.startswith('{"add"'):
                yield str(json.loads(line)["add"]["path"])


def _checkpoint_texts(half: Path, version: int) -> Iterator[str]:
    import pyarrow.parquet as pq

    parts: dict[int, list[Path]] = {}
    for path in (half / "_delta_log").glob("*.checkpoint*.parquet"):
        if path.name[:20].isdecimal() and int(path.name[:20]) <= version:
            parts.setdefault(int(path.name[:20]), []).append(path)
    for path in parts[max(parts)] if parts else ():
        adds = pq.ParquetFile(path).read(columns=["add.path"]).column("add").to_pylist()
        yield from (add["path"] for add in adds if add is not None and add["path"] is not None)
