"""The trusted reading of the machine's clock, across processes and restarts."""

from __future__ import annotations

import sqlalchemy as sa

from hybrid.catalog.schema import CLOCK, put
from hybrid.clock import ClockReading
from hybrid.table.clock_trust import ClockTrust

_KEY = {"id": 1}


class ClockRecord:
    """The single catalog row that stores it."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def read(self) -> ClockTrust | None:
        """The result of the last check; None before the first."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(CLOCK)).first()
        if row is None:
            return None
        believed = ClockReading(row.wall_ms, row.running_ms, row.boot)
        if row.doubted_wall_ms is None:
            return ClockTrust(believed)
        doubted = ClockReading(row.doubted_wall_ms, row.doubted_running_ms, row.doubted_boot)
        return ClockTrust(believed, doubted, row.steady_ms)

    def write(self, trust: ClockTrust) -> None:
        """Store the result of a check."""
        believed, doubted = trust.believed, trust.doubted
        values = {
            "wall_ms": believed.wall_ms,
            "running_ms": believed.running_ms,
            "boot": believed.boot,
            "doubted_wall_ms": doubted.wall_ms if doubted is not None else None,
            "doubted_running_ms": doubted.running_ms if doubted is not None else None,
            "doubted_boot": doubted.boot if doubted is not None else None,
            "steady_ms": trust.steady_ms,
        }
        put(self._engine, CLOCK, _KEY, values)
