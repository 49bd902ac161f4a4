"""Expectations on rows, each kind with each `on_failure`; and on jobs: a failed one leaves the table as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from hybrid.config.expectations import Expectation, parse_expect, parse_expectations
from hybrid.config.table_keys import EXPECTATIONS
from hybrid.errors import DataError, HybridError, SpecError, UsageError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.table_context import TableContext
from hybrid.replace.check_result import CheckResult, CheckState
from hybrid.replace.check_rows import repeated
from hybrid.replace.checks import Checked, check
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import show_replacement
from hybrid.schema.document import Section
from hybrid.schema.schema import Schema
from hybrid.table import columns
from hybrid.table.lineage import Lineage
from tests.replace.tables import NOW_MS, SEGMENT, Table, recipe_spec

pytestmark = pytest.mark.spark

SPEC = replace(recipe_spec("orders"), null_handling=True)
# Five rows, one delete marker: what is wrong with the third is wrong with no other, and the fourth is given twice.
ROWS = [
    (1, 10, "OPEN", 5.5, 1000, 0, "row"),
    (2, 11, "OPEN", 6.5, 1000, 1, "row"),
    (3, 12, "LOST", -1.0, 1000, 2, "row"),
    (4, None, "OPEN", 7.5, 1000, 3, "row"),
    (2, 13, "OPEN", 8.5, 1000, 4, "row"),
    (2, None, "GONE", -9.0, 1000, 5, "delete"),
]
FAILING: dict[str, tuple[dict[str, object], int, list[int]]] = {
    "not_null": ({"column": "customer_id"}, 1, [4]),
    "range": ({"column": "amount", "min": 0, "max": 100}, 1, [3]),
    "unique": ({"columns": ["order_id"]}, 1, [2]),
    "accepted_values": ({"column": "order_status", "values": ["OPEN", "CLOSED"]}, 1, [3]),
    "sql": ({"sql": "customer_id < 12"}, 3, [3, 4, 2]),
    "row_count_change": ({"percent": 50}, 0, []),
}
SENTENCES = [
    "1 of 5 rows fails: 'customer_id' is null.",
    "1 of 5 rows fails: 'amount' is below 0 or above 100.",
    "1 of 5 rows fails: 'order_id' stood in an earlier row.",
    "1 of 5 rows fails: 'order_status' is none of the 2 accepted values.",
    "3 of 5 rows fail: not (customer_id < 12).",
    "5 rows where 20 were: 75 % fewer; at most 50 % is expected.",
]
STATES = {"warn": CheckState.WARNED, "fail": CheckState.FAILED}


@pytest.fixture(scope="module")
def frame(workbench: CommitContext) -> DataFrame:
    names = (
        "order_id int, customer_id int, order_status string, amount float, ts bigint, _hy_offset bigint, _hy_op string"
    )
    return workbench.spark.createDataFrame(ROWS, names).coalesce(1)


def expected(kind: str, on_failure: str, **more: object) -> Expectation:
    doc = {"kind": kind, "on_failure": on_failure, **FAILING[kind][0], **more}
    return parse_expect(json.dumps(doc), SPEC.schema)[0]


def left(checked: Checked) -> list[int]:
    """The offsets of the rows that are left."""
    return sorted(row[0] for row in checked.frame.select(columns.OFFSET).collect())


@pytest.mark.parametrize("on_failure", ["warn", "fail"])
def test_what_fails_is_counted_and_shown(frame: DataFrame, on_failure: str) -> None:
    checked = check(SPEC, frame, [expected(kind, on_failure) for kind in FAILING], 20)
    for result, (_, rows, ids) in zip(checked.results, FAILING.values(), strict=True):
        assert (result.state, result.rows) == (STATES[on_failure], rows)
        assert [row["order_id"] for row in result.sample] == ids
        assert CheckResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert [result.sentence.partition(": ")[2] for result in checked.results] == SENTENCES
    assert checked.failed == (checked.results if on_failure == "fail" else ())
    assert checked.frame is frame


@pytest.mark.parametrize("kind", [kind for kind in FAILING if kind != "row_count_change"])
def test_what_fails_is_left_out(frame: DataFrame, kind: str) -> None:
    checked = check(SPEC, frame, [expected(kind, "drop")], None)
    (result,), (_, rows, ids) = checked.results, FAILING[kind]
    assert (result.state, result.rows, checked.dropped) == (CheckState.DROPPED, rows, rows)
    assert [row["order_id"] for row in result.sample] == ids
    assert len(left(checked)) == len(ROWS) - rows
    assert 5 in left(checked)  # delete markers are not looked at


def test_columns_of_any_name_are_counted(frame: DataFrame) -> None:
    assert repeated(frame.withColumnRenamed("order_id", "rows"), ["rows"]) == 1


def test_what_holds_has_passed(frame: DataFrame) -> None:
    given = [
        expected("not_null", "fail", column="order_id"),
        expected("range", "drop", min=-1),
        expected("unique", "drop", columns=["order_id", "customer_id"]),
        expected("accepted_values", "fail", values=["OPEN", "LOST"]),
        expected("sql", "fail", sql="amount < 9 and ts < now()"),
        expected("row_count_change", "fail", percent=0),
    ]
    checked = check(SPEC, frame, given, 5, now_ms=NOW_MS)
    assert {result.state for result in checked.results} == {CheckState.PASSED}
    assert checked.results[0].sentence == "Expectation 'not_null_order_id': all 5 rows hold."
    assert checked.frame is frame


def test_what_is_left_out_is_not_looked_at_by_others(frame: DataFrame) -> None:
    given = [
        expected("accepted_values", "fail"),
        expected("range", "drop"),
        expected("unique", "drop"),
        expected("row_count_change", "fail", percent=0),
    ]
    checked = check(SPEC, frame, given, 3)
    assert [result.state.value for result in checked.results] == ["PASSED", "DROPPED", "DROPPED", "PASSED"]
    assert left(checked) == [0, 1, 3, 5]
    assert checked.dropped == 2


def test_nulls_are_like_no_other_value(workbench: CommitContext) -> None:
    rows = [(None, "row", 0), (None, "row", 1), (7, "row", 2), (7, "row", 3)]
    frame = workbench.spark.createDataFrame(rows, "order_id int, _hy_op string, _hy_offset bigint")
    spec = replace(SPEC, schema=Schema("orders", (SPEC.schema.fields[0],)))
    given = [
        parse_expect('{"kind": "unique", "columns": ["order_id"], "on_failure": "drop"}', spec.schema)[0],
        parse_expect('{"kind": "range", "column": "order_id", "min": 1}', spec.schema)[0],
        parse_expect('{"kind": "accepted_values", "column": "order_id", "values": [7]}', spec.schema)[0],
    ]
    checked = check(spec, frame, given, None)
    assert [result.rows for result in checked.results] == [1, 0, 0]
    assert left(checked) == [0, 1, 2]


def test_a_default_that_stands_for_a_null_is_one(frame: DataFrame) -> None:
    spec = replace(SPEC, null_handling=False)
    stored = frame.na.fill({"customer_id": -(2**31)})
    (result,) = check(spec, stored, [expected("not_null", "fail")], None).results
    assert result.rows == 1


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("amout > 0", UsageError, "--expect: Table 'orders' has no column 'amout'. Did you mean 'amount'?"),
        (
            "arrayLength(order_status) > 1",
            UsageError,
            "--expect: 'arrayLength(order_status) > 1' cannot be looked at: [DATATYPE_MISMATCH",
        ),
        (
            "cast(order_status as int) > 0",
            DataError,
            "The expectations of table 'orders' cannot be looked at: [CAST_INV",
        ),
        ("ts <= now()", UsageError, "--expect: NOW cannot be used"),
    ],
)
def test_conditions_that_make_no_sense(frame: DataFrame, sql: str, error: type[HybridError], message: str) -> None:
    with pytest.raises(error) as refused:
        check(SPEC, frame, parse_expect(sql, SPEC.schema), None)
    assert str(refused.value).startswith(message)


# On jobs

GOOD = {"order_id": 1, "customer_id": 101, "order_status": "OPEN", "amount": 13.29, "ts": "1632463351000"}
BAD: dict[str, object] = {**GOOD, "customer_id": None, "order_status": "LOST", "amount": -1.0}


def run(table: Table, *expect: str, **more: object):  # type: ignore[no-untyped-def]
    return run_job(table.context, table.job(), JobOptions(expect=expect, **more))  # type: ignore[arg-type]


def test_a_failed_expectation_stops_a_job(orders: Table) -> None:
    before = orders.fingerprint()
    orders.write_rows([GOOD, BAD])
    given = [json.dumps({"kind": kind, **FAILING[kind][0]}) for kind in FAILING]
    with pytest.raises(DataError) as refused:
        run(orders, *given)
    message = str(refused.value)
    assert message.startswith(
        "6 expectations of table 'orders' failed. Expectation 'not_null_customer_id': 1 of 2 rows"
    )
    assert 'E.g. {"order_id": 1,' in message
    for name in (
        "range_amount",
        "unique_order_id",
        "accepted_values_order_status",
        "customer_id < 12",
        "row_count_change",
    ):
        assert f"Expectation '{name}': " in message
    for one in (*given[2:3], *given[4:]):  # each way on which it comes to a result
        with pytest.raises(DataError, match=r"^An expectation of table 'orders' failed\. .*Nothing was changed\."):
            run(orders, one)
    assert orders.fingerprint() == before
    assert orders.staged() == []


def test_a_dry_run_shows_them(orders: Table) -> None:
    orders.write_rows([GOOD, BAD])
    report = run(orders, "amount > 0", '{"kind": "row_count_change", "percent": 1}', dry_run=True)
    assert [(one.name, one.state.value) for one in report.expectations] == [
        ("amount > 0", "FAILED"),
        ("row_count_change", "FAILED"),
    ]
    assert report.sentence.endswith("It would be refused: 'amount > 0', 'row_count_change' failed.")
    assert report.to_json()["expectations"][0]["rows"] == 1  # type: ignore[index]


def test_rows_are_left_out_and_it_is_kept_with_the_replacement(orders: Table) -> None:
    orders.write_rows([GOOD, BAD, {**GOOD, "order_id": 2, "amount": 400.0}])
    report = run(orders, "drop: amount > 0", "warn: amount < 100", "order_id > 0")
    assert [row["amount"] for row in orders.rows()] == [pytest.approx(13.29), 400.0]
    states = {"amount > 0": "DROPPED", "amount < 100": "WARNED", "order_id > 0": "PASSED"}
    assert {one.name: one.state.value for one in report.expectations} == states
    assert report.warnings == (
        "Expectation 'amount > 0': 1 of 3 rows fails: not (amount > 0); left out.",
        "Expectation 'amount < 100': 1 of 2 rows fails: not (amount < 100).",
    )
    assert report.act is not None
    entry = show_replacement(orders.layout, report.act)
    assert entry.to_json()["expectations"] == tuple(one.to_json() for one in report.expectations)
    again = run(orders, "drop: amount > 0")
    assert not again.committed
    assert again.expectations[0].state is CheckState.DROPPED


def test_when_all_rows_are_left_out_the_input_is_empty(orders: Table) -> None:
    before = orders.fingerprint()
    orders.write_rows([BAD])
    with pytest.raises(UsageError, match=r"no rows that are not left out by expectations \(1 were\); putting nothing"):
        run(orders, "drop: amount > 0")
    assert orders.fingerprint() == before
    assert run(orders, "drop: amount > 0", allow_empty=True).rows_after == 0


def test_names_of_segments_come_from_the_rows_that_are_left(orders: Table) -> None:
    orders.write_rows([GOOD, {**BAD, "ts": "1632463359000"}])
    job = orders.job(None)
    report = run_job(orders.context, job, JobOptions(append=True, expect=["drop: amount > 0"]))
    assert report.segments_to == ("orders_1632463351000_1632463351000_0",)


def test_those_of_the_table_and_of_the_job_hold_as_well(orders: Table) -> None:
    def section(sql: str) -> Section:
        return Section({EXPECTATIONS: [{"kind": "sql", "sql": sql}]}, "job.yml", "executionFrameworkSpec.extraConfigs")

    orders.write_rows([GOOD])
    spec = replace(orders.spec, expectations=parse_expectations(section("amount < 0"), orders.spec.schema))
    job = replace(orders.job(), expectations=section("amount < 1"))
    with pytest.raises(DataError) as refused:
        run_job(TableContext(orders.bench, spec, orders.layout), job, JobOptions(expect=["amount < 2"]))
    for name in ("amount < 0", "amount < 1", "amount < 2"):
        assert f"Expectation '{name}'" in str(refused.value)
    wrong = replace(job, expectations=section("amout < 1"))
    where = r"^job.yml: executionFrameworkSpec.extraConfigs.hybrid.expectations\[0\].sql: Table 'orders' has no column"
    with pytest.raises(SpecError, match=where):
        run_job(orders.context, wrong)


@pytest.mark.parametrize("given", [{"amount": None}, {}])
def test_a_missing_value_is_null_though_a_default_stands_there(orders: Table, given: Mapping[str, object]) -> None:
    assert not orders.spec.null_handling
    orders.write_rows([GOOD, {**{key: value for key, value in GOOD.items() if key != "amount"}, **given}])
    with pytest.raises(DataError, match="1 of 2 rows fails: 'amount' is null"):
        run(orders, '{"kind": "not_null", "column": "amount"}')


def test_entries_from_before_there_were_expectations_are_read() -> None:
    entry = Lineage((), (SEGMENT,), 1, 0, 1, 1, 0, 0, "Added.")
    older = {name: value for name, value in entry.to_json().items() if name != "expectations"}
    assert Lineage.from_json(older) == entry
