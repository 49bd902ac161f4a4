"""The files that tables of the tests of frozen writers are filled from, without Kafka, and their documents."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hybrid
from hybrid.lake.commit_context import CommitContext
from tests.soak.freezing import FrozenWorker, Homes, homes_on_a_store

LOADED, FLOWED = "loaded", "flowed"
DAY_MS = 86_400_000
# A day that has closed, and one that retention has passed: the rows of each file.
RECENT_DAYS, EXPIRED_DAYS = 3, 400
ROWS = 5
FLOW = """
from hybrid import flows

flows.create_streaming_table("flowed")


@flows.append_flow(target="flowed", name="files")
def files():
    return flows.read_files_stream("FOLDER", format="json").load()
"""


class Files:
    """The files that both tables are loaded from, and the rows that must be visible: `rev` by `id`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "in"
        self.folder.mkdir()
        today = int(time.time() * 1000) // DAY_MS
        self._recent_ms, self._expired_ms = (today - RECENT_DAYS) * DAY_MS, (today - EXPIRED_DAYS) * DAY_MS
        self._count = 0
        self.loaded: dict[int, int] = {}
        self.flowed: set[int] = set()
        self.expired: set[int] = set()

    def add(self, *, with_expired: bool = True) -> None:
        """One more file, with rows of both days."""
        lines = []
        for first_ms in (self._recent_ms, self._expired_ms)[: 1 + with_expired]:
            for _ in range(ROWS):
                number, self._count = self._count, self._count + 1
                lines.append(json.dumps({"id": number, "rev": 0, "ts": first_ms + number}))
                self.loaded[number] = 0
                self.flowed.add(number)
                self.expired |= {number} if first_ms == self._expired_ms else set()
        (self.folder / f"{self._count:06d}.json").write_text("\n".join([*lines, ""]))

    def expire(self) -> None:
        for number in self.expired:
            self.loaded.pop(number, None)

    def correct(self, times: int) -> None:
        self.loaded = {number: rev + times for number, rev in self.loaded.items()}

    def check_loaded(self, worker: FrozenWorker) -> None:
        assert rows_of(worker.home, f"select id, rev from {LOADED}") == sorted(self.loaded.items())

    def check_flowed(self, worker: FrozenWorker) -> None:
        assert rows_of(worker.home, f"select id from {FLOWED}") == sorted((number,) for number in self.flowed)


def rows_of(home: Path, sql: str) -> list[tuple]:
    hy = hybrid.connect(home)
    try:
        return sorted(tuple(row) for row in hy.query(f"{sql} limit 100000").rows)
    finally:
        hy.close()


def write_documents(folder: Path, source: Path) -> None:
    """The documents of the loaded table, and the file of the flow."""
    numbers = [{"name": "id", "dataType": "LONG"}, {"name": "rev", "dataType": "LONG"}]
    time_spec = {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    section = {"timeColumnName": "ts", "schemaName": LOADED}
    connector = {
        "name": "files",
        "transport": {"name": "file_input", "config": {"path": str(source), "follow": True}},
        "format": {"name": "json", "config": {"update_format": "raw"}},
    }
    merges = {"1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "1d"}
    documents = {
        "schema": {"schemaName": LOADED, "dimensionFieldSpecs": numbers, "dateTimeFieldSpecs": [time_spec]},
        "realtime": {
            "tableName": LOADED, "tableType": "REALTIME", "segmentsConfig": section, "connectors": [connector],
        },
        "offline": {
            "tableName": LOADED,
            "tableType": "OFFLINE",
            "segmentsConfig": {**section, "retentionTimeUnit": "DAYS", "retentionTimeValue": "30"},
            "task": {"taskTypeConfigsMap": {"MergeRollupTask": merges}},
        },
    }  # fmt: skip
    for name, document in documents.items():
        (folder / f"{LOADED}_{name}.json").write_text(json.dumps(document))
    (folder / f"{FLOWED}.py").write_text(FLOW.replace("FOLDER", str(source)))


@contextmanager
def loaded_homes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, workbench: CommitContext
) -> Iterator[tuple[Homes, Files]]:
    """Two homes over one store, whose table has the rows of a first file; and the files."""
    files = Files(folder)
    write_documents(folder, files.folder)
    files.add(with_expired=False)
    with homes_on_a_store(folder, monkeypatch, workbench) as homes:
        homes.writer.do("create", LOADED)
        homes.writer.do("ingest", LOADED)
        yield homes, files
