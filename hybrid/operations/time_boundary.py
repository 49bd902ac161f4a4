"""The time boundary of a table in Pinot's form, and its overrides, which are recorded as runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.log import HalfSnapshot
from hybrid.runtime.sentence_repr import shown_as
from hybrid.schema.types import DataType

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.move.boundary_override import BoundaryReport, OverrideRequest


@shown_as("{0.time_column} {0.time_value}")
@dataclass(frozen=True)
class TimeBoundary:
    """Pinot's time boundary. `time_value` is in the time column's format; for a TIMESTAMP, epoch milliseconds."""

    time_column: str
    time_value: str


def time_boundary(table: TableRef) -> TimeBoundary | None:
    """The time boundary of a table; None on a table with one half, and where `time_boundary_of` gives None."""
    return time_boundary_of(table.spec, table.half(Half.OFFLINE)) if len(table.spec.halves) == len(Half) else None


def time_boundary_of(spec: TableSpec, offline: HalfSnapshot) -> TimeBoundary | None:
    """The time boundary; None without offline rows, or where no time divides the halves."""
    field, last_ms = spec.time_field, offline.last_ms
    limit_ms = offline.effective_boundary(spec.boundary_lag_ms).limit_ms
    if field is None or limit_ms is None or last_ms is None:
        return None
    covered_ms, form = min(last_ms, limit_ms - 1), field.time_format
    if form is None or field.data_type is DataType.TIMESTAMP:
        return TimeBoundary(field.name, str(covered_ms))
    value = form.last_in_milli(covered_ms)
    if form.is_finer_than_millis and covered_ms == last_ms:
        last = [file.high.get(field.name) for file in offline.files if file.times and file.times[1] == last_ms]
        value = max((high for high in last if isinstance(high, int)), default=value)
    return TimeBoundary(field.name, str(value))


def set_boundary(home: Home, table: TableRef, time_ms: int | None, *, accepted: bool = False) -> BoundaryReport:
    """Override the boundary until it is cleared; see `hybrid.api.table.Table.set_boundary`."""
    from hybrid.move.boundary_override import OverrideRequest

    return _change_boundary(home, table, OverrideRequest(time_ms, accepted=accepted))


def clear_boundary(home: Home, table: TableRef) -> BoundaryReport:
    """Clear the override of `set_boundary`."""
    from hybrid.move.boundary_override import OverrideRequest

    return _change_boundary(home, table, OverrideRequest(clear=True))


def _change_boundary(home: Home, table: TableRef, wish: OverrideRequest) -> BoundaryReport:
    from hybrid.move.boundary_override import change_boundary

    return home.run_recorded(
        table.name, "boundary", lambda: change_boundary(home.table_context(table), wish, act_id=home.act_id("boundary"))
    )
