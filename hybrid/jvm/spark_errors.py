"""Errors of Spark, its JVM and its workers in one sentence: the cause, without the plan and the stack trace.

It imports nothing of Spark, because processes that never start Spark call it too.
"""

from __future__ import annotations

import re

from hybrid.errors import HybridError

_LIBRARIES = ("pyspark", "py4j")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\][^\n]*")
_WRAPPED = ("[FAILED_READ_FILE", "[TASK_WRITE_FAILED", "[INTERNAL_ERROR", "[CANNOT_PARSE_JSON_FIELD")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_TRACEBACK = "Traceback (most recent call last):"
_PYTHON = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$", re.MULTILINE)
_CAUSED = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_CALLED = re.compile(r"^An error occurred while (?:calling|trying to connect)[^\n]*\n: ")
_CLASS = re.compile(r"^(?:[a-z_][\w$]*\.)+([A-Z][\w$]*)(?=: |$)")
_LENGTH_MAX = 500


def is_spark_error(error: BaseException) -> bool:
    """Whether an exception is from Spark or from the library that connects to its JVM."""
    return any(kind.__module__.partition(".")[0] in _LIBRARIES for kind in type(error).__mro__)


def spark_sentence(error: BaseException) -> str:
    """The sentence of an error's cause: a worker's Python exception, Spark's error condition, or Java's last cause."""
    text = str(error).strip()
    cause = _python_cause(text) or _condition(text) or _java_cause(text)
    return _STATE.sub("", cause or type(error).__name__).strip()[:_LENGTH_MAX]


def unexpected_words(error: BaseException) -> str:
    """The sentence for an exception that is not a HybridError."""
    if is_spark_error(error):
        return f"Spark failed: {spark_sentence(error)}"
    return f"Unexpected {type(error).__name__}: {error}"


def short_words(error: BaseException) -> str:
    """The text of an error: for one of Spark's its sentence, for any other its full text, with all that it carries."""
    if isinstance(error, HybridError):
        return error.words
    return spark_sentence(error) if is_spark_error(error) else str(error) or type(error).__name__


def _python_cause(text: str) -> str | None:
    """The last line of the last traceback that a worker sent."""
    if _TRACEBACK not in text:
        return None
    below = text.rpartition(_TRACEBACK)[2]
    match = _PYTHON.search(below)
    return match[0] if match is not None else None


def _condition(text: str) -> str | None:
    """The last error condition in the text, which is the cause. Wrapping conditions count only if there is no other."""
    conditions: list[str] = _CONDITION.findall(text)
    causes = [condition for condition in conditions if not condition.startswith(_WRAPPED)]
    return next(reversed(causes or conditions), None)


def _java_cause(text: str) -> str:
    causes: list[str] = _CAUSED.findall(text)
    first = causes[-1] if causes else _CALLED.sub("", text).partition("\n")[0]
    return _CLASS.sub(r"\1", first)
