"""Hybrid tables: a realtime and an offline half (Kafka, Spark, Delta Lake, DuckDB) behind one SQL table.

    import hybrid

    with hybrid.connect("./.hybrid") as hy:
        result = hy.query("select order_status, count(*) from orders group by 1")
        print(result)
        hy.table("orders").move()

`connect` opens a home, or with an address a server. `Hybrid` lists its methods, `Hybrid.table` gives a `Table`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid
    from hybrid.errors import HybridError
    from hybrid.operations.tables.given_documents import frame_documents
    from hybrid.query.result_warning import ResultLimitWarning
    from hybrid.rpc.connect import connect

__all__ = ["Hybrid", "HybridError", "ResultLimitWarning", "connect", "frame_documents"]

# Imported when they are first used: the command line runs through this module too, and `hybrid --help` needs none.
_MODULES = {
    "Hybrid": "hybrid.api.hybrid",
    "HybridError": "hybrid.errors",
    "ResultLimitWarning": "hybrid.query.result_warning",
    "connect": "hybrid.rpc.connect",
    "frame_documents": "hybrid.operations.tables.given_documents",
}
# Modules with types that users name: `hybrid.errors.QueryError`.
_PARTS = ("api", "errors")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # takes longer to import than `connect` to run

        return version("hybrid")
    if name in _PARTS:
        return import_module(f"hybrid.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'hybrid' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
