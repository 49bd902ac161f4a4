"""What an error of Delta means. pyspark maps Delta's conflicts to several classes; the text of all holds their names.

The names are those of Delta 4 (`DeltaErrors.scala`). `tests/lake/test_delta_errors.py` provokes each kind.
"""

from __future__ import annotations

from hybrid.config.table_config import Half

_CONFLICTS = (
    *("ConcurrentTransactionException", "ConcurrentAppend", "ConcurrentDelete", "DELTA_CONCURRENT"),
    *("MetadataChanged", "DELTA_METADATA_CHANGED", "ProtocolChanged", "DELTA_PROTOCOL_CHANGED"),
)
_OTHER_COLUMNS = ("DELTA_FAILED_TO_MERGE_FIELDS", "DELTA_MERGE_INCOMPATIBLE")
# Of Spark, and of DuckDB in its workers.
_MISSING_FILE = (
    *("FILE_NOT_EXIST", "PATH_NOT_FOUND", "FileNotFoundException"),
    *("No files found that match", "No such file or directory"),
)


def is_conflict(error: Exception) -> bool:
    """Whether another transaction committed first, so that this one must be planned again."""
    return any(name in str(error) or name in type(error).__name__ for name in _CONFLICTS)


def is_schema_mismatch(error: Exception) -> bool:
    """Whether the rows do not fit the table's columns: Delta rejects narrower values for a wider column."""
    return any(name in str(error) for name in _OTHER_COLUMNS)


def is_missing_file(error: Exception) -> bool:
    """Whether Spark failed because a data file of a half is missing: an older version was read and purged meanwhile."""
    text = str(error)
    return any(name in text for name in _MISSING_FILE) and any(f"/{half.value}/" in text for half in Half)
