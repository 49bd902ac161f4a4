"""Errors of Spark or of a user's function as one sentence: the line of the file, and the root cause."""

from __future__ import annotations

from hybrid.errors import DataError, HybridError
from hybrid.flow.declared.model import Flow
from hybrid.flow.declared.python_file import line_of
from hybrid.jvm.spark_errors import is_spark_error, spark_sentence

_LENGTH_MAX = 500


def told(error: Exception, flow: Flow, source: str) -> HybridError:
    """The error of a failed flow."""
    line = line_of(error, source)
    place = f"line {line}: " if line != "?" else ""
    return DataError(f"Flow '{flow.name}' failed: {place}{words_of(error)}")


def words_of(error: Exception) -> str:
    """Spark's own sentence for Spark's errors; else the type and the first line."""
    if is_spark_error(error):
        return spark_sentence(error)
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:_LENGTH_MAX]
