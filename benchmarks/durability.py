"""What it costs that a commit outlasts a power failure: its files and its log entry, written with and without syncs.

    python benchmarks/durability.py

No JVM: the writers are those of the product (`RowsFile`, `durable`, `sync_log`), the log entry is written as Delta does
it (another name, then a rename). With and without in turn, medians.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from hybrid import durable
from hybrid.lake.files import RowsFile, path_in_half
from hybrid.lake.log_sync import sync_log

ROUNDS = 15
SIZES = (1_000, 20_000, 200_000)


def rows(count: int) -> pa.RecordBatch:
    """Rows like those of the orders recipe, that compress as badly as its."""
    numbers = pa.array(range(count), pa.int64())
    texts = pa.array([f"customer-{number * 7919 % 100_003}" for number in range(count)], pa.string())
    amounts = pa.array([number * 0.37 for number in range(count)], pa.float64())
    return pa.RecordBatch.from_arrays([numbers, texts, amounts], names=["order_id", "customer", "amount"])


def commit(half: Path, version: int, batch: pa.RecordBatch) -> float:
    """One commit of two segments; milliseconds."""
    before = time.perf_counter()
    entries = []
    for segment in ("orders__0__0__20211121T1038Z", "orders__1__0__20211121T1038Z"):
        folder = half / path_in_half(segment, "")
        file = RowsFile(folder, f"act-{version}", ["order_id"], is_durable=durable.is_enabled())
        file.write(batch)
        entries.append(file.close().entry(segment))
    durable.sync_folders([half / str(entry["add"]["path"]) for entry in entries], half)  # type: ignore[index]
    entry = half / "_delta_log" / f"{version:020d}.json"
    part = entry.with_name(f".{entry.name}.tmp")
    part.write_text("\n".join(map(json.dumps, entries)))
    part.rename(entry)
    sync_log(half, version)
    return (time.perf_counter() - before) * 1000


def measured(count: int) -> Iterator[tuple[bool, float]]:
    """Whether a commit was synced, and how long it took."""
    batch = rows(count)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        half = Path(folder)
        (half / "_delta_log").mkdir()
        for version in range(2 * ROUNDS):
            durable.configure(version % 2 == 0)
            yield version % 2 == 0, commit(half, version, batch)


def main() -> None:
    """Prints a row of a table for each size."""
    for count in SIZES:
        found = list(measured(count))
        synced, bare = (statistics.median(ms for on, ms in found if on is which) for which in (True, False))
        print(f"| {2 * count:,} | {bare:.1f} | {synced:.1f} | {synced - bare:.1f} |")


if __name__ == "__main__":
    main()
