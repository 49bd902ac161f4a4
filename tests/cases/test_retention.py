"""Retention beside moves, replacements and reverts, on a table that Kafka fills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.move.retention.report import RetentionReport
from hybrid.move.retention.run import run_retention
from hybrid.replace.lineage import list_replacements
from hybrid.replace.revert import revert
from tests.cases.conftest import make_table
from tests.cases.tables import HOUR, LiveTable

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
New = Callable[..., LiveTable]


def aging(new_table: New, **options: object) -> LiveTable:
    """Rows 0 to 3, one an hour and a segment each; both halves keep nine hours, and it is ten: row 0 has expired."""
    table = new_table(flush_rows=1, **options)
    table.spec = replace(table.spec, retention={half: 9 * HOUR for half in Half})
    for hour in range(4):
        table.produce({"id": hour, "key": "k", "value": hour, "ts": hour * HOUR})
    table.ingest()
    return table


@pytest.fixture(scope="module")
def templates(
    broker: str, workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory
) -> tuple[LiveTable, LiveTable]:
    """Such a table after a move of its first bucket, and after a move of all."""
    begun = aging(partial(make_table, broker, workbench, tmp_path_factory.mktemp("begun")))
    begun.move(1)
    moved = begun.copied(tmp_path_factory.mktemp("moved"))
    moved.move(None)
    return begun, moved


@pytest.fixture
def begun(templates: tuple[LiveTable, LiveTable], tmp_path: Path) -> LiveTable:
    """A table of four buckets of which one has moved: made once, copied for each test."""
    return templates[0].copied(tmp_path)


@pytest.fixture
def moved(templates: tuple[LiveTable, LiveTable], tmp_path: Path) -> LiveTable:
    """A table of four buckets that have moved: made once, copied for each test."""
    return templates[1].copied(tmp_path)


def retain(table: LiveTable) -> RetentionReport:
    return run_retention(table.context)


def test_nothing_goes_before_it_has_moved(new_table: New) -> None:
    table = aging(new_table)
    assert "have not moved yet" in retain(table).sentence
    assert table.queried() == [0, 1, 2, 3]
    table.move(2)
    report = retain(table)
    assert report.rows == {"OFFLINE": 1, "REALTIME": 1}
    assert table.visible() == table.queried() == [1, 2, 3]
    table.produce({"id": 9, "key": "late", "ts": 0})
    table.ingest()
    assert "have not moved yet" in retain(table).sentence and table.queried() == [1, 2, 3, 9]
    table.move(None)
    assert retain(table).rows["OFFLINE"] == 1
    assert table.visible() == table.queried() == [1, 2, 3]


def test_a_move_that_runs_meanwhile_plans_anew(begun: LiveTable) -> None:
    table = begun
    table.said.when("Merging", lambda: retain(table))
    assert table.move(None).moved and table.said.all_happened
    assert any("came first; planning again" in said for said in table.said.messages)
    assert table.visible() == table.queried() == [1, 2, 3]
    assert table.boundary.time_ms == 4 * HOUR and table.boundary.floor_ms == 1


def test_a_move_that_comes_between_the_look_and_the_act(begun: LiveTable) -> None:
    table = begun
    table.said.when("Counting what has not moved", lambda: table.move(None))
    assert retain(table).rows == {"OFFLINE": 1, "REALTIME": 1}
    assert table.said.all_happened and table.boundary.time_ms == 4 * HOUR
    assert table.visible() == table.queried() == [1, 2, 3]


def test_a_replacement_of_a_segment_that_expires_meanwhile(moved: LiveTable) -> None:
    table = moved
    table.said.when("Comparing", lambda: retain(table))
    table.replace("t_0_0_0", [{"id": 0, "key": "k", "value": 70, "ts": 0}])
    assert table.said.all_happened
    assert table.queried() == [0, 1, 2, 3], "it is planned anew, as a segment that comes"
    assert retain(table).rows == {"OFFLINE": 1} and table.queried() == [1, 2, 3]


def test_a_replacement_whose_segments_have_expired_cannot_be_reverted(moved: LiveTable) -> None:
    table = moved
    first, second = "t_0_0_0", f"t_{HOUR}_{HOUR}_0"
    table.replace(first, [{"id": 0, "key": "k", "value": 70, "ts": 0}])
    table.replace(second, [{"id": 1, "key": "k", "value": 71, "ts": HOUR}])
    newest, older = list_replacements(table.layout)
    assert retain(table).rows == {"OFFLINE": 1, "REALTIME": 1}
    with pytest.raises(ConflictError, match="does not exist any more"):
        revert(table.context, older.id)
    assert revert(table.context, newest.id).committed
    assert table.visible() == table.queried() == [1, 2, 3]


def test_a_key_does_not_come_back(new_table: New) -> None:
    """K deleted; its delete marker moved; another bucket replaced; retention."""
    table = aging(new_table, upsert=True, merge="latest")
    table.produce({"id": 5, "key": "gone", "value": 1, "ts": 3 * HOUR})
    table.produce({"id": 5, "key": "gone", "value": 9, "ts": 0, "deleted": True})
    table.ingest()
    table.move(None)
    assert table.visible() == table.queried() == [3]
    table.replace(f"t_{HOUR}_{HOUR}_0", [{"id": 1, "key": "other", "value": 1, "ts": HOUR}])
    report = retain(table)
    assert report.markers == 1
    assert table.visible() == table.queried() == [1, 3]
    assert not retain(table).committed
    table.now += 5 * HOUR
    retain(table)
    assert table.visible() == table.queried() == []
    assert table.segments() == {}


def test_a_scheduled_run_drops_a_share_of_the_rows_and_the_rest_later(moved: LiveTable) -> None:
    """23: all four segments have expired. A share bounds a run, not a person; and at least one segment goes."""
    table = moved
    table.now = 1000 * HOUR
    for share, left in ((0.5, [2, 3]), (0.5, [3]), (0.1, [])):
        report = run_retention(table.context, share_max=share)
        assert report.rows["OFFLINE"] == report.rows["REALTIME"] and table.visible() == left
        assert ("left to the next run" in report.sentence) == bool(left)
    assert not retain(table).committed
