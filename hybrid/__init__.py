"""A hybrid realtime/offline table manager: Kafka, Spark, Delta Lake and DuckDB behind one table."""

from hybrid.api.hybrid import Hybrid, connect
from hybrid.errors import HybridError

__all__ = ["Hybrid", "HybridError", "connect"]


def __dir__() -> list[str]:
    return __all__
