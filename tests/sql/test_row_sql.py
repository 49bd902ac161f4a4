"""Row expressions: what is refused and where, what columns are given, and the same values on Spark and on DuckDB."""

from __future__ import annotations

import math
from decimal import Decimal

import duckdb
import pytest

from hybrid.errors import SpecError, UsageError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.exact_decimals import with_exact_decimals
from hybrid.schema.dialect import canonical
from hybrid.sql.row_functions import FUNCTIONS
from hybrid.sql.row_sql import row_assignments, row_condition
from tests.sql.rows import CONDITIONS, NOW_MS, VALUES, query_sql, rows, things


def test_a_condition_becomes_spark_sql() -> None:
    assert row_condition("i >= 7 AND s = 'it''s'", things(), "--where") == "((`i` >= 7) AND (`s` = 'it\\'s'))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i", "'i' is neither true nor false, so it is no condition at line 1, column 1, near 'i'."),
        ("b and i", "'i' is neither true nor false, so it is no condition at line 1, column 7"),
        ("ii = 2", "Table 'things' has no column 'ii'. Did you mean 'i'? It stands at line 1, column 1"),
        ("i = 1 and\n I = 1", "has no column 'I'. It stands at line 2, column 2"),
        ('s = "OPEN"', "has no column 'OPEN'. A text is written in single quotes: 'OPEN'."),
        ("$segmentName = 's'", "has no column '$segmentName'"),
        ("_hy_offset = 1", "has no column '_hy_offset'"),
        ("other.i = 1", "'other' is not the table, which is 'things' at line 1"),
        ("i in (select 1)", "'i IN (SELECT 1)' cannot be used in an expression over one row at line 1, column 1"),
        ("(select 1)", "cannot be used in an expression over one row"),
        ("exists(select 1)", "cannot be used in an expression over one row"),
        ("sum(i) > 1", "Function 'sum' is of many rows; here is one at line 1, column 1"),
        ("distinctcount(i) > 1", "Function 'distinctcount' is of many rows"),
        ("row_number() over () = 1", "cannot be used in an expression over one row"),
        ("count(*) > 0", "Function 'count' is of many rows"),
        ("*", "'*' cannot be used in an expression over one row at line 1, column 1"),
        ("?", "cannot be used in an expression over one row"),
        ("[1] = 1", "cannot be used in an expression over one row"),
        ("i = (1, 2)", "cannot be used in an expression over one row"),
        ("i between symmetric 1 and 2", "cannot be used in an expression over one row"),
        ("current_timestamp > t", "cannot be used in an expression over one row"),
        ("i = 1; drop table x", "One expression is expected; another begins at line 1, column 6"),
        ("i = 1 order by 2", "this is not expected at line 1, column 7, near 'order by 2'"),
        ("i +", "something is missing at line 1, column 4, at the end"),
        ("s = 'open", "A quote or a comment is not closed at line 1, column 5"),
        (" ", "A condition is expected; this is empty."),
        ("read_csv('x') = 1", "Function 'read_csv' cannot be used in a row expression. It stands at line 1"),
        ("java_method('java.lang.System', 'exit') = 1", "Function 'java_method' cannot be used in a row expression"),
        ("lowr(s) = 'a'", "Did you mean 'lower'?"),
        ("lpad(s) = 'a'", "LPAD takes 3 arguments, not 1 at line 1, column 1"),
        ("now() > t", "NOW cannot be used: the same text must mean the same rows whenever it is run."),
        ("i = 'x'", "'x' is not an INT: a whole number from -2147483648 to 2147483647 at line 1, column 5"),
        ("b = 7", "7 is not a BOOLEAN: true, false, 1 or 0 at line 1, column 5"),
        ("t > 'yesterday'", "'yesterday' is not a TIMESTAMP: "),
        ("r = 'xyz'", "'xyz' is not BYTES: "),
        ("cast(s as date) = 1", "'DATE' is no type of a column at line 1, column 6"),
        ("s like j", "LIKE: the pattern must be a quoted constant."),
        ("jsonExtractScalar(j, s, 'INT') = 1", "The path into a JSON text must be a quoted constant."),
        ("i = " + "(" * 300 + "1" + ")" * 300, "The expression is nested too deeply."),
        ("i = " + "1/(" * 18 + "i" + ")" * 18, "It divides or rounds in too many places one within another."),
        ("s = '" + "x" * 100_000 + "'", "at most 100000 are read"),
    ],
)
def test_what_is_no_condition_on_one_row(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        row_condition(text, things(), "--where")
    assert str(refused.value).startswith("--where: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("s = OPEN", "If a text is meant, write 'OPEN' in single quotes."),
        ("i = 1 and s in (OPEN, CLOSED)", "If a text is meant, write 'OPEN' in single quotes."),
        ("i = OPEN", None),
        ("i = 1 oder s = 'a'", None),
    ],
)
def test_what_would_do(text: str, hint: str | None) -> None:
    for what, kind in (("--where", UsageError), ("condition", SpecError)):
        with pytest.raises(kind) as refused:
            row_condition(text, things(), what)
        assert refused.value.hint == hint


