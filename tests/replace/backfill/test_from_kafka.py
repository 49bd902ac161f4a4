"""Windows rebuilt from what Kafka holds: what goes, what stays, and what is live on an upsert table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.config.table_config import Aggregation, BoundaryMode, Half, MergeLevel, MergeType, MoveConfig
from hybrid.errors import SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import physical_ddl
from hybrid.lake.refetched_rows import RefetchedRows
from hybrid.replace.backfill.request import ChangeKind, Request, require_correctable, window_of
from hybrid.table.boundary import PartitionKey
from hybrid.table.plans import Plan
from hybrid.table.state import Act, OfflineState
from tests.query.halves import KEY, Row
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row

REPLACED = PartitionKey("~replacement", "act-000000000001", 0, 0)
REPLAYED = PartitionKey("replay/kafka", "orders", 1_000_000, 0)
HISTORY = PartitionKey("history", "history", 0, 0)


def rebuilt(lab: Lab, rows: Sequence[Row], held_from: int) -> Plan:
    """A plan of the first two buckets from these messages, the first of which lies at `held_from`."""
    ddl = physical_ddl(lab.spec, Half.REALTIME)
    stored = [one.stored() for one in rows]
    names = [part.split(" ")[0].strip("`") for part in ddl.split(", ")]
    frame = lab.bench.spark.createDataFrame([tuple(one.get(name) for name in names) for one in stored], ddl)
    window = window_of(lab.spec, lab.offline.offline.boundary, 0, 2 * BUCKET)
    return lab.plan_of(Request(ChangeKind.KAFKA, window, held=RefetchedRows(frame, {KEY: held_from})))


@pytest.mark.spark
def test_what_goes_and_what_stays(workbench: CommitContext, tmp_path: Path) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec())
    lab.reject()
    lab.lay("orders_0", row(1, 10, 5.0), row(2, 20, 5.0), row(3, 30, offset=2, key=REPLACED), row(4, 40, key=HISTORY))
    lab.lay("orders_1", row(5, BUCKET, key=REPLAYED), row(6, BUCKET + 1), row(9, 5 * BUCKET), until=6 * BUCKET)
    # 1 is gone from Kafka; 2 was corrected, 5 replayed, 6 no longer converts, 7 is new in the window.
    held = [row(2, 20, 1.0), row(5, BUCKET), row(7, 50), row(9, 5 * BUCKET), Row({}, None, 6, reason="no",
            segment="orders__rejected")]  # fmt: skip
    plan = rebuilt(lab, held, 2)
    assert any("1 message that Kafka holds do not convert" in one for one in plan.warnings)
    assert any("before offset 2 in partition 0 of topic 'orders': 1 row of the stretch" in one for one in plan.warnings)
    wanted = [(1, 5.0), (2, 1.0), (4, 1.0), (5, 1.0), (7, 1.0), (9, 1.0)]
    assert [(one[0], one[2]) for one in lab.rows(plan)] == wanted
    lab.run(plan)
    assert [(one[0], one[2]) for one in lab.rows()] == wanted
    assert not rebuilt(lab, held, 2).units


@pytest.mark.spark
def test_on_an_upsert_table_the_versions_that_are_left_decide(workbench: CommitContext, tmp_path: Path) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec(upsert=True, deletes=True))
    lab.reject()
    dead = {"gone": True, "op": "delete"}
    lab.lay("orders_0", row(1, 10, offset=0), row(2, 20, offset=1), row(3, 30, offset=2))
    lab.lay("orders_1", row(1, BUCKET, offset=3), row(2, BUCKET + 1, offset=4, **dead), row(3, BUCKET + 2, offset=5,
            **dead), until=2 * BUCKET)  # fmt: skip
    # 1: its newer version no longer converts. 2: its marker stays. 3: its marker is a row by the settings of now.
    held = [row(1, 10, offset=0), row(2, 20, offset=1), row(3, 30, offset=2), row(2, BUCKET + 1, offset=4, **dead)]
    plan = rebuilt(lab, [*held, row(3, BUCKET + 2, 7.0, offset=5)], 0)
    wanted = [(1, 10, 1.0), (3, BUCKET + 2, 7.0)]
    assert [(one[0], one[3], one[2]) for one in lab.rows(plan)] == wanted
    lab.run(plan)
    assert [(one[0], one[3], one[2]) for one in lab.rows()] == wanted


def test_tables_that_do_not_hold_rows_as_they_were_read() -> None:
    merged = replace(lab_spec(), move=MoveConfig(BUCKET, 0, MergeType.DEDUP))
    new, plain = OfflineState(Act("create", 0, "create", "now")), lab_spec()
    rolls = MergeLevel(merge_type=MergeType.ROLLUP, aggregations=(("amount", Aggregation.SUM),), name="1day")
    rounds = MergeLevel(round_ms=60_000, name="1day")
    for spec, offline, words in (
        (merged, new, "Moves of table 'orders' merge rows"),
        (replace(plain, boundary_mode=BoundaryMode.PINOT), new, "from outside"),
        (replace(plain, merge_levels=(rolls,)), new, r"Merges \(1day\) of table 'orders' merge rows \(rollup\)"),
        (replace(plain, merge_levels=(rounds,)), new, r"Merges \(1day\) of table 'orders' round times"),
        (plain, new.with_task(rolls), "Rows of table 'orders' were rolled up before its config changed"),
        (plain, new.with_task(rounds), "Rows of table 'orders' were rounded to other times"),
    ):
        with pytest.raises(SpecError, match=words):
            require_correctable(spec, offline, ChangeKind.KAFKA)
    require_correctable(replace(plain, merge_levels=(MergeLevel(name="1day"),)), new, ChangeKind.KAFKA)
