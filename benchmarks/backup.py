"""Backups under load: each is restored, and compared with the live tables at its revision.

    .venv/bin/python -m benchmarks.backup [--backups 20] [--rate 2000] [--pause 4]

A server ingests an append table and an upsert table, half of the rate each, while buckets are moved all the time, and
every fifth backup a backfill corrects a stretch of time. Before each backup a process that makes one is killed at a
step. Then the server makes a backup. It is restored into a new home, and both tables are read whole at its revision,
there and in the live home: the rows must be equal. Of the append table every offset below the backup's must be there
once, which the numbers of its rows tell without the live table. In the end everything is verified.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.serving.product import Product
from benchmarks.serving.stream import Feeder
from benchmarks.serving.tables import Table
from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.errors import HybridError
from hybrid.kafka.topics import create_topic
from hybrid.operations.backups.backup_store import BackupStore
from hybrid.progress import Silent
from tests.watchdog import running_broker

PARTITIONS = 2
APPEND = Table("appended", "appended", upsert=False, seal_rows=20_000, bucket="10m")
UPSERT = Table("upserted", "upserted", upsert=True, seal_rows=20_000, bucket="10m")
KEYS = 5_000
STEP_MS = 200  # of event time from row to row: a bucket holds 3,000 rows
AGO_MS = 20 * 86_400_000
KILLS = (
    "backup.pinned", "backup.part@3", "backup.object@1", "backup.object@9", "backup.copied", "backup.manifest",
    "backup.published",
)  # fmt: skip
_KILLED = """
import sys
from pathlib import Path
from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.progress import Silent
Hybrid(load_settings(home=Path(sys.argv[1])), Silent()).backups.create(sys.argv[2])
"""


def event(table: Table, began_ms: int, number: int) -> tuple[int, bytes]:
    """Partition and message of the nth row of a table."""
    # A key stays in its partition, as PARTITIONS divides KEYS.
    key = number % KEYS if table.upsert else number
    row = {"order_id": key, "customer_id": number % 1000, "order_status": "paid", "amount": number / 4}
    return number % PARTITIONS, json.dumps({**row, "ts": began_ms + number * STEP_MS}).encode()


class Mover(threading.Thread):
    """Asks for moves of both tables, one after the other, until its end; counts those that moved something.

    `turn` is held during each move: a plan of a backfill is made between two of them.
    """

    def __init__(self, product: Product) -> None:
        super().__init__(daemon=True)
        self._product = product
        self.end, self.turn = threading.Event(), threading.Lock()
        self.moves = 0

    def run(self) -> None:
        """Moves."""
        while not self.end.wait(0.2):
            for table in (APPEND, UPSERT):
                arguments = {"table": table.name, "max_buckets": None}
                with self.turn:
                    status, queued = self._product.server.call("POST", "/verbs/move", arguments)
                    if status == 202:
                        self.moves += self._product.server.await_task(queued["run"])["state"] == "DONE"
                time.sleep(0.05)  # so that whoever waits for the turn has it

    def stop(self) -> None:
        """Ends it after the move in progress."""
        self.end.set()
        self.join()


@dataclass
class Figures:
    """What each backup took: seconds of backup and restore, new and all bytes, rows compared, kills.

    A file is new that the backup before has not, whether the killed attempt between has stored it or the backup.
    """

    backup_s: list[float] = field(default_factory=list)
    restore_s: list[float] = field(default_factory=list)
    files_new: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    bytes_new: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    kills: int = 0
    moves: int = 0
    backfills: int = 0
    produced: int = 0
    offline_versions: list[int] = field(default_factory=list)
    last: frozenset[str] = frozenset()


def play(
    folder: Path,
    brokers: str,
    *,
    backups: int,
    rate: int,
    pause_s: float,
    with_backfills: bool = True,
    say: Callable[[str], None] = print,
) -> Figures:
    """The whole play on a broker. AssertionError for a backup that is not equal to the live tables."""
    figures, store = Figures(), folder / "backups"
    for table in (APPEND, UPSERT):
        create_topic(brokers, table.topic, PARTITIONS)
    with Product(folder / "product", brokers) as product:
        home = folder / "product" / "home"
        for table in (APPEND, UPSERT):
            product.create(table)
        began_ms = int(time.time() * 1000) - AGO_MS
        feeders = [Feeder(brokers, one.topic, partial(event, one, began_ms), rate // 2) for one in (APPEND, UPSERT)]
        mover = Mover(product)
        with ExitStack() as feeding:
            for feeder in feeders:
                feeding.enter_context(feeder)
            mover.start()
            feeding.callback(mover.stop)
            _await_offline(product)
            for number in range(backups):
                time.sleep(pause_s)
                if with_backfills and number % 5 == 2:
                    with mover.turn:
                        plan = _plan(product, number)
                    figures.backfills += _start(product, plan)
                figures.kills += _kill(home, store, KILLS[number % len(KILLS)])
                started = time.monotonic()
                report = product.server.ok("POST", "/backups", {"directory": str(store)})
                figures.backup_s.append(time.monotonic() - started)
                _compare(home, store, report, folder / "restored", figures)
                say(
                    f"{number + 1}: {figures.files_new[-1]} of {figures.files[-1]} files new, "
                    f"{figures.bytes_new[-1] / 1e6:.1f} of {figures.bytes[-1] / 1e6:.1f} MB, "
                    f"backup {figures.backup_s[-1]:.2f} s, restore {figures.restore_s[-1]:.2f} s, "
                    f"{figures.rows[-1]:,} rows equal, OFFLINE version {figures.offline_versions[-1]}"
                )
        figures.moves, figures.produced = mover.moves, sum(feeder.sent for feeder in feeders)
        started = time.monotonic()
        report = product.server.ok("POST", "/backups/verify", {"directory": str(store)})
        assert report["sound"], report
        say(f"{report['sentence']} {time.monotonic() - started:.1f} s")
    return figures


def _await_offline(product: Product) -> None:
    """Until rows of both tables are offline."""
    deadline = time.monotonic() + 180
    while any(product.boundary_ms(table) is None for table in (APPEND, UPSERT)):
        assert time.monotonic() < deadline, product.server.logged()
        time.sleep(0.2)


def _plan(product: Product, number: int) -> str:
    """Plans a correction of half an hour of the append table; the id of the plan."""
    boundary = product.boundary_ms(APPEND)
    assert boundary is not None
    end = boundary // 600_000 * 600_000
    change = {"from": str(end - 1_800_000), "to": str(end), "update": f"amount = amount + {number}"}
    plan: str = product.server.ok("POST", "/backfills", {"table": APPEND.name, **change})["id"]
    return plan


def _start(product: Product, plan: str) -> int:
    """Starts the run of a plan, which goes on beside the backup."""
    return int(product.server.call("POST", "/verbs/backfill_run", {"backfill": plan})[0] == 202)


def _kill(home: Path, store: Path, step: str) -> int:
    """Kills a process that makes a backup at a step; what was there stays whole."""
    before = BackupStore(store).ids() if store.exists() else []
    command = [sys.executable, "-c", _KILLED, str(home), str(store)]
    code = subprocess.run(command, env={**os.environ, "HYBRID_FAILPOINT": step}, check=False).returncode
    assert code == -signal.SIGKILL, code
    if (store / "hybrid-backup.json").exists():
        ids = BackupStore(store).ids()
        assert ids[: len(before)] == before and len(ids) == len(before) + (step == "backup.published"), (before, ids)
        manifests, errors = BackupStore(store).readable()
        assert not errors and all(BackupStore(store).has(f.sha256, f.size) for one in manifests for f in one.files)
    return 1


def _compare(home: Path, store: Path, report: Mapping[str, Any], target: Path, figures: Figures) -> None:
    """Restores a backup, and reads both tables whole at its revision, there and in the live home."""
    started = time.monotonic()
    new, live = (Hybrid(load_settings(home=place), Silent()) for place in (target, home))
    try:
        new.backups.restore(store, report["id"])
        figures.restore_s.append(time.monotonic() - started)
        manifest, rows = BackupStore(store).read(report["id"]), 0
        for table in manifest.tables:
            found = [_rows(hy, table.name, table.revision, target.parent) for hy in (new, live)]
            assert found[0].equals(found[1]), (
                f"{table.name} at {table.revision}: {found[0].num_rows}, {found[1].num_rows}"
            )
            rows += found[0].num_rows
            if table.name == APPEND.name:
                _check_all_once(found[0], table.offsets)
        figures.rows.append(rows)
        figures.offline_versions.append(max(table.versions["OFFLINE"] for table in manifest.tables))
        objects = {file.sha256: file.size for file in manifest.files}
        fresh = [size for sha256, size in objects.items() if sha256 not in figures.last]
        figures.files.append(len(objects))
        figures.bytes.append(sum(objects.values()))
        figures.files_new.append(len(fresh))
        figures.bytes_new.append(sum(fresh))
        figures.last = frozenset(objects)
    finally:
        new.close()
        live.close()
        shutil.rmtree(target, ignore_errors=True)


def _rows(hy: Hybrid, table: str, revision: str, folder: Path) -> pa.Table:
    """All rows of a table at a revision, sorted."""
    path = folder / "rows.parquet"
    for attempt in range(3):
        try:
            hy.export(f"select * from {table}", path, as_of=revision, force=True)
            break
        except HybridError:  # the live home commits while it is read
            if attempt == 2:
                raise
    rows = pq.read_table(path)
    rows = rows.replace_schema_metadata(None)
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


def _check_all_once(rows: pa.Table, offsets: Mapping[str, int]) -> None:
    """Every row below the offsets is there once: partition p holds the numbers p, p + 2, ..."""
    ends = {int(key.rpartition("/")[2]): end for key, end in offsets.items()}
    expected = sorted(part + PARTITIONS * place for part, end in ends.items() for place in range(end))
    assert sorted(rows.column("order_id").to_pylist()) == expected, (rows.num_rows, ends)


def _median(values: list[float]) -> str:
    return f"median {statistics.median(values):.2f}, max {max(values):.2f}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--backups", type=int, default=20)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--pause", type=float, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running_broker(Path(name) / "kafka") as brokers:
        figures = play(
            Path(name), brokers, backups=options.backups, rate=options.rate, pause_s=options.pause,
            say=lambda text: print(text, flush=True),
        )  # fmt: skip
    print(
        f"{len(figures.backup_s)} backups of {figures.produced:,} rows produced at {options.rate:,}/s, "
        f"{figures.moves} moves, {figures.backfills} backfills, {figures.kills} killed attempts: all equal. "
        f"Backup s: {_median(figures.backup_s)}; restore s: {_median(figures.restore_s)}; "
        f"new files after the first: {_median([float(count) for count in figures.files_new[1:]])} "
        f"of {figures.files[-1]}; new MB: {_median([count / 1e6 for count in figures.bytes_new[1:]])} "
        f"of {figures.bytes[-1] / 1e6:.1f}."
    )


if __name__ == "__main__":
    main()
