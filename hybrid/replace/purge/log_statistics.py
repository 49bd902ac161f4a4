"""Row values in a Delta log: the first and last key and time of files. A purge removes the values of deleted files.

Log entries hold them for each added file; checkpoints copy them, and checksums (`.crc`) may. Neither readers nor
writers need them for a file that no readable version holds. Callers must hold the half's lock.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hybrid.lake.checkpoint import delete_file, write_checkpoint
from hybrid.lake.entry_file import unfinished_entries
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_sync import TORN
from hybrid.runtime import durable
from hybrid.runtime.json_values import without_samples

_FRESH_S = 60.0
_VALUES = ("minValues", "maxValues")
_ACTIONS = ("add", "remove")


def logged_files(half: Path) -> set[str]:
    """The files, as paths in the half, that entries and checkpoints of the log name."""
    paths = {path for entry in log_entries(half) for path, _ in _actions(entry.read_text(encoding="utf-8"))}
    return paths.union(*(_added(checkpoint).keys() for checkpoint in _checkpoints(half)))


def forget_values(current: HalfSnapshot, files: Collection[str], known: Collection[str]) -> None:
    """Removes the values of `files` and of deleted files in `known`, which are all that the log names.

    Also removes rows that results of expectations show as samples. Files of the newest version, `current`, keep their
    values, whether they exist or not.
    """
    half = current.path
    doomed = {*files, *(path for path in known if not (half / path).exists())} - _held(current)
    for entry in log_entries(half):
        _forget_in(entry, doomed)
    outdated = [path for path in _checkpoints(half) if _telling(path) & doomed]
    if outdated:
        write_checkpoint(half, current.version)
        for path in outdated:
            if _version(path) < current.version and _is_whole(half, _version(path)):
                delete_file(path)
            elif path.exists():  # versions in the log are still read from it
                _strip_checkpoint(path, doomed)
    _forget_checksums(current)
    for path in _unfinished(half):
        path.unlink(missing_ok=True)
    durable.sync(half / "_delta_log")


def remembered(current: HalfSnapshot) -> list[str]:
    """The files of the log that still hold values of a deleted data file, or rows as samples."""
    half, in_snapshot = current.path, _held(current)

    def is_gone(path: str) -> bool:
        return path not in in_snapshot and not (half / path).exists()

    def tells(text: str) -> bool:
        lines = text.split("\n")
        has_values = any(is_gone(path) and _has_values(action) for path, action in _actions(text))
        return has_values or any(_bare(line) != line for line in lines)

    entries = [entry.name for entry in log_entries(half) if tells(entry.read_text(encoding="utf-8"))]
    entries += [path.name for path in _checkpoints(half) if any(map(is_gone, _telling(path)))]
    return entries + [path.name for path in _unfinished(half) if not _is_fresh(path)]


def _is_fresh(path: Path) -> bool:
    """Whether a writer may be at it right now. What one left that was killed is removed under the lock."""
    try:
        return time.time() - path.stat().st_mtime < _FRESH_S
    except FileNotFoundError:
        return True


def _unfinished(half: Path) -> list[Path]:
    """Entries that are no part of the log: lost in a power failure, or left by a writer that was killed.

    delta-rs leaves `<entry>#<number>`, Hadoop `.<entry>.<id>.tmp`. Writers of ours hold the half's lock; a foreign
    writer whose entry is deleted before it has its name fails, and tries again.
    """
    log = half / "_delta_log"
    foreign = (path for pattern in (f".*{TORN}", "*.json#*", ".*.json.*.tmp") for path in log.glob(pattern))
    return [*sorted(foreign), *unfinished_entries(half)]


def _held(current: HalfSnapshot) -> set[str]:
    return {Path(file.path).relative_to(current.path).as_posix() for file in current.files}


def log_entries(half: Path) -> list[Path]:
    """The entries of a log, oldest first."""
    return sorted((half / "_delta_log").glob("[0-9]*.json"))


def _checkpoints(half: Path) -> list[Path]:
    return sorted((half / "_delta_log").glob("*.checkpoint*.parquet"))


def _version(path: Path) -> int:
    return int(path.name.split(".", 1)[0])


def _actions(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path in the half, action) of each file that an entry adds or removes."""
    for line in text.split("\n"):
        action = json.loads(line) if line.startswith(('{"add"', '{"remove"')) else {}
        for kind in _ACTIONS:
            if kind in action:
                yield unquote(str(action[kind]["path"])), action[kind]


