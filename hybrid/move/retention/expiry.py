"""Which segments of a half are expired, and how many of them one run drops. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.config.table_config import Half
from hybrid.lake.log import HalfSnapshot
from hybrid.move.segments import Aged, by_age
from hybrid.schema.rounding import rounded_down
from hybrid.table.columns import bookkeeping


def expiry_ms(half: Half, base: HalfSnapshot, now_ms: int, keeps_ms: int) -> int:
    """The time before which rows are expired, epoch ms.

    Times rounded to one step expire together, when the end of the step does.
    """
    step_ms = base.offline.boundary.step_ms if half is Half.OFFLINE else 1
    return rounded_down(now_ms - keeps_ms, step_ms)


def segments_by_age(table: str, half: Half, base: HalfSnapshot) -> list[Aged]:
    """The segments of a half that hold rows of the table, oldest end first; segments with unknown end last."""
    return by_age(base.files, bookkeeping(table) if half is Half.REALTIME else ())


def count_within_share(expired: Sequence[Aged], total: int, share_max: float) -> int:
    """How many of the oldest expired segments one run drops: at most a share of `total` rows, but at least one."""
    rows_max, rows, count = share_max * total, 0, 0
    while count < len(expired) and (count == 0 or rows + expired[count].rows <= rows_max):
        rows, count = rows + expired[count].rows, count + 1
    return count
