"""Runs a Python flow file, which declares its tables and flows. No flow runs yet, and no JVM is started."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from hybrid.errors import HybridError, SpecError
from hybrid.flow.declared.own_session import own_session
from hybrid.flow.declared.python_face import spark
from hybrid.flow.declared.session import FlowSession, in_session
from hybrid.jvm.spark_errors import is_spark_error, spark_sentence


def run_python_file(path: Path, text: str, session: FlowSession) -> None:
    """Executes the file with `spark` in its globals. SpecError, with the line, for any error."""
    source = session.declaration.source
    try:
        code = compile(text, source, "exec")
    except SyntaxError as error:
        raise SpecError(f"{source}: line {error.lineno}: this is not Python: {error.msg}.") from error
    # As in a notebook: functions of `__main__` are sent to Spark's workers by value.
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path), "spark": spark}
    own_session(spark)
    folder = str(path.absolute().parent)
    sys.path.insert(0, folder)
    try:
        with in_session(session):
            exec(code, names)
    except HybridError:
        raise
    except SystemExit as error:
        raise SpecError(
            f"{source}: the file ends itself (exit {error.code}) before it has declared everything."
        ) from error
    except Exception as error:  # a user's file may raise anything
        words = spark_sentence(error) if is_spark_error(error) else f"{type(error).__name__}: {error}"
        raise SpecError(f"{source}: line {line_of(error, source)}: {words}") from error
    finally:
        sys.path.remove(folder)


def line_of(error: BaseException, source: str) -> str:
    """The line of the file where an error was raised, or `?`."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    return str(lines[-1]) if lines else "?"
