"""The product with a tenth of the memory that its tables take."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.serving.measure import Json, Oracle, latency
from benchmarks.serving.product import Product
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import Sizes

_SHARE, _ROUNDS, _WARM = 0.1, 20, 5


def bounded(system: Product, oracle: Oracle, tables: Sequence[Table], sizes: Sizes) -> Json:
    """Bytes; by table milliseconds of each statement and where it is answered from."""
    taken = system.cached_bytes()
    bound = int(_SHARE * taken)
    system.stop()
    system.start("--cache-bytes", str(bound))
    at_start = system.peak_bytes()
    by_table = {
        one.name: latency(system.endpoint, oracle, one.name, sizes, _ROUNDS, _WARM) | {"from": system.source(one)}
        for one in tables
    }
    found = {"taken": taken, "bound": bound, "at_start": at_start, "peak": system.peak_bytes(), "one": by_table}
    system.stop()
    system.start()
    return found
