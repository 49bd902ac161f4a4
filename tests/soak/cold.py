"""A table without a stream that is too large for the rest of the cache, and answers of it that arithmetic tells.

Row n has the time FIRST_MS + n * COLD_STEP_MS, one of KINDS, and numbers of 53 bits that do not compress: a DOUBLE, as
which MIN and MAX come, holds such a number exactly.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.soak.events import FIRST_MS

COLD = "soak_cold"
COLD_ROWS = 1_500_000
COLD_STEP_MS = 1000
EACH = 200  # of so many statements one asks this table
KINDS = 5
_RANGE_MAX = 200_000
_MULTIPLIERS = tuple(0x9E3779B97F4A7C15 + 0x632BE59BD9B4E01A * number for number in range(4))
_DRAWN = tuple(f"drawn_{number}" for number in range(len(_MULTIPLIERS)))

SCHEMA: dict[str, Any] = {
    "schemaName": COLD,
    "dimensionFieldSpecs": [{"name": name, "dataType": "LONG"} for name in ("n", "kind", *_DRAWN)],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}

Rows = list[list[Any]]


def write_cold(path: Path) -> None:
    """All rows, as Parquet."""
    n = np.arange(COLD_ROWS)
    columns = {"n": n, "kind": n % KINDS, "ts": FIRST_MS + n * COLD_STEP_MS}
    columns |= {name: _drawn(n, number) for number, name in enumerate(_DRAWN)}
    pq.write_table(pa.table(columns), path)


def cold_range(draw: Callable[[int], int]) -> tuple[str, Rows]:
    """A statement over a range of times, and its rows. `draw` gives a number below another one."""
    low, number = draw(COLD_ROWS), draw(len(_DRAWN))
    high = min(COLD_ROWS, low + KINDS + draw(_RANGE_MAX))
    name = _DRAWN[number]
    sql = (
        f"select kind, count(*), min({name}), max({name}) from {COLD} where ts >= {FIRST_MS + low * COLD_STEP_MS} "
        f"and ts < {FIRST_MS + high * COLD_STEP_MS} group by kind order by kind limit 100"
    )
    rows = []
    for kind in range(KINDS):
        mine = _drawn(np.arange(low + (kind - low) % KINDS, high, KINDS), number)
        if len(mine):
            rows.append([kind, len(mine), float(mine.min()), float(mine.max())])
    return sql, rows


def cold_lookup(n: int) -> tuple[str, Rows]:
    """A statement for all numbers of a row, and its rows."""
    mine = [int(_drawn(np.array([n]), number)[0]) for number in range(len(_DRAWN))]
    return f"select n, kind, {', '.join(_DRAWN)} from {COLD} where n = {n} limit 10", [[n, n % KINDS, *mine]]


def _drawn(n: "np.ndarray[Any, Any]", number: int) -> "np.ndarray[Any, Any]":
    """Numbers without an order, below 2^53."""
    multiplier = np.uint64(_MULTIPLIERS[number] % 2**64 | 1)
    mixed = n.astype(np.uint64) * multiplier
    mixed = (mixed ^ (mixed >> np.uint64(29))) * multiplier
    return (mixed >> np.uint64(11)).astype(np.int64)
