"""Overrides of a table's time boundary, recorded as a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.move.explicit import BoundaryReport, Wish


def set_boundary(home: Home, table: TableRef, time_ms: int | None, *, accepted: bool = False) -> BoundaryReport:
    """Set the boundary until it is cleared; see `hybrid.api.Table.set_boundary`."""
    from hybrid.move.explicit import Wish

    return _change_boundary(home, table, Wish(time_ms, accepted=accepted))


def clear_boundary(home: Home, table: TableRef) -> BoundaryReport:
    """Take back what `set_boundary` has set."""
    from hybrid.move.explicit import Wish

    return _change_boundary(home, table, Wish(clear=True))


def _change_boundary(home: Home, table: TableRef, wish: Wish) -> BoundaryReport:
    from hybrid.move.explicit import change_boundary

    with home.recorded(table.name, "boundary") as run:
        report = change_boundary(home.bench, table.spec, table.layout, wish, act_id=home.act_id("boundary"))
        run.ended(report.sentence, did_something=report.committed)
    return report
