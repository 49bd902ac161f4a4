"""What a job refuses, and that nothing is touched then: not one byte of either half."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.errors import ConflictError, DataError, HybridError, NotFoundError, SpecError, UsageError
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from tests.replace.tables import SEGMENT, Table

pytestmark = pytest.mark.spark

GOOD = {"order_id": 1, "customer_id": 101, "order_status": "OPEN", "amount": 13.29, "ts": "1632463351000"}


@pytest.fixture
def refused(orders: Table) -> Iterator[Callable[..., HybridError]]:
    """Runs a job that must be refused and gives the error."""
    before = orders.fingerprint()

    def run(segment: str | None = SEGMENT, fields: dict[str, object] | None = None) -> HybridError:
        with pytest.raises(HybridError) as caught:
            run_job(orders.context, orders.job(segment, **(fields or {})))
        return caught.value

    yield run
    assert orders.fingerprint() == before
    assert orders.staged() == []


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"amount": "abc"}, "Column 'amount': \"abc\" does not fit"),
        ({"amout": 1.0}, "column 'amout' is not in the schema of 'orders'. Did you mean 'amount'?"),
        ({"ts": None}, "time column 'ts' has no value"),
        ({"order_id": 2**40}, "Column 'order_id': 1099511627776 does not fit"),
    ],
)
def test_a_bad_row_is_named(orders: Table, refused: Callable[..., HybridError], bad: dict, message: str) -> None:  # type: ignore[type-arg]
    orders.write_rows([GOOD], "a.json")
    path = orders.write_rows([GOOD, GOOD, {**GOOD, **bad}, GOOD, {**GOOD, **bad}], "b.json")
    error = refused()
    assert isinstance(error, DataError)
    assert str(error).startswith(f"{path}, line 3: {message}")
    assert str(error).endswith("Nothing was changed.")


def test_a_primary_key_is_needed(upsert: Table) -> None:
    upsert.write_rows([{key: value for key, value in GOOD.items() if key != "order_id"}])
    with pytest.raises(DataError, match="line 1: primary key column 'order_id' has no value"):
        run_job(upsert.context, upsert.job())


def test_the_first_bad_file_is_named_and_others_are_counted(orders: Table, refused: Callable[..., HybridError]) -> None:
    orders.write("b.json", "nonsense\n")
    orders.write("a.json", json.dumps(GOOD) + "\n" + json.dumps(GOOD).replace("13.29", '"x"'))
    error = str(refused())
    assert "a.json, line 2" in error and "wrong rows in 1 further files, e.g. b.json" in error


def test_bad_encoding_and_damaged_parquet(orders: Table, refused: Callable[..., HybridError]) -> None:
    path = orders.write("a.json", json.dumps(GOOD).encode().replace(b"OPEN", b"OP\xc9N"))
    assert f"{path}, line 1: is not UTF-8" in str(refused())
    path.unlink()
    path = orders.write("a.parquet", b"PAR1 and then nothing")
    assert f"{path}: cannot be read as Parquet" in str(refused(fields={"data_format": "parquet"}))


def test_a_bad_value_in_parquet(orders: Table, refused: Callable[..., HybridError]) -> None:
    rows = [{**GOOD, "ts": 1632463351000 + number, "order_id": number} for number in range(5)]
    rows[3]["order_id"] = 2**40
    path = orders.write("a.parquet", b"")
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    error = refused(fields={"data_format": "parquet"})
    assert str(error).startswith(f"{path}, row 4 (row group 1): Column 'order_id': 1099511627776 does not fit")


def test_an_empty_input(orders: Table, refused: Callable[..., HybridError]) -> None:
    orders.write("a.json", "")
    error = refused()
    assert isinstance(error, UsageError) and error.exit_code == 2
    assert f"putting nothing in place of segment '{SEGMENT}' needs --yes" in str(error)
    orders.write_rows([GOOD], "b.json")
    assert "a.json holds no rows (0 bytes) while others of the 2 files do" in str(refused())


@pytest.mark.parametrize("data_format", ["csv", "parquet", "json"])
def test_a_file_without_rows_among_others(orders: Table, refused: Callable[..., HybridError], data_format: str) -> None:
    """Whatever its bytes; with --yes it is one without rows. Without any rows at all others do not hold some."""
    hollow = orders.write(f"a.{data_format}", {"csv": b"", "json": b"[]\n", "parquet": b""}[data_format])
    full = orders.write(f"b.{data_format}", b"")
    if data_format == "parquet":
        pq.write_table(pa.Table.from_pylist([GOOD]).slice(0, 0), hollow)
        pq.write_table(pa.Table.from_pylist([GOOD]), full)
    elif data_format == "json":
        full.write_text(json.dumps(GOOD))
    else:
        full.write_text(f"{','.join(GOOD)}\n{','.join(map(str, GOOD.values()))}\n")
    job = orders.job(data_format=data_format)
    assert f"a.{data_format} holds no rows ({hollow.stat().st_size} bytes) while" in str(
        refused(fields={"data_format": data_format})
    )
    report = run_job(orders.context, job, JobOptions(dry_run=True, allow_empty=True))
    assert report.rows_after == 1 and any("1 of 2 files hold no rows" in one for one in report.warnings)
    full.write_bytes(hollow.read_bytes())
    assert "2 files" in str(refused(fields={"data_format": data_format}))
    report = run_job(orders.context, job, JobOptions(dry_run=True, allow_empty=True))
    assert report.rows_after == 0


def test_a_new_name_over_existing_times(orders: Table, refused: Callable[..., HybridError]) -> None:
    orders.write_rows([GOOD])
    error = refused("orders_1632463351000_1632467070000_00")
    assert isinstance(error, ConflictError)
    assert "does not exist, and its times [1632463351000, 1632463351000] overlap 1 segment" in str(error)
    assert SEGMENT in str(error) and "--append" in str(error.hint)


def test_reaching_past_the_boundary(orders: Table, refused: Callable[..., HybridError]) -> None:
    orders.write_rows([GOOD, {**GOOD, "ts": "1632677270000"}])
    for segment in (SEGMENT, None):
        error = refused(segment)
        assert isinstance(error, ConflictError)
        if segment:
            assert error.hint == "Move them first: hybrid move orders"
            assert "still shows 3 rows with times from 1632470400000 to 1632677270000" in str(error)


def test_bad_names_and_tables(orders: Table, refused: Callable[..., HybridError]) -> None:
    orders.write_rows([GOOD])
    assert "'a/b' cannot be a segment's name" in str(refused("a/b"))
    assert isinstance(refused(fields={"table_name": "order"}), SpecError)
    assert isinstance(refused(fields={"input_dir": orders.folder / "inptu"}), NotFoundError)
    error = refused(fields={"include": "glob:**/order.json"})
    assert "Did you mean 'orders.json'?" in str(error)
