"""Runs the plan of a table in a process that a failpoint kills."""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid.lake.layout import TableLayout
from hybrid.lake.plans import find_plan, plan_ids, runner
from hybrid.lake.table_context import TableContext
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.replace.backfill.plan_run import run_plan
from tests.replace.backfill.lab import lab_spec
from tests.replace.tables import new_workbench


def main() -> None:
    folder = Path(sys.argv[1])
    layout = TableLayout(folder / "orders")
    plan = find_plan(layout, plan_ids(layout)[0])
    assert plan is not None
    with runner(layout, plan.id):
        run_plan(TableContext(new_workbench(folder / "log"), lab_spec(), layout), plan, BackfillOptions())


if __name__ == "__main__":
    main()
