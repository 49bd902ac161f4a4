"""A request that is rejected, and a dry run, is no run of the table: over every verb that a server queues."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.catalog.run_record import RunRecord, RunRequest, failed_state
from hybrid.errors import (
    ConflictError,
    DataError,
    HybridError,
    MachineError,
    NotFoundError,
    QueryError,
    RightError,
    SpecError,
    StreamError,
    UsageError,
)
from hybrid.home.accounts import ASKING_RIGHT, Right
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.run_views import HIDDEN_ERROR
from hybrid.operations.schedules import SCHEDULE
from hybrid.operations.tables.status import status_of
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.rpc.json_views import run_view
from hybrid.rpc.queue import carry_out, enqueue
from hybrid.rpc.verbs import VERBS, Verb
from tests.serve.app import App, Worker

HEAVY = {name: verb for name, verb in VERBS.items() if verb.run_type is not None}
SCHEMA = {
    "schemaName": "one",
    "dimensionFieldSpecs": [{"name": "k", "dataType": "INT"}],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}
CONFIG = {
    "tableName": "one",
    "tableType": "OFFLINE",
    "segmentsConfig": {
        "schemaName": "one", "timeColumnName": "ts", "retentionTimeUnit": "DAYS", "retentionTimeValue": "3",
    },
}  # fmt: skip
WRONG: list[HybridError] = [
    UsageError("Give --from."),
    SpecError("'whre' is no key."),
    NotFoundError("Segment 'x' does not exist."),
    RightError("No."),
    QueryError("No column 'nope'.", pinot_code=710),
    QueryError("Cannot be read.", pinot_code=150),
]
FAILURES: list[Exception] = [
    ConflictError("Another one runs."),
    DataError("Row 7."),
    StreamError("Kafka is silent."),
    MachineError("The disk is full."),
    QueryError("Out of memory.", pinot_code=200),
    QueryError("Too slow.", pinot_code=250),
    ZeroDivisionError("what"),
]


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    found = hybrid.connect(home)
    found.create_table(SCHEMA, CONFIG)
    yield found
    found.close()


def carried(
    here: Hybrid, verb: str, outcome: Exception | dict[str, Any], source: str = "http", **more: Any
) -> RunRecord:
    """How a queued run of a verb ends whose work ends so."""

    def call(home: Hybrid, **_: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    run_id, kind = f"run-{len(here.context.catalog.runs.counts())}-{verb}-{id(outcome)}", HEAVY[verb].run_type
    request = RunRequest(run_id, "one", kind or "", verb, {"table": "one", **more}, source)
    runs = here.context.catalog.runs
    assert runs.enqueue(request) is not None
    claimed = runs.claim()
    assert claimed is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hybrid.rpc.queue._commit_first", lambda *_: None)
        carry_out(here, claimed, lambda: True, {verb: Verb(call, Right.READ)})
    return here.run(run_id)


def listed(here: Hybrid) -> list[str]:
    return [run.state for run in here.runs("one")]


@pytest.mark.slow
@pytest.mark.parametrize("verb", HEAVY)
def test_a_wrong_request_is_no_run_of_the_table(here: Hybrid, verb: str) -> None:
    for error in WRONG:
        if verb == "ingest" and isinstance(error, NotFoundError):
            continue  # a topic that is not there fails a run, whoever has asked
        run = carried(here, verb, error)
        assert run.state == "REJECTED" and run.error is not None and run.error["error"] == str(error)
    assert listed(here) == [] and here.status()[0].last_task is None
    assert here.context.catalog.runs.counts() == {} == here.context.catalog.runs.ended_counts()


@pytest.mark.slow
@pytest.mark.parametrize("verb", HEAVY)
def test_work_that_fails_is_a_failed_run(here: Hybrid, verb: str) -> None:
    for error in FAILURES:
        assert carried(here, verb, error).state == "FAILED"
    assert listed(here) == ["FAILED"] * len(FAILURES)
    assert here.status()[0].last_task is not None
    assert sum(here.context.catalog.runs.ended_counts().values()) == len(FAILURES)


@pytest.mark.slow
@pytest.mark.parametrize("verb", HEAVY)
def test_a_dry_run_is_marked_and_no_run_of_the_table(here: Hybrid, verb: str) -> None:
    done = carried(here, verb, {"sentence": "Would move 7 rows."}, dry_run=True)
    silent = carried(here, verb, StreamError("Kafka is silent."), dry_run=True)
    wrong = carried(here, verb, UsageError("Give --from."), dry_run=True)
    assert (done.state, silent.state, wrong.state) == ("DRY_RUN", "DRY_RUN", "REJECTED")
    assert done.result == "Would move 7 rows." and silent.error is not None, "who asked gets the error"
    assert listed(here) == ["DRY_RUN", "DRY_RUN"] and here.status()[0].last_task is None
    assert here.context.catalog.runs.ended_counts() == {}
    carried(here, verb, {"sentence": "Moved 7 rows."})
    carried(here, verb, {"sentence": "Would move 8 rows."}, dry_run=True)
    last = here.status()[0].last_task
    assert last is not None and "Moved 7 rows." in last


@pytest.mark.slow
def test_a_scheduled_run_is_never_a_wrong_request(here: Hybrid) -> None:
    for error in WRONG:
        assert carried(here, "task_run", error, source=SCHEDULE).state == "FAILED"


@pytest.mark.parametrize("kind", ["connector", "flow"])
def test_what_a_server_does_of_itself_fails(kind: str) -> None:
    assert [failed_state(error, kind) for error in WRONG] == ["REJECTED", *5 * ["FAILED"]]
    assert failed_state(NotFoundError("Topic 'x' does not exist."), "ingest") == "FAILED"


def test_wrong_requests_of_this_process(here: Hybrid) -> None:
    table = here.table("one")
    wrong = [
        lambda: here.backfills.plan("one", BackfillChange(update="k = 1", start="soon")),
        lambda: here.backfills.plan("one", BackfillChange(update="nope = 1")),
        lambda: here.backfills.plan("one", BackfillChange(delete=True, where="k = = 1")),
        lambda: here.backfills.run("backfill-0", BackfillOptions()),
        lambda: table.move(),
        lambda: table.ingest(),
        lambda: table.upkeep.merge_segments(),
        lambda: table.revert("replace-0"),
        lambda: table.seal(),
    ]
    for ask in wrong:
        with pytest.raises(HybridError):
            ask()
    assert listed(here) == [] and status_of(here.context, here.context.table("one")).last_task is None


@pytest.mark.slow
def test_wrong_requests_through_a_server(tmp_path: Path) -> None:
    app = App(tmp_path / "home")
    try:
        app.home.create_table(SCHEMA, CONFIG)
        with Worker(app.home), hybrid.connect(app.url) as remote:
            for verb, arguments in (
                ("backfill_plan", {"table": "one", "update": "nope = 1"}),
                ("backfill_plan", {"table": "one"}),
                ("backfill_plan", {"table": "two", "update": "k = 1"}),
                ("backfill_run", {"backfill": "backfill-0"}),
                ("move", {"table": "one"}),
                ("move", {"table": "one", "dry_run": True}),
                ("task_run", {"table": "one", "type": "MergeRollupTask"}),
                ("task_run", {"table": "one", "type": "Retention"}),
                ("revert", {"table": "one", "entry": "replace-0"}),
                ("seal", {"table": "one"}),
            ):
                with pytest.raises(HybridError):
                    remote._client.call(verb, arguments)  # type: ignore[attr-defined]
            assert remote.runs() == [] and remote.status()[0].last_task is None
            dry = remote.table("one").upkeep.drop_expired(dry_run=True)
            assert dry.dry_run and [run.state for run in remote.runs()] == ["DRY_RUN"]
            assert remote.status()[0].last_task is None
    finally:
        app.close()


def test_an_account_that_may_only_read_sees_no_error_of_a_dry_run(here: Hybrid) -> None:
    carried(here, "job_run", DataError("'ada' is no number."), dry_run=True)
    token = ASKING_RIGHT.set(Right.READ)
    try:
        assert run_view(here.runs("one")[0])["result"] == HIDDEN_ERROR
    finally:
        ASKING_RIGHT.reset(token)


@pytest.mark.slow
def test_old_dry_runs_go_and_keep_no_run_of_the_table(here: Hybrid) -> None:
    """A schedule needs the newest run of its type, which no dry run displaces."""
    runs = here.context.catalog.runs
    carried(here, "move", {"sentence": "Moved."})
    for _ in range(3):
        carried(here, "move", {"sentence": "Would move."}, dry_run=True)
    carried(here, "move", UsageError("Wrong."))
    assert runs.remove_old(here.context.now_ms() + 40 * 86_400_000) > 0
    assert "DONE" in listed(here)


def test_a_queue_takes_what_it_took_before(here: Hybrid) -> None:
    with contextlib.suppress(HybridError):
        enqueue(here, "move", {"table": "one", "dry_run": True}, "http")
    first = enqueue(here, "task_run", {"table": "one", "type": "RetentionManager", "dry_run": True}, "http")
    assert first is not None and first.dry_run and first.state == "QUEUED"
    assert here.status()[0].last_task is None, "also while it waits"
