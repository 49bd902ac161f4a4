"""Hybrid tables: a realtime and an offline half (Kafka, Spark, Delta Lake, DuckDB) behind one SQL table.

    import hybrid

    with hybrid.connect("./.hybrid") as hy:
        result = hy.query("select order_status, count(*) from orders group by 1")
        print(result)
        hy.table("orders").move()

`connect` opens a home, or with an address a server. `Hybrid` lists its methods, `Hybrid.table` gives a `Table`.
"""

from typing import Any

from hybrid.api.hybrid import Hybrid
from hybrid.errors import HybridError
from hybrid.operations.tables.given_documents import frame_documents
from hybrid.query.result_warning import ResultLimitWarning
from hybrid.rpc.connect import connect

__all__ = ["Hybrid", "HybridError", "ResultLimitWarning", "connect", "frame_documents"]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module 'hybrid' has no attribute '{name}'")
    from importlib.metadata import version  # takes longer to import than `connect` to run

    return version("hybrid")
