"""Checkpoints of a half's log: written, synced to disk, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from deltalake import DeltaTable

from hybrid.runtime import durable
from hybrid.store.mirror import mirror_at

HINT = "_last_checkpoint"


def last_checkpoint(half: Path) -> int:
    """The version of the newest checkpoint; 0 without any.

    By the hint where it names a checkpoint of one file that is there, because the folder may hold thousands of entries.
    Another writer may have left the hint behind its checkpoints: then one more is written than needed.
    """
    hinted = hinted_version(half)
    if hinted is not None and (half / "_delta_log" / f"{hinted:020d}.checkpoint.parquet").exists():
        return hinted
    names = (path.name for path in (half / "_delta_log").glob("*.checkpoint*.parquet"))
    return max((int(name[:20]) for name in names if name[:20].isdecimal()), default=0)


def hinted_version(half: Path) -> int | None:
    """The checkpoint version that the hint names; None without a hint, -1 when the hint cannot be read."""
    try:
        return int(json.loads((half / "_delta_log" / HINT).read_text(encoding="utf-8"))["version"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return -1


def write_checkpoint(half: Path, version: int) -> None:
    """Write and sync the checkpoint of a version. A hint that names a newer checkpoint keeps naming it."""
    (half / "_delta_log" / f".{HINT}.crc").unlink(missing_ok=True)  # Hadoop's checksum of the hint that Spark wrote
    DeltaTable(str(half), version=version).create_checkpoint()
    store_checkpoint(half, [half / "_delta_log" / f"{version:020d}.checkpoint.parquet"])


def store_checkpoint(half: Path, files: Iterable[Path]) -> None:
    """Sync a checkpoint's files and the hint to disk, and upload them to a warehouse's store.

    Call it before deleting anything that the checkpoint replaces.
    """
    log = half / "_delta_log"
    there = [path for path in (*files, log / HINT) if path.exists()]
    durable.sync_files(there, log)
    mirror = mirror_at(half)
    if mirror is not None:
        for path in there:  # the hint last: it names the checkpoint
            mirror.upload(half, f"_delta_log/{path.name}")


def delete_on_store(half: Path, paths: Sequence[Path]) -> None:
    """Delete files of a half's log on the warehouse's store, where it has one. Call it before deleting them here."""
    mirror = mirror_at(half)
    if mirror is not None:
        for path in paths:  # one after the other: a log must never have a gap, also if this is cut short
            mirror.delete(half, [f"_delta_log/{path.name}"])


def delete_file(path: Path) -> None:
    """Delete a file and the checksum that Hadoop keeps beside it."""
    path.unlink(missing_ok=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
