"""What is told of a backfill: only buckets with rows, what an interrupted run left, the sentence of the whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.operations.backfill_change import BackfillChange
from hybrid.replace.backfill.base import stored_times
from hybrid.replace.backfill.options import BackfillOptions
from tests.operations.tables.test_change import given
from tests.query.halves import Halves
from tests.replace.backfill.lab import row

pytestmark = pytest.mark.spark
DAY = 86_400_000
ALWAYS: dict[str, Any] = {"start": "1970-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}


class Interrupting:
    """Progress that keeps what it is told, and is Ctrl-C after the first bucket when it is armed."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.armed = False

    def say(self, message: str) -> None:
        self.said.append(message)

    def step(self, label: str, done: int, total: int | None) -> None:
        if self.armed and (label, done) == ("correcting buckets", 1):
            raise KeyboardInterrupt


def test_a_window_of_decades_an_interrupt_and_the_whole_run(home: Path, workbench: CommitContext) -> None:
    told = Interrupting()
    here = Hybrid(load_settings(home=home), told)
    vars(here)["bench"] = CommitContext(lambda: workbench.spark, here.context.now_ms, told)
    here.create_table(given("INT"))
    halves = Halves(here.spec("orders"), here.context.layout("orders"))
    for day in (100, 10_000, 20_000):
        halves.commit_offline([row(day, day * DAY + 1, segment=f"orders_{day}")])

    none = here.backfills.plan("orders", BackfillChange(**ALWAYS, delete=True, where="order_id = 7"))
    assert [bucket.start for bucket in none.buckets] == [100 * DAY, 10_000 * DAY, 20_000 * DAY]
    assert none.sentence == "Nothing to change in 3 buckets of 'orders' with 3 rows."
    one = here.backfills.plan("orders", BackfillChange(**ALWAYS, delete=True, where="order_id = 100"))
    assert one.sentence.startswith("Would correct 1 of 3 buckets of 'orders'")

    whole = here.backfills.plan("orders", BackfillChange(delete=True))
    assert whole.sentence == (
        "Would correct 3 of 3 buckets of 'orders', over all of its times: 3 rows before, 0 after; 0 added, 3 removed, "
        "0 changed. It has no --where: every row there is removed. Nothing is visible before it runs."
    )
    later = here.backfills.plan("orders", BackfillChange(start=ALWAYS["start"], update="amount = 5"))
    assert "3 of 3 buckets of 'orders', up to its newest row: 3 rows" in later.sentence

    plan = here.backfills.plan("orders", BackfillChange(**ALWAYS, update="amount = 5"))
    told.armed = True
    with pytest.raises(KeyboardInterrupt):
        here.backfills.run(plan.id, BackfillOptions())
    assert told.said[-1] == (
        f"1 of 3 buckets of 'orders' are corrected and visible. Go on: hybrid backfill resume {plan.id}"
    )
    status = here.backfills.status(plan.id)
    assert (status.state, status.buckets_done) == ("INTERRUPTED", 1)
    assert status.result.startswith("Corrected 1 of 3 buckets of 'orders'")
    told.armed = False
    here.backfills.run(plan.id, BackfillOptions())
    (status,) = [one for one in here.backfills.statuses() if one.id == plan.id]
    assert status.state == "DONE" and status.result.startswith("Corrected 3 buckets of 'orders': ")

    halves.commit_offline([row(9, None, segment="orders_none")])  # no time: the log has no statistics of it
    offline = open_half(halves.layout.half(Half.OFFLINE))
    assert [file.times for file in offline.files].count(None) == 1
    assert stored_times(workbench, halves.spec, (offline, None)) == (100 * DAY + 1, 20_000 * DAY + 1)
