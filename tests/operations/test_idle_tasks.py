"""A task that has nothing to do says why, and which command comes next. No JVM, and Kafka is not asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.catalog.run_record import RunOutcome
from hybrid.config.input_rules import InputRules
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.task_schedules import OPTIMIZE_TASK
from hybrid.home.home import ServerTask
from hybrid.operations import idle_tasks
from hybrid.operations.lag import Lag
from hybrid.operations.moves import move
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from hybrid.rpc.verbs import VERBS
from hybrid.table.state import Consuming
from tests.query.halves import KEY, Halves
from tests.serve.app import CONSUMING, MOVE, OFFLINE, REALTIME, SCHEMA, row

MOVES = {"task": {"taskTypeConfigsMap": {MOVE: {"bucketTimePeriod": "1h", "bufferTimePeriod": "1h"}}}}
DAYS = {"1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "1d"}
MERGES = {"task": {"taskTypeConfigsMap": {MERGE_TASK: DAYS}}}


@pytest.fixture
def hy(home: Path) -> Hybrid:
    home.mkdir(exist_ok=True)
    return hybrid.connect(home)


@pytest.fixture
def orders(hy: Hybrid) -> Halves:
    """A table with moves and merges, without a row."""
    configs = [(REALTIME | MOVES, "realtime"), (OFFLINE | MERGES, "offline")]
    spec = hy.validate(TableDocuments((SCHEMA, "schema"), configs))
    halves = Halves.create(hy.settings.warehouse, spec)
    hy.context.definitions.add(_definition(spec))
    return halves


@pytest.fixture
def lags(monkeypatch: pytest.MonkeyPatch) -> Callable[[Lag], None]:
    return lambda lag: monkeypatch.setattr(idle_tasks, "lag_of", lambda *_: lag)


WAITING = "Nothing to move: table 'orders' has no realtime rows yet."


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_move_names_messages_that_are_not_ingested(
    hy: Hybrid, orders: Halves, lags: Callable[[Lag], None], dry_run: bool
) -> None:
    lags(Lag(12))
    words = "12 messages in topic 'orders' are not ingested yet: `hybrid ingest orders` brings them."
    assert hy.table("orders").move(dry_run=dry_run).sentence == f"{WAITING} {words}"
    assert [run.result for run in hy.runs("orders")] == ([] if dry_run else [f"{WAITING} {words}"])
    lags(Lag(1))
    assert (
        hy.table("orders")
        .move()
        .sentence.endswith(" 1 message in topic 'orders' is not ingested yet: `hybrid ingest orders` brings it.")
    )


def test_a_move_of_a_paused_table_names_the_command_that_starts_it(
    hy: Hybrid, orders: Halves, lags: Callable[[Lag], None]
) -> None:
    lags(Lag(3))
    hy.table("orders").pause("upgrade")
    words = "ingestion is paused, and `hybrid connector start orders` lets it continue."
    assert hy.table("orders").move().sentence.endswith(f"not ingested yet: {words}")


def test_a_move_beside_a_paused_connector_names_the_command_that_starts_it(
    hy: Hybrid, orders: Halves, lags: Callable[[Lag], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lags(Lag(3))
    monkeypatch.setattr("hybrid.operations.connectors.progress.pause_offsets", lambda *_: {})
    words = "ingestion is paused, and `hybrid connector start orders` lets it continue."
    assert hy.table("orders").move().sentence.endswith(f"not ingested yet: {words}")


@pytest.mark.parametrize(
    ("lag", "words"),
    [
        (Lag(0), ""),
        (Lag(None), ""),
        (Lag(None, "Kafka does not answer."), " What waits in topic 'orders' is unknown: Kafka does not answer."),
        (
            Lag(None, "Topic 'orders' is gone.", "hybrid connector reset orders"),
            " What waits in topic 'orders' is unknown: Topic 'orders' is gone. `hybrid connector reset orders`",
        ),
    ],
)
def test_a_move_without_messages(hy: Hybrid, orders: Halves, lags: Callable[[Lag], None], lag: Lag, words: str) -> None:
    lags(lag)
    assert hy.table("orders").move().sentence == WAITING + words


def test_a_scheduled_move_does_not_ask_kafka(hy: Hybrid, orders: Halves, lags: Callable[[Lag], None]) -> None:
    lags(Lag(12))
    outcome, rules = RunOutcome(), InputRules(hy.home)
    for scheduled in (True, False):
        home = hy.context.for_task(ServerTask("run-1", outcome, rules, scheduled), Silent())
        assert ("12 messages" in move(home, home.table("orders")).sentence) is not scheduled


def test_a_merge_of_an_empty_half_names_the_move(hy: Hybrid, orders: Halves) -> None:
    found = VERBS["task_run"].call(hy, table="orders", type=MERGE_TASK)
    assert found["sentence"].endswith(" No row is in OFFLINE yet: `hybrid move orders` moves rows.")
    orders.commit_offline([row(1, 1000, 0, "orders_1000_1000_0")])
    assert "hybrid move" not in VERBS["task_run"].call(hy, table="orders", type=MERGE_TASK)["sentence"]


def test_a_merge_of_a_table_without_moves_names_none(hy: Hybrid) -> None:
    spec = hy.validate(TableDocuments((SCHEMA, "schema"), [(OFFLINE | MERGES, "offline")]))
    Halves.create(hy.settings.warehouse, spec)
    hy.context.definitions.add(_definition(spec))
    assert "hybrid move" not in VERBS["task_run"].call(hy, table="orders", type=MERGE_TASK)["sentence"]


def test_optimize_names_the_seal_of_consuming_segments(hy: Hybrid, orders: Halves) -> None:
    assert "segment seal" not in VERBS["task_run"].call(hy, table="orders", type=OPTIMIZE_TASK)["sentence"]
    consuming = Consuming(CONSUMING, 1, 0, 1, 100, 1_632_463_351_000)
    orders.commit_realtime(
        [row(1, 1000, 0, CONSUMING)], offsets={KEY: 1}, consuming={KEY: consuming}, sequences={KEY: 2}
    )
    words = "All of its segments are consuming: `hybrid segment seal orders` seals them."
    assert VERBS["task_run"].call(hy, table="orders", type=OPTIMIZE_TASK)["sentence"].endswith(words)
