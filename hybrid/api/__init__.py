"""The public Python API: `hybrid.connect()`, and the types that its methods take."""

from hybrid.api.hybrid import Hybrid, connect
from hybrid.config.table_documents import DdlDocuments, TableDocuments
from hybrid.operations.erasure import Erasure
from hybrid.operations.tables.creation import Creation

__all__ = ["Creation", "DdlDocuments", "Erasure", "Hybrid", "TableDocuments", "connect"]