def test_errors_in_a_file_are_of_the_file() -> None:
    with pytest.raises(SpecError, match=r"^hybrid.expectations\[2\].sql: Table 'things' has no column 'x'"):
        row_condition("x = 1", things(), "hybrid.expectations[2].sql")


def test_case_counts_as_the_table_says() -> None:
    assert row_condition("I = 7", things(ignores_case=True), "--where") == "(`i` = 7)"


def test_a_backslash_is_a_sign_like_others_but_before_signs_of_patterns() -> None:
    assert row_condition(r"s = 'a\' or s like '\%'", things(), "--where") == (r"((`s` = 'a\\') OR (`s` ILIKE '\\%'))")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i = 1, i = 2", "Column 'i' is assigned twice: again at line 1, column 8"),
        ("x = 1", "Table 'things' has no column 'x'."),
        ("tags = 'a'", "Column 'tags' holds several values; new ones cannot be given to it at line 1, column 1"),
        ("i", "An assignment is written `column = expression`; this is not at line 1, column 1"),
        ("i =", "An assignment is written `column = expression`"),
        ("i = 1,", "at line 1, column 7, at the end"),
        ("i = 1; s = 2", "One expression is expected; another begins"),
        ("i = 'x'", "'x' is not an INT"),
        ("i = 2.5", "2.5 is not an INT"),
        ("i = 3000000000", "3000000000 is not an INT"),
        ("j = '{'", "'{' is not a JSON"),
        ("t = 'soon'", "'soon' is not a TIMESTAMP"),
        ("t = now()", "NOW cannot be used"),
        ("s = (select 1)", "cannot be used in an expression over one row"),
    ],
)
def test_what_is_no_assignment(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        row_assignments(text, things(), "--update")
    assert message in str(refused.value)


def test_a_constant_fits_its_sql_type() -> None:
    column = {"name": "c", "dataType": "STRING", "hybrid.sqlType": "VARCHAR(3)"}
    with pytest.raises(UsageError, match=r"'long' is not a VARCHAR\(3\)"):
        row_assignments("c = 'long'", things(dimensionFieldSpecs=[column]), "--update")


def test_every_function_is_tried() -> None:
    called = {canonical(word) for text in (*CONDITIONS, *VALUES) for word in _words_before_brackets(text)}
    assert set(FUNCTIONS) - called == set()


def _words_before_brackets(text: str) -> list[str]:
    return [part.split()[-1].lstrip("(-") for part in text.split("(")[:-1] if part.strip()]


@pytest.mark.spark
def test_spark_and_duckdb_find_the_same(workbench: CommitContext) -> None:
    expressions = [*CONDITIONS, *(f"CASE WHEN true THEN {value} END" for value in VALUES)]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("things", rows())
        wanted = list(zip(*connection.execute(query_sql(expressions)).fetchall(), strict=True))
    frame = workbench.spark.createDataFrame(rows())
    conditions = [row_condition(text, things(), "--where", now_ms=NOW_MS) for text in expressions]
    shown_rows = with_exact_decimals(frame, lambda exact: exact.selectExpr(*conditions))
    found = list(zip(*shown_rows.collect(), strict=True))
    differing = [
        (text, ours, theirs)
        for text, ours, theirs in zip(expressions, found, wanted, strict=True)
        if not all(map(_same, ours, theirs))
    ]
    assert differing == []


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float | Decimal) and isinstance(theirs, float | Decimal | int):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or math.isclose(ours, theirs, rel_tol=1e-12)
    return ours == theirs


@pytest.mark.parametrize("text", ["q * q * q", "p * 0.000000000000000000001"])
def test_a_product_with_more_places_than_a_decimal_has_is_refused(text: str) -> None:
    fields = [{"name": name, "dataType": "BIG_DECIMAL"} for name in ("p", "q")]
    with pytest.raises(UsageError, match=r"decimal places; a decimal has at most 38\. Cast a side to DOUBLE"):
        row_assignments(f"p = {text}", things(dimensionFieldSpecs=fields), "--update")


