"""Purges a table in a process that a failpoint kills."""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid.lake.layout import TableLayout
from tests.query.halves import Halves
from tests.replace.backfill.lab import Lab, lab_spec
from tests.replace.purge.erasing import purge_rows
from tests.replace.tables import new_workbench


def main() -> None:
    folder, where = Path(sys.argv[1]), sys.argv[2]
    spec = lab_spec()
    lab = Lab(new_workbench(folder / "log"), Halves(spec, TableLayout(folder / spec.name)), folder)
    purge_rows(lab, where)


if __name__ == "__main__":
    main()
