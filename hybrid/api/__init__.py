"""The public Python API: `hybrid.connect()`, and the types that its methods take."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid, connect
    from hybrid.config.table_documents import DdlDocuments, TableDocuments
    from hybrid.operations.backfill_change import BackfillChange
    from hybrid.operations.erasure import Erasure
    from hybrid.operations.tables.creation import Creation
    from hybrid.replace.backfill.options import BackfillOptions

__all__ = [
    "BackfillChange",
    "BackfillOptions",
    "Creation",
    "DdlDocuments",
    "Erasure",
    "Hybrid",
    "TableDocuments",
    "connect",
]

# Imported when they are first used, as in `hybrid`: each command imports this package and needs few of them.
_MODULES = {
    "BackfillChange": "hybrid.operations.backfill_change",
    "BackfillOptions": "hybrid.replace.backfill.options",
    "Creation": "hybrid.operations.tables.creation",
    "DdlDocuments": "hybrid.config.table_documents",
    "Erasure": "hybrid.operations.erasure",
    "Hybrid": "hybrid.api.hybrid",
    "TableDocuments": "hybrid.config.table_documents",
    "connect": "hybrid.api.hybrid",
}


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hybrid.api' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
