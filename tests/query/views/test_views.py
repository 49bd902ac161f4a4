"""The printed views, run for real by each engine, give the rows that a query gives at the same revision."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema

from hybrid.config.schema_json import default_null
from hybrid.config.table_config import ARRIVED, BoundaryMode, Half, Partial, Strategy, UpsertConfig
from hybrid.errors import QueryError, UsageError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log_entries import read_commit
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import KafkaTail, NoTail, Tail
from hybrid.query.views.view import ENGINES, table_view
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.boundary import INFINITE, Boundary
from tests.query.conftest import NOW_MS
from tests.query.halves import KEY, Halves, ListTail, orders_spec
from tests.query.test_cases import message, row
from tests.query.test_net_deletes import LIVE, STARTED, keyless, stored

VALUES: dict[DataType, object] = {
    DataType.INT: 7,
    DataType.LONG: 2**53 + 1,
    DataType.FLOAT: 0.1,
    DataType.DOUBLE: float("nan"),
    DataType.BIG_DECIMAL: Decimal("12345678901234567890.000000000000000001"),
    DataType.BOOLEAN: True,
    DataType.TIMESTAMP: datetime(9999, 12, 31, 6, 4, 30, 123456, UTC),
    DataType.STRING: 'it\'s "a" {brace} \\ ü\n"""',
    DataType.JSON: '{"a": [1]}',
    DataType.BYTES: b"\x00\xff",
}


def named(kind: DataType, single: bool = True, prefix: str = "c") -> FieldSpec:
    name = f"{prefix} 'x' " if kind is DataType.STRING else prefix
    null = default_null(kind, FieldKind.DIMENSION)
    column = f"{name}{kind.value.lower()}{'' if single else 's'}".replace(" ", "-")
    return FieldSpec(column, kind, FieldKind.DIMENSION, single, null)


# Lists of BIG_DECIMAL are none of Pinot's types: clients are told texts.
LISTED = [kind for kind in DataType if kind is not DataType.BIG_DECIMAL]
EXTRA = [*(named(kind) for kind in DataType), *(named(kind, False) for kind in LISTED)]
EXTRA_VALUES = {
    field.name: VALUES[field.data_type] if field.single_value else [VALUES[field.data_type]] for field in EXTRA
}


def append(folder: Path) -> Halves:
    """Every type; rows of both halves, a late one, rejected ones, and files that another act laid anew."""
    halves = Halves.create(folder, orders_spec(extra=EXTRA))
    rows = [row(n, n * 100, n, values=EXTRA_VALUES) for n in range(6)]
    halves.commit_realtime(
        [*rows[:4], replace(row(9, 1, 4), segment="orders__rejected", reason="bad")], offsets={KEY: 5}
    )
    halves.commit_offline([replace(one, segment="o") for one in rows[:2]], Boundary(200, {KEY: 4}))
    halves.commit_realtime([row(8, 50, 5, values=EXTRA_VALUES)], offsets={KEY: 6})
    return halves


def upsert(folder: Path) -> Halves:
    """Keys with older versions in both halves, equal comparison values, and delete markers in each."""
    halves = Halves.create(folder, orders_spec(upsert=True, deletes=True))
    live = {"gone": False}
    rows = [row(n % 4, 100 + n, n, f"v{n}", values=live) for n in range(8)]
    marked = [row(1, 300, 8, values=live, op="delete"), row(2, 301, 9, values=live, op="delete")]
    halves.commit_realtime([*rows, marked[0]], offsets={KEY: 9})
    halves.commit_offline(
        [replace(one, segment="o") for one in [rows[4], rows[6], rows[7], marked[0]]], Boundary(350, {KEY: 9})
    )
    halves.commit_realtime(
        [marked[1], row(3, 107, 10, "tie", values=live), row(5, 400, 11, values=live)], offsets={KEY: 12}
    )
    return halves


