"""Delta tables for tests that start no process: few are opened twice, and rows are appended.

delta-rs reads a log entry by entry, and most tests ask many times between two commits. So a table is opened again only
when its log has changed. To a new table `append` adds what delta-rs would: a file for each segment, and an entry of the
log. Values and segments that are not plain are left to delta-rs, and so is a table to which somebody else has written.
Tests with a JVM, a broker or a server open each table by delta-rs, as the product does.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake import __version__ as delta_rs

from hybrid.lake import log
from hybrid.lake.files import RowsFile
from hybrid.table.columns import SEGMENT
from hybrid.table.names import segment_folder

_KEPT_MAX, _APPENDABLE_MAX = 32, 64
_Stamp = tuple[tuple[str, int, int, int], ...]
# By path and version; None is the newest.
_KEPT: OrderedDict[tuple[str, int | None], tuple[_Stamp, DeltaTable]] = OrderedDict()

_STATISTICS = "delta.dataSkippingStatsColumns"
_PLAIN_SEGMENT = re.compile(r"[\w.-]+", re.ASCII)
_INTEGERS = {pa.int32(), pa.int64()}
_PLAIN_TYPES = {*_INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary()}
_CHECKPOINT_EVERY = 100  # commits, unless a table says otherwise
# Of each table that was created here: its newest version, its columns, and those with statistics.
_APPENDABLE: OrderedDict[str, tuple[int, pa.Schema, list[str]]] = OrderedDict()


def share_delta_tables(is_shared: bool = True) -> None:
    """Sets what opens a version of a half in this process."""
    log.DeltaTable = _opened if is_shared else DeltaTable  # type: ignore[assignment,misc]


def append(path: str, table: pa.Table, metadata: dict[str, str]) -> None:
    """Append rows to a table that is divided by segment, with these values in the entry of the log."""
    known = _APPENDABLE.get(path) or _note_appendable(path)
    if known is None or not _is_plain(path, table, *known):
        _APPENDABLE.pop(path, None)
        properties = CommitProperties(custom_metadata=metadata)
        write_deltalake(path, table, mode="append", partition_by=[SEGMENT], commit_properties=properties)
        return
    version, schema, measured = known
    added = []
    for segment in pc.unique(table[SEGMENT]).to_pylist():
        file = RowsFile(Path(path, segment_folder(segment)), "test", measured, is_durable=False)
        for batch in table.filter(pc.equal(table[SEGMENT], segment)).drop_columns([SEGMENT]).to_batches():
            file.write(batch)
        added.append(file.close().entry(segment))
    information = {
        "timestamp": int(time.time() * 1000),
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": json.dumps([SEGMENT])},
        "engineInfo": f"delta-rs:py-{delta_rs}",
        "clientVersion": f"delta-rs.py-{delta_rs}",
        "operationMetrics": {"num_added_files": len(added), "num_added_rows": len(table), "num_removed_files": 0},
        **metadata,
    }
    with Path(path, "_delta_log", f"{version + 1:020d}.json").open("x") as entry:
        entry.write(_lines([{"commitInfo": information}, *added]))
    _APPENDABLE[path] = version + 1, schema, measured


def _note_appendable(path: str) -> tuple[int, pa.Schema, list[str]] | None:
    """Of a new table that `append` can write to itself: its version, its columns, and those with statistics."""
    log_folder = Path(path, "_delta_log")
    if os.listdir(log_folder) != [f"{0:020d}.json"]:
        return None
    lines = (log_folder / f"{0:020d}.json").read_text().splitlines()
    metadata = next(action["metaData"] for action in map(json.loads, lines) if "metaData" in action)
    schema, configuration = pa.schema(Schema.from_json(metadata["schemaString"]).to_arrow()), metadata["configuration"]
    measured = [name for name in configuration.get(_STATISTICS, "").split(",") if name]
    is_plain = metadata["partitionColumns"] == [SEGMENT] and _STATISTICS in configuration
    is_plain = is_plain and "delta.checkpointInterval" not in configuration and _PLAIN_TYPES.issuperset(schema.types)
    if not is_plain or not all(name in schema.names and schema.field(name).type in _INTEGERS for name in measured):
        return None
    _APPENDABLE[path] = 0, schema, measured
    if len(_APPENDABLE) > _APPENDABLE_MAX:
        _APPENDABLE.popitem(last=False)
    return _APPENDABLE[path]


def _is_plain(path: str, table: pa.Table, version: int, schema: pa.Schema, measured: list[str]) -> bool:
    """Whether the log is as it was left, and the rows are such as `append` writes itself."""
    if not table.schema.equals(schema) or (version + 2) % _CHECKPOINT_EVERY < 2:
        return False
    if set(os.listdir(f"{path}/_delta_log")) != {f"{number:020d}.json" for number in range(version + 1)}:
        return False
    return all(segment and _PLAIN_SEGMENT.fullmatch(segment) for segment in pc.unique(table[SEGMENT]).to_pylist())


def _lines(actions: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def _opened(path: str, version: int | None = None, **more: Any) -> DeltaTable:
    if more:
        return DeltaTable(path, version=version, **more)
    stamp, place = _stamp(path), (path, version)
    kept = _KEPT.pop(place, None)
    if kept is None or not stamp or kept[0] != stamp:
        kept = stamp, DeltaTable(path, version=version)
    _KEPT[place] = kept  # nothing changes a table that a snapshot holds
    if len(_KEPT) > _KEPT_MAX:
        _KEPT.popitem(last=False)
    return kept[1]


def _stamp(path: str) -> _Stamp:
    """What changes with every commit, checkpoint, clean-up or damage of a log; empty without a log."""
    try:
        with os.scandir(f"{path}/_delta_log") as entries:
            stats = [(entry.name, entry.stat()) for entry in entries]
    except FileNotFoundError:
        return ()
    return tuple(sorted((name, stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in stats))
