"""Acts between the plan of a swap and its commit: which are stepped over, and which the swap is planned anew for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from hybrid.config.table_config import Half, MessageFormat
from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.create import arrow_schema
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.replace import swap
from hybrid.replace.conflict_check import is_overtaken
from hybrid.replace.ending import end_replacement
from hybrid.replace.job import run_job
from hybrid.replace.lineage import lineage_of, list_replacements
from hybrid.replace.opening import open_replacement
from hybrid.replace.report import JobReport
from hybrid.replace.revert import revert
from hybrid.table.boundary import Boundary
from hybrid.table.plans import Counts
from hybrid.table.state import LineagePointer, next_act, to_user_metadata
from hybrid.table.upsert_order import replacement_topic
from tests.query.halves import Halves, Row, orders_spec
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row
from tests.replace.tables import BOUNDARY_MS, SEGMENT, Table

NAMES = (("a",), ("a", "new"))
TIME = 1632463351000


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    """A table of the segments `a` and `b`, without Spark."""
    halves = Halves.create(tmp_path, orders_spec())
    lay(halves, "a"), lay(halves, "b")
    return halves


def lay(halves: Halves, segment: str, kind: str = "move", boundary: Boundary | None = None) -> None:
    values = {"order_id": 1, "customer": "a", "amount": 1.0, "ts": 5}
    halves.commit_offline([Row(values, 5, 1, segment=segment)], boundary, kind)


def offline(halves: Halves) -> HalfSnapshot:
    return open_half(halves.layout.half(Half.OFFLINE))


def add_column(halves: Halves) -> None:
    """An act of ours, as `evolve` is."""
    newest = offline(halves).offline
    state = replace(newest, act=replace(newest.act, id="evolve-9", number=9, kind="evolve", detail={}))
    properties = CommitProperties(custom_metadata={"userMetadata": to_user_metadata(state)})
    table = DeltaTable(str(halves.layout.half(Half.OFFLINE)))
    table.alter.add_columns([Field("more", PrimitiveType("string"))], commit_properties=properties)
    assert offline(halves).state.act.id == "evolve-9"


def foreign(halves: Halves) -> None:
    path = str(halves.layout.half(Half.OFFLINE))
    schema = pa.schema(DeltaTable(path).schema().to_arrow())
    rows = pa.Table.from_pylist([dict.fromkeys(schema.names) | {"_hy_segment": "c"}], schema=schema)
    write_deltalake(path, rows, mode="append")


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (lambda halves: None, False),
        (lambda halves: [lay(halves, "b", kind) for kind in ("replace", "backfill", "revert", "move", "flow")], False),
        (lambda halves: lay(halves, "a"), True),
        (lambda halves: lay(halves, "new"), True),
        (lambda halves: lay(halves, "b", boundary=Boundary(9)), True),
        (add_column, True),
        (foreign, True),
    ],
    ids=["nothing", "others", "own segment", "a name it gives", "boundary", "columns", "foreign commit"],
)
def test_what_overtakes_a_swap(halves: Halves, between: Callable[[Halves], Any], expected: bool) -> None:
    base = offline(halves)
    between(halves)
    assert is_overtaken(halves.spec, base, offline(halves), NAMES, "replace-1") is expected


def test_its_own_act_and_a_table_made_anew_overtake_it(halves: Halves, tmp_path: Path) -> None:
    base = offline(halves)
    lay(halves, "b", "replace")
    own = offline(halves).state.act.id
    assert is_overtaken(halves.spec, base, offline(halves), NAMES, own)
    other = Halves.create(tmp_path / "anew", halves.spec)
    lay(other, "a"), lay(other, "b")
    assert offline(other).version == base.version
    assert is_overtaken(halves.spec, base, offline(other), NAMES, "replace-1")


def test_a_name_that_came_and_went_overtakes_it(halves: Halves) -> None:
    base = offline(halves)
    newest = base.offline.act
    lay(halves, "b")
    assert not is_overtaken(halves.spec, base, offline(halves), (("b2",), ()), "replace-1")
    assert is_overtaken(halves.spec, base, offline(halves), ((), ("b",)), "replace-1"), "the act names it"
    assert newest.number == 2


def test_where_equal_rows_are_netted_every_segment_counts(halves: Halves) -> None:
    base = offline(halves)
    lay(halves, "b", "replace")
    stream = halves.spec.stream
    assert stream is not None
    spec = replace(halves.spec, stream=replace(stream, message=MessageFormat.CHANGE))
    assert spec.nets_deletes
    assert is_overtaken(spec, base, offline(halves), NAMES, "replace-1")
    assert not is_overtaken(spec, base, offline(halves), ((), ("new",)), "replace-1"), "it takes nothing away"


class Interrupted:
    """In the place of `commit_swap`: does something before each commit, and counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: str, *acts: Callable[[], object]) -> None:
        self.tries, self._acts, self._commit = 0, list(acts), swap.commit_swap
        monkeypatch.setattr(f"hybrid.replace.{module}.commit_swap", self)

    def __call__(self, *args: Any) -> int:
        self.tries += 1
        if self._acts:
            self._acts.pop(0)()
        return self._commit(*args)