def dedup(folder: Path) -> Halves:
    """Keys whose first row has the highest time, ties of timestamps, and a marker in the place of a first row."""
    spec = replace(orders_spec(upsert=True), upsert=UpsertConfig(ARRIVED, first_wins=True))
    halves = Halves.create(folder, spec)
    rows = [row(n % 4, 100 - n, n, f"v{n}", timestamp_ms=n // 2) for n in range(8)]
    halves.commit_realtime(rows, offsets={KEY: 8})
    moved = [rows[0], replace(rows[1], op="delete"), rows[6]]
    halves.commit_offline([replace(one, segment="o") for one in moved], Boundary(101, {KEY: 7}))
    return halves


def nets(folder: Path) -> Halves:
    """No key and no time column; deletes in both halves."""
    halves = Halves.create(folder, keyless())
    halves.commit_realtime([stored("row", 1, "a", n) for n in range(3)], offsets={LIVE: 3}, **STARTED)
    halves.commit_offline([stored("row", 1, "a", n, "o") for n in range(2)], Boundary(INFINITE, {LIVE: 2}))
    changes = [
        stored("delete", 1, "a", 3),
        stored("row", 2, None, 4),
        stored("delete", 2, None, 5),
        stored("row", 3, "b", 6),
    ]
    halves.commit_realtime(changes, offsets={LIVE: 7}, deletes=2)
    return halves


def pinot(folder: Path) -> Halves:
    """Time alone divides the halves, a day behind the last offline time."""
    halves = Halves.create(folder, replace(orders_spec(), boundary_lag_ms=100), BoundaryMode.PINOT)
    halves.commit_realtime([row(n, n * 100, n, "live") for n in range(1, 6)], offsets={KEY: 6})
    halves.commit_offline([row(n, n * 100, n, "pushed", segment="o") for n in (1, 2, 3)])
    return halves


def untimed(folder: Path) -> Halves:
    """No time column: the frontier alone."""
    halves = Halves.create(folder, orders_spec(time_column=None))
    rows = [replace(row(n, n, n), time_ms=None) for n in range(4)]
    halves.commit_realtime(rows, offsets={KEY: 4})
    halves.commit_offline([replace(rows[0], segment="o")], Boundary(INFINITE, {KEY: 1}))
    return halves


def evolved(folder: Path) -> Halves:
    """Columns of every type that some files lack, and one that all lack; rows that were there show defaults."""
    halves = Halves.create(folder, orders_spec(extra=EXTRA))
    halves.commit_realtime([row(1, 10, 0, values=EXTRA_VALUES)], offsets={KEY: 1})
    added = [named(kind, prefix="later") for kind in DataType]
    given = {field.name: VALUES[field.data_type] for field in added}
    path = halves.layout.half(Half.REALTIME)
    columns = pa.schema([(field.name, field.arrow_type()) for field in added])
    DeltaTable(str(path)).alter.add_columns([Field(one.name, one.type) for one in Schema.from_arrow(columns).fields])
    halves.spec = orders_spec(extra=[*EXTRA, *added])
    halves.commit_realtime([row(2, 20, 1, values={**EXTRA_VALUES, **given})], offsets={KEY: 2})
    halves.spec = orders_spec(extra=[*EXTRA, *added, *(named(kind, prefix="last") for kind in DataType)])
    return halves


def tail(folder: Path) -> Halves:
    """A revision with a tail, whose rows later commits have brought, with some more."""
    halves = upsert(folder)
    halves.commit_realtime([row(5, 500, 12, "brought", values={"gone": False})], offsets={KEY: 13})
    halves.commit_realtime([row(n, 600, 12 + n, values={"gone": False}) for n in (1, 2)], offsets={KEY: 15})
    return halves


def as_spark_writes(folder: Path) -> Halves:
    """Files as ingestion and Spark write them: INT96 instants, and no schema of Arrow's."""
    halves = append(folder)
    for path in halves.layout.root.rglob("*.parquet"):
        stored_rows = pq.ParquetFile(path).read()
        pq.write_table(stored_rows, path, use_deprecated_int96_timestamps=True, store_schema=False)
    return halves


FOLDED = {
    "first": (DataType.STRING, Strategy.IGNORE),
    "forced": (DataType.STRING, Strategy.FORCE_OVERWRITE),
    "total": (DataType.INT, Strategy.INCREMENT),
    "exact": (DataType.BIG_DECIMAL, Strategy.INCREMENT),
    "real": (DataType.FLOAT, Strategy.INCREMENT),
    "high": (DataType.TIMESTAMP, Strategy.MAX),
    "low": (DataType.STRING, Strategy.MIN),
    "all": (DataType.LONG, Strategy.APPEND),
    "each": (DataType.STRING, Strategy.UNION),
    "c1": (DataType.LONG, None),
    "c2": (DataType.STRING, None),
}


def folds(folder: Path) -> Halves:
    """Every strategy, two comparison columns, nulls, late rows and deletes, in both halves."""
    dice = random.Random(9)
    lists = {"all", "each"}
    extra = [FieldSpec(name, kind, FieldKind.METRIC, name not in lists) for name, (kind, _) in FOLDED.items()]
    spec = orders_spec(upsert=True, deletes=True, extra=extra)
    strategies = {name: strategy for name, (_, strategy) in FOLDED.items() if strategy is not None}
    upsert = UpsertConfig("c1", "gone", further_comparison_columns=("c2",), partial=Partial(strategies))
    halves = Halves.create(folder, replace(spec, upsert=upsert, null_handling=True))
    rows = []
    for offset in range(80):
        values: dict[str, Any] = {
            "first": dice.choice("ab"), "forced": dice.choice("cd"), "total": dice.randrange(9),
            "exact": Decimal(dice.randrange(99)) / 10, "real": dice.randrange(9) / 8,
            "high": datetime(2021, 1, dice.randrange(1, 28), tzinfo=UTC), "low": dice.choice("xyz"),
            "all": [dice.randrange(9) for _ in range(2)], "each": [dice.choice("pqr") for _ in range(2)],
        }  # fmt: skip
        values = {name: value if dice.random() < 0.7 else None for name, value in values.items()}
        compared = {"c1": dice.randrange(9)} if dice.random() < 0.5 else {"c2": dice.choice("stu")}
        op = "delete" if dice.random() < 0.1 else "row"
        one = row(dice.randrange(6), 100 + offset, offset, values={"gone": op == "delete", **values, **compared}, op=op)
        rows.append(replace(one, timestamp_ms=dice.randrange(4)))
    halves.commit_realtime(rows, offsets={KEY: 80})
    halves.commit_offline([replace(one, segment="o") for one in rows[:40]], Boundary(140, {KEY: 40}))
    return halves


def empty(folder: Path) -> Halves:
    """No file at all."""
    return Halves.create(folder, orders_spec(extra=EXTRA))


TABLES: dict[str, tuple[Callable[[Path], Halves], str | None]] = {
    "append": (append, None),
    "upsert": (upsert, None),
    "upsert before": (upsert, "orders[OFFLINE=0 REALTIME=1]"),
    "dedup": (dedup, None),
    "nets": (nets, None),
    "pinot": (pinot, None),
    "untimed": (untimed, None),
    "evolved": (evolved, None),
    "tail": (tail, f"orders[OFFLINE=1 REALTIME=2 tail={{{KEY}@14}}]"),
    "as spark writes": (as_spark_writes, None),
    "folds": (folds, None),
    "empty": (empty, None),
}


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Halves]:
    made: dict[str, Halves] = {}

    def table(name: str) -> Halves:
        if name not in made:
            made[name] = TABLES[name][0](tmp_path_factory.mktemp(name.replace(" ", "-")))
        return made[name]

    return table


def arrow_of(engine: str, view: Any) -> pa.Table:
    if engine == "duckdb":
        return view.to_arrow_table()
    return view.toArrow() if engine == "spark" else view.collect().to_arrow()


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    return sorted(
        tuple(_plain(value) for value in one)
        for one in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )


def _plain(value: object) -> str:
    """A value's text: times are UTC without zone, decimals without the zeros of their scale, floats of four bytes."""
    if isinstance(value, list):
        return repr([_plain(one) for one in value])
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    return f"{value:.7g}" if isinstance(value, float) else repr(value)


def expected(halves: Halves, as_of: str | None) -> tuple[list[str], list[tuple[str, ...]], str]:
    options = QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS, as_of=as_of)
    found = run("select * from orders limit 100000", halves, options)
    return (
        list(found.column_names),
        sorted(tuple(_plain(one) for one in row) for row in found.rows),
        str(found.revision),
    )


