"""Which files of a REALTIME half may hold rows that the OFFLINE half has not taken over."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.lake.log_entries import DataFile
from hybrid.table.boundary import INFINITE, Boundary, Offsets
from hybrid.table.columns import OFFSET, PARTITION
from hybrid.table.coverage_sql import lowest_waiting


def waiting_files(files: Sequence[DataFile], boundary: Boundary, committed: Offsets) -> list[DataFile]:
    """The files that may hold rows which the boundary does not cover, by their statistics."""
    lowest = lowest_waiting(boundary, committed)

    def may_wait(file: DataFile) -> bool:
        if boundary.time_ms is None or (file.times is None and boundary.time_ms != INFINITE):
            return True
        if file.times is not None and file.times[1] >= boundary.time_ms:
            return True
        first, last, offset = file.low.get(PARTITION), file.high.get(PARTITION), file.high.get(OFFSET)
        if not (isinstance(first, int) and isinstance(last, int) and isinstance(offset, int)):
            return True
        return any(first <= number <= last and offset >= lowest[number] for number in lowest)

    return [file for file in files if may_wait(file)]
