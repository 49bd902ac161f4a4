"""A home that loads files into a warehouse on a store is frozen at each point of a commit; another home takes over.

As `test_frozen_writers.py`, for tables that a connector of files and a flow fill, and for what keeps and corrects their
segments: retention, merges, backfills. No Kafka.
"""

import json
import time
from pathlib import Path

import pytest

import hybrid
from hybrid.lake.failpoints import PLAN_STEPS, POSITIONS
from tests.s3_server import needs_s3
from tests.soak.freezing import FILE_VERBS, FrozenWorker, Homes, failpoints_of, homes_on_a_store

pytestmark = [needs_s3, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

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


def test_a_loader_that_is_frozen_anywhere_commits_nothing_after_a_take_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path)
    write_documents(tmp_path, files.folder)
    files.add(with_expired=False)
    with homes_on_a_store(tmp_path, monkeypatch) as homes:
        homes.writer.do("create", LOADED)
        homes.writer.do("ingest", LOADED)
        homes.writer.do("flow", FLOWED)
        for position in POSITIONS:
            files.add()
            freeze_loads(homes, files, position)
            freeze_flows(homes, files, position)
        freeze_plans(homes, files)
        homes.check_logs()
        check_acts(homes)
    assert {*failpoints_of(FILE_VERBS), *PLAN_STEPS} == set(homes.frozen_at)


def freeze_loads(homes: Homes, files: Files, position: str) -> None:
    """A file is loaded; its old rows expire, its others are merged with the rows before, and all are corrected."""
    for kind in ("history", "retention", "merge", "backfill"):
        homes.freeze(LOADED, f"{kind}.commit.{position}")
        if kind == "retention":
            files.expire()
        if kind == "backfill":  # each of the two homes has corrected them, if the first one's commit was done
            files.correct(2 if position == "after" else 1)
        files.check_loaded(homes.writer)


def freeze_plans(homes: Homes, files: Files) -> None:
    """A backfill's plan is brought to the store; after the backfill its staged rows are removed there."""
    for step in PLAN_STEPS:
        homes.freeze(LOADED, step, "backfill")
        files.correct(2 if step == "plan.removed" else 1)
        files.check_loaded(homes.writer)


def freeze_flows(homes: Homes, files: Files, position: str) -> None:
    """The file is read; then all files are read again."""
    for kind in ("flow", "refresh"):
        homes.freeze(FLOWED, f"{kind}.commit.{position}")
        files.check_flowed(homes.writer)


def check_acts(homes: Homes) -> None:
    """Each operation is there as often as it was needed: nothing was done twice, nothing was left out."""
    loaded, flowed, times = homes.count_acts(LOADED), homes.count_acts(FLOWED), len(POSITIONS)
    # Two homes did one of the backfills at each of these: after the commit, and after the removal of its rows.
    backfills = times + 1 + len(PLAN_STEPS) + 1
    assert loaded == {
        "create": 2, "history": 1 + times, "retention": times, "merge": times, "backfill": backfills,
    }  # fmt: skip
    # A refresh is a commit to each half. After the first of a frozen home, the next home begins one of its own.
    assert flowed == {"create": 2, "flow": 1 + 2 * times, "refresh": 2 * times + 1}


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