@pytest.mark.spark
def test_a_big_decimal_keeps_all_digits_or_is_refused(workbench: CommitContext) -> None:
    fields = [{"name": name, "dataType": "BIG_DECIMAL"} for name in ("p", "q", "o")]
    spec = things(dimensionFieldSpecs=[*fields, {"name": "n", "dataType": "INT"}])
    given = workbench.spark.sql(
        "select cast('0.00000123' as decimal(38,18)) as p, cast('0.0000000001' as decimal(38,18)) as q, 2 as n"
    )

    def assigned(text: str) -> object:
        sql = row_assignments(f"o = {text}", spec, "--update")["o"]
        return with_exact_decimals(given, lambda exact: exact.selectExpr(sql)).collect()[0][0]

    assert assigned("p * n") == Decimal("0.00000246")
    assert assigned("p + 0.000000000000000001") == Decimal("0.000001230000000001")
    assert assigned("roundDecimal(p * q, 15)") == Decimal(0)
    with pytest.raises(Exception, match="a value with more than 18 decimal places was given to column 'o'"):
        assigned("p * q * 0.01")
    for text, wanted in (
        ("p * n > 0.000002", True),
        ("p * n = 0.00000246", True),
        ("p = 0.0000012300000000001", False),
    ):
        sql = row_condition(text, spec, "--where")
        assert with_exact_decimals(given, lambda exact, sql=sql: exact.selectExpr(sql)).collect()[0][0] is wanted


ASSIGNED = {
    "i = i * 1.15": [8, -8, None],
    "i = p / 2 + 1": [7, -1, None],  # -0.5 goes away from zero
    "l = t": [1_637_490_030_400, -1, None],
    "l = case when i > 0 then t else toTimestamp(5) end": [1_637_490_030_400, 5, 5],
    "t = coalesce(i, 5)": [0.007, -0.007, 0.005],
    "t = '2021-11-21T00:00:00+01:00'": [1_637_449_200.0] * 3,
    "d = i / 0": [math.inf, -math.inf, None],
    "p = p * 1.2": [Decimal("15"), Decimal("-3.6"), None],
    "b = 'true'": [True, True, True],
    "s = i": ["7", "-7", None],
    "s = r": ["ff00", "", None],
    "s = concat(s, cast(r as varchar))": ["Ab,cff00", "", None],
    "r = 'ff'": [b"\xff"] * 3,
}


@pytest.mark.spark
def test_what_columns_are_given(workbench: CommitContext) -> None:
    frame = workbench.spark.createDataFrame(rows())
    shown = [next(iter(row_assignments(text, things(), "--update").values())) for text in ASSIGNED]
    shown = [
        f"CAST({sql} AS double)" if text.startswith("t =") else sql for text, sql in zip(ASSIGNED, shown, strict=True)
    ]
    found = [list(column) for column in zip(*frame.selectExpr(*shown).collect(), strict=True)]
    assert dict(zip(ASSIGNED, found, strict=True)) == ASSIGNED


@pytest.mark.spark
def test_bytes_that_are_no_text_are_given_to_no_column_of_texts(workbench: CommitContext) -> None:
    """Spark takes them as they are, and no query could read what it would store."""
    frame = workbench.spark.createDataFrame(rows().slice(1, 1))
    for name in ("s", "j"):
        sql = row_assignments(f"{name} = concat(r, 'x')", things(), "--update")[name]
        assert frame.selectExpr(sql).collect()[0][0] == "x"
        with pytest.raises(Exception, match=f"column '{name}' was given bytes that are not UTF-8"):
            workbench.spark.createDataFrame(rows().slice(0, 1)).selectExpr(sql).collect()


@pytest.mark.spark
def test_a_null_becomes_what_the_table_keeps_for_one(workbench: CommitContext) -> None:
    found = row_assignments(
        "i = null, s = nullif(s, s), p = null, r = null, t = null", things(null_handling=False), "--update"
    )
    frame = workbench.spark.createDataFrame(rows()).selectExpr(*(f"{sql} AS {name}" for name, sql in found.items()))
    fields = {field.name: field for field in things().schema.fields}
    row = frame.withColumn("t", frame["t"].cast("double")).first()
    assert row is not None
    assert row.asDict() == {name: fields[name].default_null for name in found} | {"t": 0.0}


@pytest.mark.spark
def test_limits_of_sql_types_hold_for_computed_values(workbench: CommitContext) -> None:
    columns = [
        {"name": "c", "dataType": "STRING", "hybrid.sqlType": "CHAR(3)"},
        {"name": "n", "dataType": "BIG_DECIMAL", "hybrid.sqlType": "DECIMAL(5,2)"},
        {"name": "k", "dataType": "INT", "hybrid.sqlType": "INTEGER", "notNull": True},
    ]
    spec = things(dimensionFieldSpecs=columns, enableColumnBasedNullHandling=True)
    given = workbench.spark.sql("select 'abc' as c, cast(1.25 as decimal(38,18)) as n, 1 as k")
    found = row_assignments("c = concat(c, 'd'), n = n * 1.5, k = nullif(k, 1)", spec, "--update")
    assert given.selectExpr(found["n"]).collect()[0][0] == Decimal("1.88")
    for name, message in (("c", "a value longer than 3 characters"), ("k", "was given a null, which it cannot hold")):
        with pytest.raises(Exception, match=message):
            given.selectExpr(found[name]).collect()
