"""Exports of a home: every type in every format, all rows, and no file after an error."""

from __future__ import annotations

import csv
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.errors import ConflictError, NotFoundError, QueryError, UsageError
from hybrid.files.results.output_file import OutputStream
from hybrid.files.results.result_format import ResultFormat
from hybrid.files.results.result_sink import REVISION_KEY, ExportReport
from hybrid.operations.exports import export_to
from hybrid.progress import Silent
from hybrid.query import spool
from hybrid.query.result import QueryResult
from hybrid.query.result_warning import ResultLimitWarning
from tests.serve.app import lay_orders
from tests.serve.test_arrow_clients import FIRST, NULLS, TYPES, lay_things, same

NAMES = [*TYPES, "price"]
SQL = f"select {', '.join(NAMES)} from things order by id"
SLOW = "select a.order_id from orders a" + "".join(f", orders b{place}" for place in range(12))
MANY = "select a.order_id, b.customer from orders a" + "".join(f", orders {name}" for name in "bcdefgh")


@pytest.fixture
def hy(tmp_path: Path) -> Iterator[Hybrid]:
    (tmp_path / "home").mkdir()
    hy = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    lay_things(hy)
    lay_orders(hy)
    yield hy
    hy.close()


def arrow_of(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.ipc.open_file(path) as reader:
        return reader.read_all()


def rows_of(result: QueryResult) -> list[list[Any]]:
    """The rows of an answer, as Arrow's Python values."""
    return [list(row) for row in zip(*(column.to_pylist() for column in result.arrow().columns), strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_binary_formats_keep_every_type(hy: Hybrid, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    report = hy.export(SQL, path)
    found = arrow_of(path)
    expected = {**{name: kind[1] for name, kind in TYPES.items()}, "price": pa.decimal128(38, 18)}
    assert dict(zip(found.schema.names, found.schema.types, strict=True)) == expected
    answered = hy.query(f"{SQL} limit 10")
    assert same([list(row.values()) for row in found.to_pylist()], rows_of(answered))
    assert report.rows == 3 and report.bytes == path.stat().st_size and report.format == suffix
    assert report.revision == str(answered.revision) == found.schema.metadata[REVISION_KEY].decode()
    assert report.sentence.startswith("Wrote 3 rows (") and f"to {path} in " in report.sentence


@pytest.mark.slow
def test_csv(hy: Hybrid, tmp_path: Path) -> None:
    hy.export(SQL, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        first, nulls, edges = csv.DictReader(file)
    assert first == {
        "id": "1", "big": str(2**62 + 1), "small": "0.1", "wide": "0.1", "word": FIRST["word"], "flag": "true",
        "moment": "2021-09-24T06:02:31.123456Z", "doc": '{"a":[1,null]}', "raw": "00ff", "words": '["a", "", "ß"]',
        "numbers": "[1, -2]", "moments": '["1969-12-31T23:59:59.999999Z"]', "ts": "1000", "price": "12.5",
    }  # fmt: skip
    assert {name for name, cell in nulls.items() if cell} == set(NULLS)
    assert (edges["small"], edges["wide"], edges["price"]) == ("Infinity", "NaN", "-0.000000000000000001")
    assert edges["moment"] == "0001-01-01T00:00:00Z" and edges["big"] == str(-(2**63))
    # A null and an empty text differ.
    assert ",," in (tmp_path / "a.csv").read_text() and '""' in (tmp_path / "a.csv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_json_is_what_the_command_line_prints(hy: Hybrid, tmp_path: Path, suffix: str) -> None:
    from hybrid.runtime.json_values import json_value

    path = tmp_path / f"a.{suffix}"
    hy.export(SQL, path)
    text = path.read_text(encoding="utf-8")
    found = json.loads(text) if suffix == "json" else [json.loads(line) for line in text.split("\n")[:-1]]
    answered = hy.query(f"{SQL} limit 10")
    assert found == [dict(zip(NAMES, map(json_value, row), strict=True)) for row in answered.rows]


@pytest.mark.slow
def test_markdown(hy: Hybrid, tmp_path: Path) -> None:
    hy.export("select id, word, flag from things order by id", tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == (
        "| id | word | flag |\n| ---: | --- | --- |\n| 1 | Grüße, '世界'<br>\\x00 | true |\n| 2 |  |  |\n"
        "| 3 |  | false |\n"
    )


VALUES = """select 1 n, cast('18446744073709551615' as ubigint) u, cast('2021-09-24' as date) d,
    cast(170141183460469231731687303715884105727 as hugeint) h, cast(1.25 as decimal(9, 4)) c,
    cast(['1.5', null] as decimal(4, 2)[]) l, null x, sum(order_id) s from orders"""


@pytest.mark.slow
def test_types_that_go_row_by_row(hy: Hybrid, tmp_path: Path) -> None:
    """Values without a type of Pinot's are what an answer has, and a decimal keeps its digits."""
    hy.export(VALUES, tmp_path / "a.parquet")
    found, answered = arrow_of(tmp_path / "a.parquet"), hy.query(VALUES)
    assert same([list(row.values()) for row in found.to_pylist()], rows_of(answered))
    assert found.schema.field("c").type == pa.decimal128(9, 4)


@pytest.mark.slow
def test_all_rows_are_written_unless_the_statement_has_a_limit(hy: Hybrid, tmp_path: Path) -> None:
    with pytest.warns(ResultLimitWarning):
        assert len(hy.query(MANY).rows) == 10
    report = hy.export(MANY, tmp_path / "a.parquet")
    assert report.rows == 4**8 == arrow_of(tmp_path / "a.parquet").num_rows
    assert not any("Only the first" in warning for warning in report.warnings)
    assert hy.export(f"{MANY} limit 7", tmp_path / "b.csv").rows == 7


@pytest.mark.slow
def test_the_order_of_a_statement_is_kept(hy: Hybrid, tmp_path: Path) -> None:
    hy.export("select a.order_id * 1000 + b.order_id n from orders a, orders b order by n desc", tmp_path / "a.jsonl")
    numbers = [json.loads(line)["n"] for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 16


@pytest.mark.slow
def test_repeated_names_get_numbers(hy: Hybrid, tmp_path: Path) -> None:
    hy.export("select order_id, order_id, count(*), count(*) from orders group by 1, 2", tmp_path / "a.parquet")
    assert arrow_of(tmp_path / "a.parquet").column_names == ["order_id", "order_id_2", "count(*)", "count(*)_2"]


@pytest.mark.slow
def test_options_of_a_statement(hy: Hybrid, tmp_path: Path) -> None:
    report = hy.export("SET dropResults = true; SET numGroupsLimit = 3; select ts from things", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "ts\n" and any("numGroupsLimit" in one for one in report.warnings)
    explained = hy.export("EXPLAIN PLAN FOR select ts from things", tmp_path / "b.csv")
    assert explained.rows > 3 and (tmp_path / "b.csv").read_text().startswith("Subject,Plan\n")


@pytest.mark.slow
def test_an_export_of_the_past(hy: Hybrid, tmp_path: Path) -> None:
    revision = hy.query("select count(*) from things").revision
    assert hy.export(SQL, tmp_path / "a.csv", as_of=revision).rows == 3
    with pytest.raises(QueryError, match="has no version 99"):
        hy.export(SQL, tmp_path / "b.csv", as_of="things[OFFLINE=99]")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "home"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "name", "error"),
    [
        ("select nope from orders", "a.csv", QueryError),
        ("selec 1", "a.csv", QueryError),
        ("select * from ordrs", "a.csv", NotFoundError),
        ("select 1 from orders", "a.xls", UsageError),
        ("select 1 from orders", "no/a.csv", NotFoundError),
    ],
)
def test_an_error_leaves_no_file(hy: Hybrid, tmp_path: Path, sql: str, name: str, error: type[Exception]) -> None:
    with pytest.raises((error, QueryError)):
        hy.export(sql, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.slow
def test_an_error_among_the_rows_leaves_no_file(hy: Hybrid, tmp_path: Path) -> None:
    """And the file that it would have replaced is as it was."""
    (tmp_path / "a.csv").write_text("mine")
    failing = "select cast(case when a.order_id + b.order_id + c.order_id + d.order_id + e.order_id + f.order_id = 24 "
    failing += "then 'a' else '1' end as int) n from orders a, orders b, orders c, orders d, orders e, orders f"
    with pytest.raises(QueryError):
        hy.export(failing, tmp_path / "a.csv", force=True)
    with pytest.raises(ConflictError, match="exists already"):
        hy.export("select 1 from orders", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "mine" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_an_interrupted_export_leaves_no_file(hy: Hybrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient(Silent):
        def step(self, label: str, done: int, total: int | None) -> None:
            raise KeyboardInterrupt

    hy.context.progress = Impatient()
    with pytest.raises(KeyboardInterrupt):
        hy.export(SLOW, tmp_path / "a.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.slow
def test_an_export_has_a_time_limit_of_its_own(hy: Hybrid, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="stopped after 200 ms") as failed:
        hy.export(f"SET timeoutMs = 200; {SLOW}", tmp_path / "a.csv")
    assert failed.value.pinot_code == 250 and [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.slow
def test_progress_is_told(hy: Hybrid, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int | None]] = []

    class Told(Silent):
        def step(self, label: str, done: int, total: int | None) -> None:
            steps.append((label, done, total))

    hy.context.progress = Told()
    hy.export(MANY, tmp_path / "a.csv")
    assert steps[-1] == ("Writing rows", 4**8, None)


@pytest.mark.slow
def test_a_second_attempt_begins_the_file_again(hy: Hybrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After rows were written, a file of the table is missing: a new plan writes all of them, and no row twice."""
    attempts, read = [], spool._arrow_batches

    def failing(relation: Any, schema: Any) -> Any:
        attempts.append(1)
        for batch in read(relation, schema):
            yield batch
            if len(attempts) == 1:
                import duckdb

                raise duckdb.IOException("IO Error: No files found that match the pattern")

    monkeypatch.setattr(spool, "_arrow_batches", failing)
    assert hy.export("select order_id from orders order by 1", tmp_path / "a.csv").rows == 4
    assert (tmp_path / "a.csv").read_text() == "order_id\n1\n2\n3\n4\n" and len(attempts) == 2
    attempts.clear()
    with (tmp_path / "b.csv").open("wb") as file, pytest.raises(ConflictError, match="Run it again"):
        stream(hy, "select order_id from orders", file)


def stream(hy: Hybrid, sql: str, file: Any) -> ExportReport:
    return export_to(hy.context, sql, OutputStream(file, "b"), ResultFormat.CSV, progress=Silent())


@pytest.mark.slow
def test_the_threads_of_an_export_end(hy: Hybrid, tmp_path: Path) -> None:
    before = threading.active_count()
    for number in range(3):
        hy.export(MANY, tmp_path / f"{number}.parquet")
    until = time.monotonic() + 5
    while threading.active_count() > before + 3 and time.monotonic() < until:
        time.sleep(0.05)
    assert threading.active_count() <= before + 3


@pytest.mark.slow
def test_values_are_the_stored_ones(hy: Hybrid, tmp_path: Path) -> None:
    hy.export("select moment, price, raw from things where id = 1", tmp_path / "a.parquet")
    (row,) = arrow_of(tmp_path / "a.parquet").to_pylist()
    moment = datetime(2021, 9, 24, 6, 2, 31, 123456, tzinfo=UTC).replace(tzinfo=None)
    assert row == {"moment": moment, "price": Decimal("12.5"), "raw": b"\x00\xff"}