@pytest.mark.spark
def test_a_job_ends_at_its_first_try_however_many_swaps_of_others_come_first(
    workbench: CommitContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec())
    for number in range(3):
        lab.lay(f"s{number}", row(number, number * BUCKET), until=(number + 1) * BUCKET)
    table = Table(workbench, lab.spec, lab.halves.layout, tmp_path)
    table.write_rows([{"order_id": 0, "customer": "job", "amount": 3.0, "ts": 0}])
    others = [("s1", 2.0), ("s2", 2.0)] * 3 + [("s1", 4.0)]
    interrupted = Interrupted(monkeypatch, "job", lambda: [correct(lab, *one) for one in others])
    job = replace_segment(table, "s0")
    assert interrupted.tries == 1 and job.act is not None
    assert [one[1:3] for one in lab.rows()] == [("job", 3.0), ("a", 4.0), ("a", 2.0)]
    entries = list_replacements(table.layout)
    assert [entry.kind for entry in entries] == ["replace", *["backfill"] * 7], "the chain of entries holds"
    assert entries[0].lineage.version_before == entries[1].version
    (stored,) = [one for one in table.rows(hidden=True) if one["customer"] == "job"]
    assert stored["_hy_topic"] == replacement_topic(lab.offline.offline.act.number), "it arrived at its swap"

    # The same of its revert, which brings back what it replaced and nothing else.
    interrupted = Interrupted(monkeypatch, "revert", lambda: correct(lab, "s1", 5.0))
    undone = revert(TableContext(workbench, lab.spec, table.layout), job.act)
    assert interrupted.tries == 1 and undone.version == lab.offline.version
    assert [one[1:3] for one in lab.rows()] == [("a", 1.0), ("a", 5.0), ("a", 2.0)]


def correct(lab: Lab, segment: str, amount: float) -> None:
    """The swap of a backfill, without Spark: the row of a segment with another amount."""
    number = int(segment[1:])
    half, path = lab.offline, str(lab.halves.layout.half(Half.OFFLINE))
    detail = lineage_of(half, ((segment,), (segment,)), Counts(1, 1, changed=1), "Corrected.").to_json()
    act = next_act(half.offline, new_act_id("backfill"), "backfill", "2021-11-21T00:00:00.000+00:00", detail)
    state = replace(half.offline, act=act, last_lineage=LineagePointer(act.id, half.version + 1))
    schema = arrow_schema(lab.spec, Half.OFFLINE)
    stored = replace(row(number, number * BUCKET, amount), segment=segment).stored()
    rows = pa.Table.from_pylist([{name: stored.get(name) for name in schema.names}], schema=schema)
    properties = CommitProperties(custom_metadata={"userMetadata": to_user_metadata(state)})
    where = f"_hy_segment = '{segment}'"
    write_deltalake(path, rows, mode="overwrite", predicate=where, commit_properties=properties)


@pytest.mark.spark
def test_a_job_is_planned_anew_for_an_act_on_its_segment(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.write_rows([{"order_id": 1, "amount": 1.0, "ts": TIME}])
    more = [({"order_id": 50, "ts": TIME}, 50)]
    interrupted = Interrupted(monkeypatch, "job", lambda: orders.add_offline(SEGMENT, more))
    report = replace_segment(orders)
    assert interrupted.tries == 2
    assert (report.rows_before, report.rows_after) == (8, 1), "the difference is to what it has replaced"
    assert len(orders.rows()) == 1


@pytest.mark.spark
def test_a_segment_that_comes_among_what_a_job_looked_at(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is refused beside it, and one in the stretch that a job covers goes with the others."""
    orders.write_rows([{"order_id": 1, "ts": BOUNDARY_MS - 10}])
    overlapping = [({"order_id": 90, "ts": BOUNDARY_MS - 10}, 90)]
    Interrupted(monkeypatch, "job", lambda: orders.add_offline("beside", overlapping))
    with pytest.raises(ConflictError, match=r"overlap 1 segment, e\.g\. 'beside'"):
        replace_segment(orders, "late")
    assert orders.segments() == {SEGMENT, "beside"}

    interrupted = Interrupted(monkeypatch, "job", lambda: orders.add_offline("another", overlapping))
    report = replace_segment(orders, "late", covers="day")
    assert interrupted.tries == 2 and orders.segments() == {"late"}
    assert set(report.segments_from) == {SEGMENT, "beside", "another"}


@pytest.mark.spark
def test_the_end_of_a_replacement_steps_over_others(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    when = "2021-11-21T10:38:00.000+00:00"
    entry = open_replacement(orders.spec, orders.layout, ([SEGMENT], ["n"]), created_at=when)
    orders.write_rows([{"order_id": 1, "ts": TIME}])
    replace_segment(orders, "n")
    interrupted = Interrupted(
        monkeypatch, "ending", lambda: orders.add_offline("other", [({"order_id": 90, "ts": TIME}, 90)])
    )
    end_replacement(orders.context, entry)
    assert interrupted.tries == 1 and orders.segments() == {"n", "other"}


def replace_segment(table: Table, segment: str = SEGMENT, **fields: object) -> JobReport:
    return run_job(table.context, table.job(segment, **fields))
