"""Random corrections of random tables against Python: the plan's numbers, the staged query, the swap and the revert."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import ARRIVED, UpsertConfig
from hybrid.lake.commit_context import CommitContext
from hybrid.replace.revert import revert_backfill
from hybrid.table.plans import total
from tests.query.halves import Row
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row

pytestmark = pytest.mark.spark

LAST = 6 * BUCKET
Values = tuple[int, str, float, int]


@dataclass
class Told:
    """A table by Python lists: every stored row with what decides its key, the greatest wins.

    On a dedup table that is how early a row arrived.
    """

    upsert: bool
    dedup: bool = False
    rows: list[tuple[tuple[Any, ...], Values, bool]] = field(default_factory=list)  # (order, values, deleted)

    def visible(self) -> list[Values]:
        if not self.upsert:
            return sorted(values for _, values, _ in self.rows)
        winners: dict[int, tuple[tuple[Any, ...], Values, bool]] = {}
        for one in self.rows:
            key = one[1][0]
            if key not in winners or winners[key][0] < one[0]:
                winners[key] = one
        return sorted(values for _, values, deleted in winners.values() if not deleted)


def _life(dice: random.Random, bench: CommitContext, folder: Path, kind: str) -> tuple[Lab, Told]:
    dedup, upsert = kind == "dedup", kind == "upsert"
    spec = lab_spec(upsert=upsert or dedup, deletes=upsert)
    spec = replace(spec, upsert=UpsertConfig(ARRIVED, first_wins=True)) if dedup else spec
    lab, told = Lab.create(bench, folder, spec), Told(upsert or dedup, dedup)
    offset = 0
    for number in range(dice.randrange(3, 7)):
        low = dice.randrange(0, LAST - BUCKET)
        rows: list[Row] = []
        for _ in range(dice.randrange(1, 9)):
            ts, key = dice.randrange(low, min(LAST, low + 2 * BUCKET)), dice.randrange(12)
            gone = upsert and dice.random() < 0.15
            values = (key, dice.choice("abc"), float(dice.randrange(5)), ts)
            more: dict[str, Any] = {"gone": gone, "op": "delete" if gone else "row"} if upsert else {}
            rows.append(row(key, ts, values[2], values[1], **{**more, "offset": offset}))
            told.rows.append(((-offset,) if dedup else (ts, 0, "kafka", offset), values, gone))
            offset += 1
        lab.lay(f"orders_{number}", *rows, until=LAST)
    live = [row(key, LAST + key, 7.0, offset=2_000_000 + key, **({"gone": False} if upsert else {})) for key in (1, 30)]
    lab.halves.commit_realtime(live)
    orders = [(-one.offset,) if dedup else (one.time_ms, 0, "kafka", one.offset) for one in live]  # type: ignore[operator]
    told.rows += [(order, _values(one.values), False) for order, one in zip(orders, live, strict=True)]
    return lab, told


def _values(found: Mapping[str, Any]) -> Values:
    return found["order_id"], found["customer"], found["amount"], found["ts"]


def _correct(dice: random.Random, lab: Lab, told: Told, start: int, end: int) -> tuple[Any, Told, int]:
    """A random plan, the table as it should be then, and how many rows an update changes."""
    after, changed = Told(told.upsert, told.dedup), 0
    live = Counter(told.visible())
    kind = dice.choice(["update", "delete", "rows"])
    customer = dice.choice("abc")
    if kind == "rows":
        return (*_arriving(dice, lab, told, start, end), 0)
    for order, values, deleted in told.rows:
        hit = not deleted and start <= values[3] < end and values[1] == customer
        hit = hit and (not told.upsert or (live[values] > 0 and _wins(told, order, values)))
        if not hit:
            after.rows.append((order, values, deleted))
        elif kind == "update":
            new = (values[0], values[1], values[2] * 2 + 1, values[3])
            changed += 1
            after.rows.append((order, new, deleted))
        elif told.upsert:
            after.rows.append((order, values, True))
    where = f"customer = '{customer}'"
    if kind == "update":
        return lab.plan(start, end, update="amount = amount * 2 + 1", where=where), after, changed
    return lab.plan(start, end, delete=True, where=where), after, 0


def _wins(told: Told, order: tuple[Any, ...], values: Values) -> bool:
    return order == max(one[0] for one in told.rows if one[1][0] == values[0])


def _arriving(dice: random.Random, lab: Lab, told: Told, start: int, end: int) -> tuple[Any, Told]:
    count = dice.randrange(1, 7)
    times = [dice.randrange(start, end) for _ in range(count)]
    keys = dice.sample(range(14), count)
    new = [(key, dice.choice("abc"), float(dice.randrange(5)), ts) for key, ts in zip(keys, times, strict=True)]
    documents = [
        {"order_id": key, "customer": customer, "amount": amount, "ts": ts} for key, customer, amount, ts in new
    ]
    plan = lab.plan(start, end, rows=documents)
    reached = {_bucket(ts, start) for ts in times}
    after, places = Told(told.upsert, told.dedup), dict[int, tuple[Any, ...]]()
    coming = {values[0] for values in new}
    for order, values, deleted in told.rows:
        inside = start <= values[3] < end and _bucket(values[3], start) in reached
        if not inside:
            after.rows.append((order, values, deleted))
        elif told.upsert and values[0] not in coming:
            after.rows.append((order, values, True))  # a marker in its place
        else:
            places[values[0]] = max(order, places.get(values[0], order))
    for number, values in enumerate(new):
        order = places.get(values[0], (-10_000_000,)) if told.dedup else (values[3], 1, "~", number)
        after.rows.append((order, values, False))
    return plan, after


def _bucket(ts: int, start: int) -> int:
    return max(ts // BUCKET * BUCKET, start)


# Updates, deletes and rows that arrive, in one commit or in several, and one that changes nothing. Other seeds may be
# tried as well: an example takes some seconds.
EXAMPLES = [
    *((seed, "append") for seed in (0, 3, 4, 7)),
    *((seed, "upsert") for seed in (3, 4, 5)),
    (6, "dedup"),
]


@pytest.mark.parametrize(("seed", "kind"), EXAMPLES)
def test_plan_staged_query_swap_and_revert_agree(
    seed: int, kind: str, workbench: CommitContext, tmp_path: Path
) -> None:
    dice = random.Random(f"{seed}-{kind == 'upsert'}")
    lab, told = _life(dice, workbench, tmp_path, kind)
    before = lab.rows()
    assert before == told.visible()
    start, end = sorted(dice.sample(range(0, LAST + 1, 250), 2))
    plan, after, changed = _correct(dice, lab, told, start, end)
    wanted = after.visible()

    assert lab.rows() == before and lab.rows(plan) == wanted
    _check_numbers(plan, before, wanted, changed)

    report = lab.run(plan, atomic=dice.random() < 0.3, newest_first=dice.random() < 0.5)
    assert lab.rows() == wanted
    assert report.buckets_done == report.buckets_total == sum(bucket.unit is not None for bucket in plan.buckets)
    assert lab.run(plan).acts == ()

    if report.acts:
        revert_backfill(lab.context, plan.id)
    assert lab.rows() == before


def _check_numbers(plan: Any, before: list[Values], after: list[Values], changed: int) -> None:
    for bucket in plan.buckets:
        inside = [[one for one in rows if bucket.start <= one[3] < bucket.end] for rows in (before, after)]
        counts = bucket.counts
        assert (counts.rows_before, counts.rows_after) == (len(inside[0]), len(inside[1])), bucket
        if changed:
            continue
        old, new = Counter(inside[0]), Counter(inside[1])
        if plan.change != "a test" or not any(one.unit is not None for one in plan.buckets):
            assert old == new
        gone, come = sum((old - new).values()), sum((new - old).values())
        assert (counts.removed + counts.changed, counts.added + counts.changed) == (gone, come), bucket
    if changed:
        assert total(bucket.counts for bucket in plan.buckets).changed == changed
