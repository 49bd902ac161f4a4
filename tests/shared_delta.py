"""Delta tables for tests that start no process: few are opened twice, and new ones are copies.

delta-rs reads a log entry by entry, and most tests ask many times between two commits. So a table is opened again only
when its log has changed. An empty table is what delta-rs made first of these columns and properties, with an id and a
state of its own. Tests with a JVM, a broker or a server open and create each table by delta-rs, as the product does.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable

from hybrid.lake import create, log

_KEPT_MAX = 16
_Stamp = tuple[tuple[str, int, int, int], ...]
_NEW: dict[str, list[dict[str, Any]]] = {}
_KEPT: OrderedDict[str, tuple[_Stamp, DeltaTable]] = OrderedDict()


def share_delta_tables(is_shared: bool = True) -> None:
    """Sets what opens the newest version of a half and what creates one, in this process."""
    log.DeltaTable = _opened if is_shared else DeltaTable  # type: ignore[assignment,misc]
    create.DeltaTable = _Creating if is_shared else DeltaTable  # type: ignore[misc]


class _Creating(DeltaTable):
    """delta-rs's table, whose creation copies the first commit of a table that was like it."""

    @classmethod
    def create(  # type: ignore[override]
        cls,
        table_uri: str,
        *,
        schema: pa.Schema,
        partition_by: list[str],
        configuration: dict[str, str],
        commit_properties: CommitProperties,
    ) -> None:
        entry = Path(table_uri, "_delta_log", f"{0:020d}.json")
        kind = repr((schema.to_string(), partition_by, sorted(configuration.items())))
        if kind in _NEW and not entry.parent.exists():
            entry.parent.mkdir(parents=True)
            entry.write_text(_first_commit(_NEW[kind], commit_properties.custom_metadata or {}))
            return
        DeltaTable.create(
            table_uri,
            schema=schema,
            partition_by=partition_by,
            configuration=configuration,
            commit_properties=commit_properties,
        )
        _NEW[kind] = [json.loads(line) for line in entry.read_text().splitlines()]


def _first_commit(entry: list[dict[str, Any]], metadata: dict[str, str]) -> str:
    now = int(time.time() * 1000)
    own = {"commitInfo": {"timestamp": now, **metadata}, "metaData": {"id": str(uuid.uuid4()), "createdTime": now}}
    actions = [{kind: {**values, **own.get(kind, {})} for kind, values in action.items()} for action in entry]
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions) + "\n"


def _opened(path: str, version: int | None = None, **more: Any) -> DeltaTable:
    if version is not None or more:
        return DeltaTable(path, version=version, **more)
    stamp = _stamp(path)
    kept = _KEPT.pop(path, None)
    if kept is None or not stamp or kept[0] != stamp:
        kept = stamp, DeltaTable(path)
    _KEPT[path] = kept  # nothing changes a table that a snapshot holds
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
