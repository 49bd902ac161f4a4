"""Row values in a Delta log: the first and last key and time of files. A purge removes the values of deleted files.

Log entries hold them for each added file; checkpoints copy them, and checksums (`.crc`) may. Neither readers nor
writers need them for a file that no readable version holds. Callers must hold the half's lock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hybrid.lake.checkpoint import delete_file, delete_on_store, write_checkpoint
from hybrid.lake.entry_file import REWRITTEN, replace_entry, replace_log_file, unfinished_entries
from hybrid.lake.failpoints import step
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_sync import TORN
from hybrid.lake.store_log import set_aside_entries
from hybrid.runtime import durable
from hybrid.runtime.json_values import without_samples
from hybrid.store.mirror import mirror_at

LOG = "_delta_log"
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
        rewrite_entry(entry, lambda text: without_values(text, doomed))
    outdated = [path for path in _checkpoints(half) if _telling(path) & doomed]
    is_mirror = mirror_at(half) is not None
    if outdated and not is_mirror:
        write_checkpoint(half, current.version)
    for path in outdated:
        # On a store none is deleted: the log of a home that has taken over meanwhile may begin with it.
        if not is_mirror and _version(path) < current.version and _is_whole(half, _version(path)):
            delete_file(path)
        elif path.exists():  # versions in the log are still read from it
            _strip_checkpoint(path, doomed)
    _forget_checksums(current)
    for path in _unfinished(half):
        path.unlink(missing_ok=True)
    durable.sync(half / LOG)


def remembered(current: HalfSnapshot) -> list[str]:
    """The files of the log that still hold values of a deleted data file, or rows as samples."""
    half, is_gone = current.path, gone_from(current)
    entries = [entry.name for entry in log_entries(half) if tells(entry.read_text(encoding="utf-8"), is_gone)]
    entries += [path.name for path in _checkpoints(half) if any(map(is_gone, _telling(path)))]
    return entries + [path.name for path in _unfinished(half) if not _is_fresh(path)]


def gone_from(current: HalfSnapshot) -> Callable[[str], bool]:
    """Whether a file, by its decoded path in the half, was deleted and is no file of the newest version."""
    in_snapshot = _held(current)
    return lambda path: path not in in_snapshot and not (current.path / path).exists()


def tells(text: str, is_gone: Callable[[str], bool]) -> bool:
    """Whether an entry holds values of a file that is gone, by its decoded path in the half, or rows as samples."""
    has_values = any(is_gone(path) and _has_values(action) for path, action in _actions(text))
    return has_values or any(_bare(line) != line for line in text.split("\n"))


def _is_fresh(path: Path) -> bool:
    """Whether a writer may be at it right now. What one left that was killed is removed under the lock."""
    try:
        return time.time() - path.stat().st_mtime < _FRESH_S
    except FileNotFoundError:
        return True


def _unfinished(half: Path) -> list[Path]:
    """Files that are no part of the log: lost in a power failure, left by a killed writer, or not on the store.

    delta-rs leaves `<entry>#<number>`, Hadoop `.<entry>.<id>.tmp`. Writers of ours hold the half's lock; a foreign
    writer whose entry is deleted before it has its name fails, and tries again.
    """
    log = half / LOG
    foreign = (
        path for pattern in (f".*{TORN}", f".*{REWRITTEN}", "*.json#*", ".*.json.*.tmp") for path in log.glob(pattern)
    )
    return [*sorted(foreign), *unfinished_entries(half), *set_aside_entries(half)]


def _held(current: HalfSnapshot) -> set[str]:
    return {Path(file.path).relative_to(current.path).as_posix() for file in current.files}


def log_entries(half: Path) -> list[Path]:
    """The entries of a log, oldest first."""
    return sorted((half / LOG).glob("[0-9]*.json"))


def _checkpoints(half: Path) -> list[Path]:
    return sorted((half / LOG).glob("*.checkpoint*.parquet"))


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


def without_values(text: str, files: Collection[str]) -> str:
    """An entry without the values of some files, by decoded path, and without rows that are shown as samples."""
    return "\n".join(_bare(_stripped(line, files)) for line in text.split("\n"))


def without_gone(text: str, is_gone: Callable[[str], bool]) -> str:
    """An entry without the values of the files that are gone, by decoded path, and without samples."""
    return without_values(text, {path for path, _ in _actions(text) if is_gone(path)})


def rewrite_entry(entry: Path, change: Callable[[str], str]) -> bool:
    """Give an entry the text that `change` makes of its own: on the warehouse's store, where it has one, then here.

    Whether that is another one. Its time stays. Callers must hold the half's lock.
    """
    text = entry.read_text(encoding="utf-8")
    changed = change(text)
    if changed == text:
        return False
    mirror, half = mirror_at(entry), entry.parent.parent
    if mirror is not None:
        there = mirror.rewrite_text(mirror.key_of(half, f"{LOG}/{entry.name}"), change)
        step("purge.rewritten")
        changed = changed if there is None else there
    replace_entry(entry, changed)
    return True


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
    """Removes the values of `files` from a checkpoint: on the warehouse's store, where it has one, then here."""
    data = _without_statistics(checkpoint.read_bytes(), files)
    mirror, half = mirror_at(checkpoint), checkpoint.parent.parent
    if mirror is not None:
        key = mirror.key_of(half, f"{LOG}/{checkpoint.name}")
        data = mirror.rewrite(key, lambda there: _without_statistics(there, files)) or data
        step("purge.rewritten")
    replace_log_file(checkpoint, data)


def _without_statistics(checkpoint: bytes, files: Collection[str]) -> bytes:
    """The bytes of a checkpoint without the values of `files`; as they are where it has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(checkpoint)).read()
    kind, adds = table.schema.field("add"), table.column("add").to_pylist()
    telling = [add for add in adds if add is not None and add["path"] is not None and unquote(add["path"]) in files]
    if not any(_has_values(add) or add.get("stats_parsed") for add in telling):
        return checkpoint
    for add in telling:
        statistics = {name: value for name, value in json.loads(add["stats"] or "{}").items() if name not in _VALUES}
        add["stats"] = json.dumps(statistics, separators=(",", ":"))
        if "stats_parsed" in add:
            add["stats_parsed"] = None
    stripped = table.set_column(table.schema.get_field_index("add"), kind, pa.array(adds, kind.type))
    buffer = pa.BufferOutputStream()
    pq.write_table(stripped, buffer)
    return bytes(buffer.getvalue())


def _is_whole(half: Path, version: int) -> bool:
    """Whether every version up to this one can be read from entries alone."""
    return all((half / LOG / f"{number:020d}.json").exists() for number in range(version + 1))


def _forget_checksums(current: HalfSnapshot) -> None:
    """Deletes the checksums of old versions: they are optional, and list the files of their version."""
    for path in (current.path / LOG).glob("[0-9]*.crc"):
        if _version(path) < current.version:
            delete_on_store(current.path, [path])
            delete_file(path)