def check(engine: str, halves: Halves, as_of: str | None) -> None:
    made = table_view(halves.open("orders"), engine, NOW_MS, as_of)
    space: dict[str, Any] = {"__name__": "view"}
    exec(compile(made.code, f"{engine}.py", "exec"), space)
    table = arrow_of(engine, space["view"])
    names, rows, revision = expected(halves, as_of)
    assert (table.column_names, made.revision) == (names, revision)
    assert revision in made.code
    assert rows_of(table) == rows
    kinds = {field.name: field.arrow_type() for field in halves.spec.schema.fields}
    for field in table.schema:
        _same_type(field.type, kinds[field.name])


def _same_type(found: pa.DataType, wanted: pa.DataType) -> None:
    if pa.types.is_list(wanted):
        assert pa.types.is_list(found) or pa.types.is_large_list(found)
        _same_type(found.value_type, wanted.value_type)
    elif pa.types.is_timestamp(wanted):
        assert pa.types.is_timestamp(found)
    else:
        assert str(found).removeprefix("large_").removesuffix("_view") == str(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_the_code_gives_the_products_rows(laid: Callable[[str], Halves], engine: str, name: str) -> None:
    if (engine, name) == ("polars", "folds"):
        with pytest.raises(QueryError, match="rows of 'orders' are folded by key"):
            table_view(laid(name).open("orders"), engine, NOW_MS, None)
        return
    check(engine, laid(name), TABLES[name][1])


@pytest.mark.spark
def test_sparks_code_gives_the_products_rows(laid: Callable[[str], Halves], workbench: CommitContext) -> None:
    assert workbench.spark is not None
    for name in ("append", "nets", "pinot", "untimed", "evolved", "tail", "folds", "empty"):
        check("spark", laid(name), TABLES[name][1])


@pytest.mark.process
def test_it_is_a_python_file(laid: Callable[[str], Halves]) -> None:
    import subprocess
    import sys

    halves = laid("append")
    for engine in ("duckdb", "polars"):
        code = table_view(halves.open("orders"), engine, NOW_MS).code
        assert code.startswith(
            "# Table 'orders' at one revision, as hybrid's queries show it:\n#   orders[OFFLINE=1 REALTIME=2 "
        )
        assert "hybrid." not in code and "import hybrid" not in code
        path = halves.layout.root / f"{engine}.py"
        path.write_text(code, encoding="utf-8")
        done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True)
        assert done.returncode == 0 and "amount" in done.stdout, done.stderr


