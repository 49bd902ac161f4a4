"""Errors of Spark that a statement ends with, as QueryErrors."""

from __future__ import annotations

import re

from hybrid.errors import EXECUTION, VALIDATION, HybridError, QueryError
from hybrid.jvm.spark_errors import is_spark_error, spark_sentence
from hybrid.lake.workers import worker_fault
from hybrid.runtime.arrow_rows import bad_byte
from hybrid.sql.spark_functions import INSTEAD

_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_ADVICE = re.compile(r"\s*(?:Use `?try_\w+|If necessary set|To return NULL instead|Fix the|SQLSTATE).*$", re.DOTALL)
_RELATION = re.compile(r"`?_hy_rel_\d+(?:_\w+)?`?")
_NO_FILE = ("FILE_NOT_EXIST", "FileNotFoundException", "PATH_NOT_FOUND", "No such file or directory")


def spark_error(error: Exception) -> Exception:
    """The QueryError for an error of Spark; any other error as it is."""
    if isinstance(error, UnicodeDecodeError):  # Spark passes texts on as bytes that nobody has checked
        return QueryError(f"A text of the answer is not UTF-8: {bad_byte(error)}.", pinot_code=EXECUTION)
    if isinstance(error, HybridError) or not is_spark_error(error):
        return error
    fault = worker_fault(error)
    if fault is not None:
        return fault
    from pyspark.errors import AnalysisException, ParseException

    sentence = _RELATION.sub("table", _ADVICE.sub("", _CONDITION.sub("", spark_sentence(error)))).strip()
    if isinstance(error, AnalysisException | ParseException):
        return QueryError(f"Spark does not run this statement: {sentence}", pinot_code=VALIDATION, hint=INSTEAD)
    return QueryError(f"Spark could not answer: {sentence}", pinot_code=EXECUTION)


def is_missing_file_of_spark(error: BaseException | None) -> bool:
    """Whether Spark did not find a data file of the statement."""
    if isinstance(error, FileNotFoundError):
        return True
    return error is not None and is_spark_error(error) and any(word in str(error) for word in _NO_FILE)
