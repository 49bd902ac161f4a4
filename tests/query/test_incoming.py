"""Rows come to the cache as they come to a statement over files, and those win that a window says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid.config.table_config import Half, StreamConfig, TableSpec, UpsertConfig
from hybrid.query.cache.stream_batch import _KEPT, StreamBatch
from hybrid.query.cache.table_snapshot import among
from hybrid.query.connection import locked_connection
from hybrid.query.scan import winners_sql
from hybrid.query.tail import TailMessage
from hybrid.query.tailrows import TailRows, tail_decoder, tail_rows, types_of
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.types import DataType
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey
from hybrid.table.state import Act, RealtimeState
from tests.examples import examples

KEY = PartitionKey("kafka", "topic", 0, 0)
STATE = RealtimeState(Act("create-1", 0, "create", "2021-11-21T00:00:00.000+00:00"))
VALUES: dict[DataType, list[Any]] = {
    DataType.INT: [1, -(2**31), 2**31 - 1, None],
    DataType.LONG: [1, -(2**63), 2**63 - 1, None],
    DataType.FLOAT: [0.1, -3.4e38, 1e-45, None, "NaN", "-Infinity"],
    DataType.DOUBLE: [0.1, -1.7e308, 5e-324, None, "NaN", "Infinity"],
    DataType.BIG_DECIMAL: ["0.000000000000000001", "-12345678901234567890.5", "7", None],
    DataType.BOOLEAN: [True, False, None],
    DataType.TIMESTAMP: [0, -1, 1_632_463_351_999, 253_402_300_799_999, None],
    DataType.STRING: ["", "a'b", "\u00e9\U0001f600", "null", None],
    DataType.JSON: [{"a": [1, None]}, "[]", None],
    DataType.BYTES: ["", "00ff", None],
}


def table(*fields: FieldSpec, upsert: UpsertConfig | None = None) -> TableSpec:
    """Its key is the first field, if it is an upsert table."""
    schema = Schema("t", fields, (fields[0].name,) if upsert else (), null_handling=True)
    return TableSpec("t", schema, frozenset({Half.REALTIME}), None, StreamConfig(("t",), "b"), None, upsert)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with locked_connection([]) as opened:
        yield opened


def rows_of(spec: TableSpec, records: Sequence[dict[str, Any]]) -> TailRows:
    sent = [TailMessage(KEY, n, 60_000 + n, json.dumps(one).encode()) for n, one in enumerate(records)]
    found = tail_rows(tail_decoder(spec), spec, STATE, sent, 0)
    assert found is not None and found.count == len(records)
    return found


@pytest.mark.parametrize("kind", DataType)
@pytest.mark.parametrize("single", [True, False], ids=["one", "many"])
def test_every_type_comes_as_it_comes_to_a_statement_over_files(
    connection: duckdb.DuckDBPyConnection, kind: DataType, single: bool
) -> None:
    field = FieldSpec("c", kind, FieldKind.DIMENSION, single_value=single)
    spec = table(field)
    values = VALUES[kind]
    given_values = values if single else [[one] for one in values if one is not None] + [values[:2], [], None]
    rows = rows_of(spec, [{"c": one} for one in given_values])
    incoming = StreamBatch(connection, "t", spec)
    names = ", ".join(types_of(spec))
    rows.load(connection, "listed")
    with incoming.holding(rows):
        assert incoming.count == len(given_values)
        described = [
            connection.execute(f"DESCRIBE SELECT {names} FROM {source}").fetchall() for source in _both(incoming)
        ]
        found = [connection.execute(f"SELECT {names} FROM {source}").fetchall() for source in _both(incoming)]
    assert repr(found[0]) == repr(found[1]) and described[0] == described[1]
    assert incoming.count == 0


def _both(incoming: StreamBatch) -> tuple[str, str]:
    return "listed", f"({incoming.select})"


@pytest.mark.slow
def test_a_prepared_statement_sees_the_rows_of_its_moment(connection: duckdb.DuckDBPyConnection) -> None:
    spec = table(FieldSpec("c", DataType.INT, FieldKind.DIMENSION))
    incoming = StreamBatch(connection, "t", spec)
    connection.execute("CREATE TABLE kept (c INTEGER, n BIGINT)")
    for first in range(0, 30, 3):
        with incoming.holding(rows_of(spec, [{"c": first + n} for n in range(3)])):
            # More statements than are kept, so that some are prepared again.
            for number in range(first % 4, _KEPT + 4):
                incoming.run(f"INSERT INTO kept SELECT c, {number} FROM ({incoming.select})").fetchall()
    assert connection.execute("SELECT min(c), max(c), count(DISTINCT c) FROM kept").fetchone() == (0, 29, 30)
    assert connection.execute("SELECT count(*) FROM duckdb_prepared_statements()").fetchall() == [(_KEPT,)]
    incoming.forget()
    assert connection.execute("SELECT count(*) FROM duckdb_prepared_statements()").fetchall() == [(0,)]
    incoming.close()
    with pytest.raises(duckdb.CatalogException):
        connection.execute(incoming.select)


# Of few values, so that rows meet: each type's greatest and least ones. A row without a value to compare is rejected.
_COMPARED: dict[DataType, list[Any]] = {
    DataType.LONG: [0, 1, -(2**63)],
    DataType.FLOAT: [0.1, 0.25, "NaN", "-Infinity"],
    DataType.STRING: ["", "a", "\uffee", "\U0001f600"],
    DataType.TIMESTAMP: [0, 1, 253_402_300_799_999],
    DataType.BIG_DECIMAL: ["0.1", "0.10", "-7"],
}
_KEYS: dict[DataType, list[Any]] = {
    DataType.INT: [1, 2],
    DataType.STRING: ["a", "A"],
    DataType.TIMESTAMP: [0, 253_402_300_799_999],
    DataType.BYTES: ["00", "01"],
}


@st.composite
def contests(draw: st.DrawFn) -> tuple[TableSpec, list[dict[str, Any]], list[dict[str, Any]], list[bool]]:
    """A table, what is there (one row a key), what comes, and which of those there are delete markers."""
    kind, key = draw(st.sampled_from(list(_COMPARED))), draw(st.sampled_from(list(_KEYS)))
    fields = (FieldSpec("k", key, FieldKind.DIMENSION), FieldSpec("v", kind, FieldKind.METRIC))
    spec = table(*fields, upsert=UpsertConfig("v", first_wins=draw(st.booleans())))
    values = st.sampled_from(_COMPARED[kind])
    there = [{"k": one, "v": draw(values)} for one in draw(st.lists(st.sampled_from(_KEYS[key]), unique=True))]
    rows = st.fixed_dictionaries({"k": st.sampled_from(_KEYS[key]), "v": values})
    return spec, there, draw(st.lists(rows, min_size=1, max_size=6)), [draw(st.booleans()) for _ in there]


@pytest.mark.slow
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contest=contests(), hidden=st.integers(0, 6), by_scan=st.booleans())
def test_those_win_that_the_window_says(
    connection: duckdb.DuckDBPyConnection,
    contest: tuple[TableSpec, list[dict[str, Any]], list[dict[str, Any]], list[bool]],
    hidden: int,
    by_scan: bool,
) -> None:
    """Of rows that come the boundary hides those with small offsets; equal ones lose to what is there."""
    spec, there, coming, marked = contest
    names = ", ".join(types_of(spec))
    with closing(StreamBatch(connection, "t", spec)) as incoming:
        for relation, is_mark in (("live", False), ("marks", True)):
            rows = [row for row, is_so in zip(there, marked, strict=True) if is_so == is_mark]
            with incoming.holding(rows_of(spec, rows)) if rows else nullcontext():
                connection.execute(f"CREATE OR REPLACE TABLE {relation} AS SELECT {names} FROM ({incoming.select})")
        come = f"(SELECT * FROM ({incoming.select}) WHERE {columns.OFFSET} >= {hidden})"
        with incoming.holding(rows_of(spec, coming)):
            old = f"SELECT {names}, 0 AS fresh FROM (FROM live UNION ALL FROM marks)"
            both = f"SELECT * FROM ({old} UNION ALL SELECT {names}, 1 FROM {come}){winners_sql(spec, ', fresh')}"
            expected = connection.execute(f"SELECT k, fresh, {columns.OFFSET} FROM ({both})").fetchall()
            if by_scan:
                incoming.contend_by_scan(come, ["live", "marks"])
                beaten, near = (), among(incoming._spec, come)
            else:
                beaten = incoming.contend(come, ["live", "marks"], connection.execute)
                near = incoming.near(beaten) if beaten else "FALSE"
            won = connection.execute(f"SELECT k, {columns.OFFSET} FROM ({incoming.select})").fetchall()
            left = connection.execute(
                f"SELECT k FROM (FROM live UNION ALL FROM marks) WHERE NOT ({near})", list(beaten)
            ).fetchall()
    assert sorted(map(repr, won)) == sorted(repr((k, offset)) for k, fresh, offset in expected if fresh)
    assert sorted(map(repr, left)) == sorted(repr((k,)) for k, fresh, _ in expected if not fresh)


def test_years_that_python_does_not_know_are_compared(connection: duckdb.DuckDBPyConnection) -> None:
    """Spark and DuckDB know them, and a file of an OFFLINE half may have them."""
    fields = (
        FieldSpec("k", DataType.INT, FieldKind.DIMENSION),
        FieldSpec("v", DataType.TIMESTAMP, FieldKind.DATE_TIME),
    )
    spec = table(*fields, upsert=UpsertConfig("v"))
    incoming = StreamBatch(connection, "t", spec)
    connection.execute(f"CREATE TABLE live AS SELECT {', '.join(types_of(spec))} FROM ({incoming.select})")
    connection.execute("INSERT INTO live (k, v) VALUES (1, TIMESTAMP '29000-01-01'), (2, TIMESTAMP '1000-01-01 (BC)')")
    with incoming.holding(rows_of(spec, [{"k": 1, "v": 5}, {"k": 2, "v": 5}])):
        assert incoming.contend(f"({incoming.select})", ["live"], connection.execute) == [2]
        assert incoming.count == 1