@pytest.mark.slow
def test_what_no_view_is_made_of(tmp_path: Path, monkeypatch: Any) -> None:
    halves = upsert(tmp_path)
    table = halves.open("orders")
    with pytest.raises(UsageError, match=r"There is no view for 'duck': it is one of spark, duckdb, polars"):
        table_view(table, "duck", NOW_MS)
    kafka = ListTail([message(7, 700, 12, gone=False)])
    monkeypatch.setattr("hybrid.query.views.reads.KafkaTail", lambda: kafka)
    revision = f"orders[OFFLINE=1 REALTIME=2 tail={{{KEY}@13}}]"
    with pytest.raises(QueryError, match="has 1 rows of 'orders' that are not committed yet"):
        table_view(table, "duckdb", NOW_MS, revision)
    halves.commit_realtime([row(7, 700, 12, values={"gone": False})], offsets={KEY: 13})
    made = [table_view(table, engine, NOW_MS, revision) for engine in ENGINES]
    assert {one.revision.split(" tail=")[1] for one in made} == {f"{{{KEY}@13}}]"}
    brought = read_commit(halves.layout.half(Half.REALTIME), 3)
    assert brought is not None
    Path(brought.added[0].path).unlink()
    with pytest.raises(QueryError, match="no longer retained"):
        table_view(table, "duckdb", NOW_MS)


def test_a_view_takes_no_longer_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the files, each of which is opened, and not of Kafka, which has half of the time."""
    table = upsert(tmp_path).open("orders")
    read, ends = pq.read_schema, list[float]()

    def slowly(path: str) -> pa.Schema:
        time.sleep(0.05)
        return read(path)

    def noted(tail: KafkaTail, *_: object) -> Tail:
        assert tail._until is not None
        ends.append(tail._until - time.monotonic())
        return Tail()

    monkeypatch.setattr(pq, "read_schema", slowly)
    monkeypatch.setattr(KafkaTail, "read", noted)
    with pytest.raises(QueryError, match="The view took longer than 20 ms") as error:
        table_view(table, "duckdb", NOW_MS, timeout_ms=20)
    assert error.value.pinot_code == 250
    assert table_view(table, "duckdb", NOW_MS, f"orders[OFFLINE=1 REALTIME=2 tail={{{KEY}@12}}]", timeout_ms=20_000)
    assert all(9 < left <= 10 for left in ends)
