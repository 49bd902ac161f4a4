"""Time, cancellation, limits of rows and bytes, files of results, and processes without Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hybrid.errors import MachineError, QueryError
from hybrid.query.engine import QueryOptions, explain, run
from hybrid.query.spark.errors import spark_error
from hybrid.query.tail import NoTail
from tests.query.halves import KEY, Halves
from tests.query.spark_engine.both_engines import BothEngines
from tests.query.stepped import SteppedCache
from tests.query.test_cases import row

Make = Callable[..., Halves]
# Some millions of rows. A task of Spark's looks for its end at each row of a file, so none makes too many of them.
ENDLESS = "select sum(sqrt(a.id * b.id) + sqrt(c.id * d.id)) from parity a, parity b, parity c, parity d"


def test_a_text_that_spark_has_not_checked_is_an_error_of_the_statement() -> None:
    """Spark hands bytes over as they are; whoever makes a text of them fails."""
    with pytest.raises(UnicodeDecodeError) as caught:
        b"caf\xe9".decode()
    found = spark_error(caught.value)
    assert isinstance(found, QueryError)
    assert str(found).startswith("A text of the answer is not UTF-8: byte 0xe9 at place 4, near 'caf")
    other = ValueError("x")
    assert spark_error(other) is other


def no_spark() -> Any:
    raise AssertionError("Spark was started")


@pytest.mark.spark
@pytest.mark.slow
def test_a_statement_that_takes_too_long_is_stopped(parity: BothEngines) -> None:
    parity.answer("select 1", "spark")  # the session has started
    began = time.monotonic()
    error = parity.answer(f"set timeoutMs = 700; {ENDLESS}", "spark")
    assert isinstance(error, QueryError)
    assert (error.pinot_code, str(error)) == (250, "The query was stopped after 700 ms.")
    assert time.monotonic() - began < 20
    assert parity.compare("select count(*) from parity") == "equal"  # the session goes on


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.0, 0.5])
def test_a_statement_is_cancelled(parity: BothEngines, after_s: float) -> None:
    def running(interrupt: Callable[[], None]) -> None:
        threading.Timer(after_s, interrupt).start() if after_s else interrupt()

    error = parity.answer(ENDLESS, "spark", running=running)
    assert isinstance(error, QueryError)
    assert (error.pinot_code, str(error)) == (503, "The query was cancelled.")
    assert not parity.spark().session.sparkContext.statusTracker().getActiveJobsIds()


@pytest.mark.spark
@pytest.mark.slow
def test_limits_of_rows_and_bytes(parity: BothEngines) -> None:
    for options, message in (
        ({"rows_max": 5}, "The result has more than 5 rows"),
        ({"bytes_max": 50}, "The result is larger than 50 bytes"),
    ):
        error = parity.answer("select name from parity limit 30", "spark", **options)
        assert isinstance(error, QueryError)
        assert message in str(error)
    found = parity.answer("select id from parity", "spark", rows_max=30)
    assert not isinstance(found, QueryError)
    assert len(found.rows) == 10
    assert "LIMIT" in found.warnings[0]
    whole = parity.answer("select id from parity", "spark", whole=True)
    assert not isinstance(whole, QueryError)
    assert len(whole.rows) == 40
    assert list(whole.warnings) == []


class Kept:
    """A sink that keeps what it gets."""

    can_restart = True

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def begin(self, schema: pa.Schema, revision: str, warnings: Any) -> None:
        self.schema, self.revision, self.batches = schema, revision, []

    def take(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, self.schema)


@pytest.mark.spark
@pytest.mark.slow
def test_rows_for_a_file_are_the_same(parity: BothEngines) -> None:
    sinks = {engine: Kept() for engine in ("duckdb", "spark")}
    for engine, sink in sinks.items():
        found = parity.answer("select * from parity order by id", engine, sink=sink, whole=True)
        assert not isinstance(found, QueryError), found
        assert found.rows == []
    assert sinks["spark"].schema == sinks["duckdb"].schema
    assert sinks["spark"].table().to_pylist() == sinks["duckdb"].table().to_pylist()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "ours", "theirs"),
    [
        ("select 9223372036854775807 + id from parity where id = 5", "does not fit LONG", "overflow"),
        ("select cast(ts as int) from parity", "does not fit INT", "overflow"),
        ("select id from parity where i = 'abc'", "'abc' is no INT", "'abc'"),
        ("select cast(1e300 * (id + 1) as float) from parity", "does not fit FLOAT", "does not fit FLOAT"),
        ("select 7 % (id - id) from parity", "zero", "zero"),
        ("select (select id from parity where id < 3) from parity", "more than one row", "more than one row"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_on_both(parity: BothEngines, sql: str, ours: str, theirs: str) -> None:
    errors = parity.answer(sql), parity.answer(sql, "spark")
    for error, words in zip(errors, (ours, theirs), strict=True):
        assert isinstance(error, QueryError), error
        assert words.lower() in str(error).lower()
        assert "_hy_" not in str(error)


def test_another_name_of_an_engine(make: Make) -> None:
    with pytest.raises(QueryError, match=r"engine is duckdb or spark, not 'sprak'. Did you mean 'spark'\?") as raised:
        run("set engine = 'sprak'; select 1", make(), QueryOptions(tail=NoTail()))
    assert raised.value.pinot_code == 700


def test_a_wrong_statement_has_the_same_error_without_spark(make: Make) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    for sql in ("select oder_id from orders", "select nofun(1) from orders", "select order_id, count(*) from orders"):
        with pytest.raises(QueryError) as ours:
            run(sql, halves, QueryOptions(tail=NoTail()))
        with pytest.raises(QueryError) as theirs:
            run(f"{sql}; set engine = 'spark'", halves, QueryOptions(tail=NoTail(), spark=no_spark))
        assert (str(theirs.value), theirs.value.hint) == (str(ours.value), ours.value.hint)


def test_what_is_refused_starts_no_spark(make: Make) -> None:
    with pytest.raises(QueryError, match="Spark does not run MEDIAN"):
        run("set engine = spark; select median(ts) from orders", make(), QueryOptions(tail=NoTail(), spark=no_spark))


def test_a_process_without_spark_names_the_command(make: Make) -> None:
    with pytest.raises(QueryError, match="A server answers by DuckDB alone") as raised:
        run("set engine = 'spark'; select count(*) from orders", make(), QueryOptions(tail=NoTail()))
    assert raised.value.hint == 'hybrid query --engine spark "select ..."'


def test_the_cache_leaves_a_statement_for_spark_alone(make: Make) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    cache = SteppedCache(halves, 1_632_700_000_000)
    assert cache.ask("set engine = 'duckdb'; select count(*) from orders") is not None
    assert cache.ask("set engine = 'spark'; select count(*) from orders") is None


def test_without_java_the_error_says_what_to_install(make: Make) -> None:
    from hybrid.jvm.java import find_java

    def start() -> Any:
        return find_java({"PATH": ""})

    with pytest.raises(MachineError, match="Java"):
        run("set engine = 'spark'; select count(*) from orders", make(), QueryOptions(tail=NoTail(), spark=start))


def test_an_explanation_names_the_engine_and_starts_no_spark(make: Make) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    sql = "select customer, sum(amount) from orders group by 1"
    by_spark = explain(f"set engine = 'spark'; {sql}", halves, QueryOptions(tail=NoTail(), spark=no_spark))
    by_duckdb = explain(sql, halves, QueryOptions(tail=NoTail()))
    assert (by_spark.engine, by_duckdb.engine) == ("spark", "duckdb")
    assert by_spark.revision == by_duckdb.revision
    assert by_spark.sql.startswith("SELECT `customer`, ")
    assert "_hy_rel_0_realtime" in by_spark.tables[0].sql
    rows = run(f"set engine = 'spark'; explain plan for {sql}", halves, QueryOptions(tail=NoTail())).rows
    assert ("engine", "spark") in rows
