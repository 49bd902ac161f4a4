"""Compaction on real halves: what is superseded goes, and no query or revert sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import BoundaryMode, CompactionConfig, UpsertConfig
from hybrid.errors import ConflictError, SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.table_context import TableContext
from hybrid.move.compaction import run_compaction
from hybrid.move.merging.report import MergeReport
from hybrid.table.boundary import Boundary
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR
from tests.move.clocked import DAY
from tests.move.test_merging import STORED, Merging, row
from tests.query.halves import KEY, Halves, orders_spec

pytestmark = pytest.mark.spark

# After all that tests write, by the clock of the machine.
FAR = 10_000_000_000_000
Make = Callable[..., Merging]


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Make:
    """An upsert table by `amount`, of which a segment is compacted when a row in four is superseded."""

    def made(mode: BoundaryMode | None = None, config: CompactionConfig | None = None, **changes: Any) -> Merging:
        spec = orders_spec(upsert=True, deletes=True)
        wanted = config or CompactionConfig(buffer_ms=0, percent_min=25, rows_min=1)
        spec = replace(spec, upsert=UpsertConfig("amount", "gone"), compaction=wanted, **changes)
        return Merging(Halves.create(tmp_path, spec, mode), workbench, now=FAR)

    return made


def compact(table: Merging, **options: Any) -> MergeReport:
    return run_compaction(table.halves.context(table.bench), **options)


def old_and_new(table: Merging) -> None:
    """Of eight rows in `old` three are superseded: by OFFLINE, by a delete marker, and by REALTIME."""
    table.add(*(row(number, number, number, "old", 1.0, op="row") for number in range(8)))
    table.add(row(0, DAY, 10, "new", 2.0, op="row"), row(1, DAY, 11, "new", 2.0, op="delete"))
    table.halves.commit_realtime([row(2, 9 * DAY, 2000, "orders__0__0__x", 2.0, op="row")], offsets={KEY: 2001})


def test_superseded_rows_go_and_queries_see_no_difference(make: Make) -> None:
    table = make()
    old_and_new(table)
    before = table.ask()
    dry = compact(table, dry_run=True)
    said = "1 segment of 'orders' with 8 rows: 3 superseded rows left out."
    assert dry.sentence == f"Would compact {said}" and not dry.committed
    report = compact(table)
    assert report.sentence == f"Compacted {said}"
    assert table.ask() == before
    assert [found[1] for found in table.ask(STORED)] == [0, 3, 4, 5, 6, 7]  # 1 is hidden by its marker
    assert table.segments() == ["new", "orders_0_7_0"]
    again = compact(table)
    assert again.sentence == ("Nothing to compact in 'orders': no segment holds enough superseded rows (at most 0).")
    table.revert(str(report.merged[0].act))
    assert table.segments() == ["new", "old"] and table.ask() == before


def test_a_segment_of_nothing_else_goes(make: Make) -> None:
    table = make()
    table.add(row(1, 5, 0, "old", 1.0, op="row"), row(1, 6, 1, "new", 2.0, op="row"))
    (merged,) = compact(table).merged
    assert (merged.segments, merged.into) == (("old",), ()) and table.segments() == ["new"]
    assert [found[0] for found in table.ask()] == [1]


def test_a_correction_supersedes_nothing_for_it_may_be_reverted(make: Make) -> None:
    table = make()
    table.add(row(1, 5, 0, "old", 1.0, op="row"))
    correction = KEY._replace(connector=REPLACEMENT_CONNECTOR, topic="act-000000000001")
    table.add(row(1, 6, 0, "new", 2.0, op="row", key=correction), kind="replace")
    assert not compact(table).committed


def test_what_a_correction_put_in_supersedes_nothing_while_it_can_be_reverted(make: Make) -> None:
    table = make(revert_window_ms=FAR)
    table.add(
        row(1, 5, 0, "old", 1.0, op="row"), row(1, 6, 0, "new", 2.0, op="row", key=KEY._replace(connector="replay/x"))
    )
    table.halves.commit_entry("backfill", segments_to=["new"])
    table.halves.commit_entry("merge", segments_from=["old"], segments_to=["old"])
    report = compact(table)
    assert not report.committed and report.kept == {"corrections that can still be reverted": ("new",)}
    table.halves.spec = replace(table.halves.spec, revert_window_ms=0)
    assert compact(table).committed


def test_it_is_not_reverted_when_what_superseded_the_rows_may_have_gone(make: Make) -> None:
    table = make()
    table.add(
        row(1, 5, 0, "old", 1.0, op="row"), row(2, 5, 1, "old", 1.0, op="row"), row(1, 6, 2, "new", 2.0, op="row")
    )
    (merged,) = compact(table).merged
    table.add(kind="retention")
    with pytest.raises(ConflictError, match=r"'retention-[0-9]+' of .* has removed rows that superseded them"):
        table.revert(str(merged.act))
    assert "old" not in table.segments()


def test_rows_of_one_message_are_told_apart(make: Make) -> None:
    table = make()
    table.add(
        row(1, 5, 7, "old", 1.0, op="row"), row(2, 5, 7, "old", 1.0, op="row"), row(1, 6, 8, "new", 2.0, op="row")
    )
    assert compact(table).rows_written == 1
    assert [found[:2] for found in table.ask()] == [(1, 2.0), (2, 1.0)]


def test_flows_supersede_rows_of_their_own_alone(make: Make) -> None:
    table = make(by_flows=True)
    other = KEY._replace(connector="other")
    table.add(row(1, 5, 0, "old", 1.0, op="row"), row(1, 6, 1, "new", 2.0, op="row", key=other))
    assert not compact(table).committed


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (CompactionConfig(0, 38, 1), "no segment holds enough superseded rows (at most 3)"),
        (CompactionConfig(0, 25, 4), "no segment holds enough superseded rows (at most 3)"),
        (CompactionConfig(FAR, 25, 1), "no segment was last written before the buffer"),
    ],
)
def test_what_is_not_worth_it_yet(make: Make, config: CompactionConfig, sentence: str) -> None:
    table = make(config=config)
    old_and_new(table)
    assert compact(table).sentence == f"Nothing to compact in 'orders': {sentence}."


def test_a_winner_that_goes_meanwhile_is_heeded(make: Make) -> None:
    table = make()
    table.add(row(1, 5, 0, "old", 1.0, op="row"), row(1, 6, 1, "new", 2.0, op="row"))
    table.meanwhile = lambda: table.add(row(9, 6, 2, "other"), kind="backfill")
    assert compact(table).committed  # planned anew, as the winner is still there
    assert any("planning again" in said for said in table.said)


def test_where_the_boundary_hides_rows_nothing_is_superseded_for_good(make: Make) -> None:
    table = make(BoundaryMode.PINOT)
    table.add(row(1, 5, 0, "old", 1.0, op="row"), row(1, 6, 1, "new", 2.0, op="row"))
    assert "its boundary hides offline rows" in compact(table).sentence
    exact = table.half().offline.boundary
    assert isinstance(exact, Boundary)


def test_a_table_without_the_task_says_so(make: Make) -> None:
    table = make()
    with pytest.raises(SpecError, match="has no UpsertCompactionTask"):
        run_compaction(TableContext(table.bench, orders_spec(upsert=True), table.halves.layout))
