"""Copies the tables of a home to an object store, and makes the home's folder the mirror of the store.

The order, and what a crash after each step leaves (the next push continues):
  claim the empty prefix              a warehouse without tables
  data files, checkpoints, entries    objects that no definition names
  the mark of the mirror              the store decides from now on
  plans and definitions               `hybrid warehouse sync`, or the next commit to a table, publishes the rest;
                                      plans are published by the former
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.catalog.schema_files import SCHEMAS_FOLDER
from hybrid.errors import ConflictError
from hybrid.lake.checkpoint import HINT
from hybrid.lake.lineage_archive import store_archive
from hybrid.operations.warehouse.home_mirror import (
    WarehouseReport,
    halves_of,
    locked,
    refuse_running,
    require_mirror,
)
from hybrid.progress import counted
from hybrid.store.mirror import Mirror, for_all, key_file, mark, new_half_key, read_mark

if TYPE_CHECKING:
    from hybrid.home.home import Home


def push_warehouse(home: Home) -> WarehouseReport:
    """Copy all tables to the store that the setting `warehouse` names.

    ConflictError when the prefix has objects of others, when the home is a mirror already, or while a server runs.
    """
    mirror = require_mirror(home)
    if read_mark(mirror.folder) is not None:
        raise ConflictError(f"{mirror.folder} is a mirror of {mirror.url} already.", hint="hybrid warehouse sync")
    refuse_running(home, "hybrid warehouse push")
    tables = home.table_names()
    halves = [half for table in tables for half in halves_of(mirror.folder / table)]
    with locked(home, halves):
        mirror.ownership.claim(continues=True)
        files = [file for half in halves for file in push_half(home, mirror, half)]
        push_schemas(mirror)
        mark(mirror.folder, mirror.url)
        for table in tables:
            home.definitions.publish(table, with_plans=True)
    size = sum(path.stat().st_size for path in files)
    sentence = (
        f"{mirror.url} has {counted(len(tables), 'table')} now: {counted(len(files), 'file')}, {size} bytes. "
        f"{mirror.folder} is its mirror."
    )
    return WarehouseReport(tuple(tables), len(files), size, sentence)


def push_schemas(mirror: Mirror) -> None:
    """Upload the schemas that are stored on their own."""
    for path in sorted((mirror.folder / SCHEMAS_FOLDER).glob("*.json")):
        mirror.client.upload_file(f"{SCHEMAS_FOLDER}/{path.name}", path)


def push_half(home: Home, mirror: Mirror, half: Path) -> list[Path]:
    """Upload a half; its files."""
    if not key_file(half).exists():
        new_half_key(half)
    log, data, entries = half / "_delta_log", list[Path](), list[Path]()
    for path in sorted(half.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and path.suffix != ".part":
            (entries if path.is_relative_to(log) else data).append(path)
    home.progress.say(f"Uploading {half.name} of '{half.parent.name}': {counted(len(data), 'data file')}.")
    mirror.upload_new(half, [str(path.relative_to(half)) for path in data], [path.stat().st_size for path in data])
    # Entries last, and the hint, which names a checkpoint, after them.
    entries.sort(key=lambda path: (path.name == HINT, path.suffix != ".parquet", path.name))
    for_all(lambda path: mirror.upload(half, str(path.relative_to(half))), [p for p in entries if p.name != HINT])
    if (log / HINT).exists():
        mirror.upload(half, f"_delta_log/{HINT}")
    store_archive(half)
    return [*data, *entries]
