"""Runs one job, or reverts the newest replacement, in a process that a failpoint kills."""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid.lake.layout import TableLayout
from hybrid.lake.table_context import TableContext
from hybrid.replace.job import run_job
from hybrid.replace.lineage import list_replacements
from hybrid.replace.revert import revert
from tests.replace.tables import Table, new_workbench, recipe_spec


def main() -> None:
    folder, verb = Path(sys.argv[1]), sys.argv[2]
    spec = recipe_spec("orders")
    table = Table(new_workbench(folder / "log"), spec, TableLayout(folder / "warehouse" / spec.name), folder)
    if verb == "replace":
        run_job(TableContext(table.bench, spec, table.layout), table.job())
    else:
        revert(TableContext(table.bench, spec, table.layout), list_replacements(table.layout)[0].id)


if __name__ == "__main__":
    main()