def _has_values(action: dict[str, Any]) -> bool:
    statistics = json.loads(action.get("stats") or "{}")
    return any(statistics.get(name) for name in _VALUES)


def _forget_in(entry: Path, files: Collection[str]) -> None:
    text = entry.read_text(encoding="utf-8")
    lines = [_bare(_stripped(line, files)) for line in text.split("\n")]
    if lines != text.split("\n"):
        replace_entry(entry, "\n".join(lines))


def replace_entry(entry: Path, text: str) -> None:
    """Gives an entry another text and keeps its time. Callers must hold the half's lock."""
    stat, fresh = entry.stat(), entry.with_name(f".{entry.name}.purged")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
    os.utime(fresh, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # Delta reads a commit's time from it
    # Hadoop verifies an entry against the checksum beside it.
    entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
    durable.sync(fresh)
    durable.rename(fresh, entry)


def _stripped(line: str, files: Collection[str]) -> str:
    if not any(path in files and _has_values(action) for path, action in _actions(line)):
        return line
    document = json.loads(line)
    action = next(document[kind] for kind in _ACTIONS if kind in document)
    statistics = {name: value for name, value in json.loads(action["stats"]).items() if name not in _VALUES}
    action["stats"] = json.dumps(statistics, separators=(",", ":"))
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _bare(line: str) -> str:
    """A line of one of our commits, without the rows that results of expectations show."""
    if not line.startswith('{"commitInfo"') or "sample" not in line:
        return line
    document = json.loads(line)
    metadata = document["commitInfo"].get("userMetadata")
    state = json.loads(metadata) if isinstance(metadata, str) and "sample" in metadata else None
    if without_samples(state) == state:
        return line
    document["commitInfo"]["userMetadata"] = json.dumps(without_samples(state), separators=(",", ":"))
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _added(checkpoint: Path) -> dict[str, dict[str, Any]]:
    """The files that the version of a checkpoint held, with the checkpoint's data on each."""
    import pyarrow.parquet as pq

    rows = pq.ParquetFile(checkpoint).read(columns=["add"]).column("add").to_pylist()
    return {unquote(add["path"]): add for add in rows if add is not None and add["path"] is not None}


def _telling(checkpoint: Path) -> set[str]:
    """The files for which a checkpoint holds values."""
    return {path for path, add in _added(checkpoint).items() if _has_values(add) or add.get("stats_parsed")}


def _strip_checkpoint(checkpoint: Path, files: Collection[str]) -> None:
    """Removes the values of `files` from a checkpoint."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(checkpoint).read()
    kind, adds = table.schema.field("add"), table.column("add").to_pylist()
    for add in adds:
        if add is not None and add["path"] is not None and unquote(add["path"]) in files:
            statistics = {
                name: value for name, value in json.loads(add["stats"] or "{}").items() if name not in _VALUES
            }
            add["stats"] = json.dumps(statistics, separators=(",", ":"))
            if "stats_parsed" in add:
                add["stats_parsed"] = None
    stripped = table.set_column(table.schema.get_field_index("add"), kind, pa.array(adds, kind.type))
    fresh = checkpoint.with_name(f".{checkpoint.name}.purged")
    with fresh.open("wb") as file:
        pq.write_table(stripped, file)
    checkpoint.with_name(f".{checkpoint.name}.crc").unlink(missing_ok=True)
    durable.sync(fresh)
    durable.rename(fresh, checkpoint)


def _is_whole(half: Path, version: int) -> bool:
    """Whether every version up to this one can be read from entries alone."""
    return all((half / "_delta_log" / f"{number:020d}.json").exists() for number in range(version + 1))


def _forget_checksums(current: HalfSnapshot) -> None:
    """Deletes the checksums of old versions: they are optional, and list the files of their version."""
    for path in (current.path / "_delta_log").glob("[0-9]*.crc"):
        if _version(path) < current.version:
            delete_file(path)
