"""The public Python API: `hybrid.connect()`, and the types that its methods take."""

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
