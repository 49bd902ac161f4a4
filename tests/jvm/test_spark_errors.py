"""One sentence of each error of Spark, its JVM and its workers. No JVM."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, PythonException

from hybrid.cli.error_report import report_error
from hybrid.jvm.spark_errors import is_spark_error, short_words, spark_sentence, unexpected_words

PLAN = "\n".join(f"'Project [a#{number}]" for number in range(2000))
UNRESOLVED = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `b` cannot be resolved. "
    "Did you mean one of the following? [`a`]."
)
TRACE = "\tat org.apache.spark.Foo.bar(Foo.scala:1)\n" * 40
JAVA = (
    "An error occurred while calling o77.save.\n: org.apache.spark.SparkException: Job aborted.\n" + TRACE
    + "Caused by: java.io.IOException: No such device\n" + TRACE
)  # fmt: skip
WORKER = (
    "An error occurred while calling o9.collect.\n: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed "
    "while writing rows to file:/x. SQLSTATE: 58030\n" + TRACE
    + 'Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n'
    '  File "worker.py", line 7, in main\n    process()\nValueError: bad value: 7\n' + TRACE
)  # fmt: skip
WRITE = (
    "[TASK_WRITE_FAILED] Task failed while writing rows to file:/x. SQLSTATE: 58030\n" + TRACE
    + "Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (AnalysisException(f"{UNRESOLVED} SQLSTATE: 42703; line 1 pos 7;\n{PLAN}"), UNRESOLVED),
        (PythonException(WORKER), "ValueError: bad value: 7"),
        (Py4JError(JAVA), "IOException: No such device"),
        (Py4JError(WRITE), "[DIVIDE_BY_ZERO] Division by zero."),
        (Py4JError("An error occurred while calling o1.x. Trace:\npy4j.Py4JException: Method x does not exist"),
         "An error occurred while calling o1.x. Trace:"),
        (Py4JNetworkError("Answer from Java side is empty"), "Answer from Java side is empty"),
        (Py4JNetworkError(""), "Py4JNetworkError"),
    ],
)  # fmt: skip
def test_a_sentence_of_the_cause(error: Exception, sentence: str) -> None:
    assert is_spark_error(error) and spark_sentence(error) == sentence
    assert unexpected_words(error) == f"Spark failed: {sentence}" and short_words(error) == sentence


def test_what_is_not_sparks_stays(capsys: pytest.CaptureFixture[str]) -> None:
    assert (short_words(ValueError("x" * 900)), short_words(ValueError())) == ("x" * 900, "ValueError")
    assert unexpected_words(ValueError("x")) == "Unexpected ValueError: x" and not is_spark_error(ValueError("x"))


def test_the_command_line_says_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    from hybrid.cli.command import Cli

    assert report_error(Cli(), [], AnalysisException(f"{UNRESOLVED}\n{PLAN}")) == 1
    said = capsys.readouterr().err
    assert f"error: Spark failed: {UNRESOLVED}\n" in said and len(said) < 1000 and "this is a bug" not in said
