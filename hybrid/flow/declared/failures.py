"""What Spark or a user's function raised, in one sentence: the line of the file, and the cause at the bottom."""

from __future__ import annotations

import re

from hybrid.errors import DataError, HybridError
from hybrid.flow.declared.model import Flow
from hybrid.flow.declared.python_file import line_of

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\][^\n]*")
_LENGTH_MAX = 500


def told(error: Exception, flow: Flow, source: str) -> HybridError:
    """The error of a flow that failed."""
    line = line_of(error, source)
    place = f"line {line}: " if line != "?" else ""
    return DataError(f"Flow '{flow.name}' failed: {place}{words_of(error)}")


def words_of(error: Exception) -> str:
    """Spark's own sentence where there is one: the last, which is the cause; else the first line of the error."""
    text = str(error).strip()
    found = [match[0] for match in _CONDITION.finditer(text) if not match[0].startswith("[FAILED_READ_FILE")]
    if not found:
        found = _CONDITION.findall(text)
    first = found[-1] if found else f"{type(error).__name__}: {text.partition(chr(10))[0]}"
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", first).strip()[:_LENGTH_MAX]
