"""Which changes of columns lose nothing, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.config.evolution import column_change, with_kept_defaults
from hybrid.config.schema_json import parse_schema
from hybrid.errors import SpecError
from hybrid.schema.types import WIDER, DataType

TIME = {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}


def document(*dimensions: dict[str, Any], metrics: tuple[dict[str, Any], ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "schemaName": "t",
        "dimensionFieldSpecs": list(dimensions),
        "metricFieldSpecs": list(metrics),
        "dateTimeFieldSpecs": [TIME],
        **more,
    }


def column(kind: str = "INT", name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "dataType": kind, **more}


def change(before: dict[str, Any], after: dict[str, Any]) -> Any:
    old = parse_schema(before, "before")
    return column_change("t", old, parse_schema(with_kept_defaults(after, old), "after"))


def refused(before: dict[str, Any], after: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as error:
        change(before, after)
    assert str(error.value).startswith("Table 't': column '") and str(error.value).endswith("Nothing was changed.")
    assert error.value.hint
    return str(error.value)


def test_every_pair_of_types_is_exact_or_refused() -> None:
    exact = {("INT", "LONG"), ("INT", "DOUBLE"), ("INT", "BIG_DECIMAL"), ("LONG", "BIG_DECIMAL"), ("FLOAT", "DOUBLE")}
    assert {(old.value, new.value) for old, wider in WIDER.items() for new in wider} == exact
    for old in DataType:
        for new in DataType:
            for many in ({}, {"singleValueField": False}):
                pair = document(column(old, **many)), document(column(new, **many))
                if old is new:
                    assert not change(*pair)
                elif (old.value, new.value) in exact:
                    assert change(*pair).widened == ("c",)
                else:
                    assert f"cannot become {new} from {old}: " in refused(*pair)


def test_why_a_type_is_refused() -> None:
    for old, new, why in (
        ("LONG", "INT", "not every value of LONG is one of INT, exactly"),
        ("LONG", "DOUBLE", "not every value of LONG is one of DOUBLE, exactly"),
        ("INT", "FLOAT", "not every value of INT is one of FLOAT, exactly"),
        ("INT", "STRING", "sort and compare as texts do"),
        ("LONG", "TIMESTAMP", "another meaning"),
    ):
        assert why in refused(document(column(old)), document(column(new)))


def test_columns_come_and_do_not_go() -> None:
    one, two = column(), column("STRING", "d")
    assert change(document(one), document(one, two)).added == ("d",)
    assert "column 'd' is not in the new schema: dropping it would lose its values" in refused(
        document(one, two), document(one)
    )
    assert "'e' would be another column, not the same one by a new name" in refused(
        document(one, two), document(one, {**two, "name": "e"})
    )


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (column(), column(singleValueField=False), "holds one value, not several values"),
        (column(singleValueField=False), column(), "holds several values, not one value"),
        (column(), column(defaultNullValue=7), "has the defaultNullValue -2147483648, not 7"),
        (column(defaultNullValue=7), column(defaultNullValue=8), "has the defaultNullValue 7, not 8"),
        (column("FLOAT", defaultNullValue=0.1), column("DOUBLE", defaultNullValue=0.1), "has the defaultNullValue 0.1"),
    ],
)
def test_what_a_column_is_stays(before: dict[str, Any], after: dict[str, Any], what: str) -> None:
    assert what in refused(document(before), document(after))


def test_lists_formats_and_nulls_stay() -> None:
    assert "is a dimension, not a metric" in refused(document(column()), document(metrics=(column(),)))
    seconds = {**TIME, "format": "1:SECONDS:EPOCH"}
    assert "has the format '1:MILLISECONDS:EPOCH', not '1:SECONDS:EPOCH'" in refused(
        document(column()), document(column(), dateTimeFieldSpecs=[seconds])
    )
    nulls = {"enableColumnBasedNullHandling": True}
    plain, never = document(column(), **nulls), document(column(notNull=True), **nulls)
    assert "cannot become NOT NULL" in refused(plain, never)
    assert "is notNull: rows that are there hold defaults" in refused(never, plain)
    assert "cannot be added as NOT NULL" in refused(document(**nulls), never)


def test_a_wider_type_keeps_the_default_that_rows_hold() -> None:
    old = parse_schema(document(column(), metrics=(column("INT", "m"),)), "before")
    wanted = document(column("LONG"), metrics=(column("LONG", "m"),))
    kept = with_kept_defaults(wanted, old)
    assert kept["dimensionFieldSpecs"] == [column("LONG", defaultNullValue=-(2**31))]
    assert kept["metricFieldSpecs"] == [column("LONG", "m")], "0 in both types"
    assert with_kept_defaults(kept, old) == kept
    again = parse_schema(kept, "kept")
    assert not column_change("t", again, parse_schema(with_kept_defaults(wanted, again), "again"))
    for kind, wider in (("FLOAT", "DOUBLE"), ("INT", "BIG_DECIMAL"), ("INT", "DOUBLE")):
        for more in ({}, {"defaultNullValue": "5"}, {"singleValueField": False}):
            silent = {key: value for key, value in more.items() if key != "defaultNullValue"}
            assert change(document(column(kind, **more)), document(column(wider, **silent))).widened == ("c",)
    for special in ("NaN", "Infinity", "-Infinity", 0.1):
        given = document(column("FLOAT", defaultNullValue=special))
        if special != "NaN":  # which equals nothing, itself neither
            assert change(given, document(column("DOUBLE"))).widened == ("c",)


SQL = "hybrid.sqlType"


@pytest.mark.parametrize(
    ("old", "new", "widened"),
    [
        ("TINYINT", "SMALLINT", False), ("SMALLINT", "INTEGER", False), ("TINYINT", "BIGINT", True),
        ("INTEGER", "BIGINT", True), ("INTEGER", "DOUBLE", True), ("REAL", "DOUBLE", True),
        ("INTEGER", "DECIMAL(10,0)", True), ("BIGINT", "DECIMAL(38,18)", True), ("BIGINT", "DECIMAL(19)", True),
        ("DECIMAL(10,2)", "DECIMAL(12,2)", False), ("DECIMAL(10,2)", "DECIMAL(12,4)", False),
        ("CHAR(3)", "CHAR(5)", False), ("CHAR(3)", "VARCHAR", False), ("CHAR(3)", "VARCHAR(3)", False),
        ("VARCHAR(3)", "VARCHAR(4)", False), ("VARCHAR(3)", "VARCHAR", False),
    ],
)  # fmt: skip
def test_wider_types_of_a_ddl(old: str, new: str, widened: bool) -> None:
    found = change(*(document(ddl_column(one), enableColumnBasedNullHandling=True) for one in (old, new)))
    assert found.widened == (("c",) if widened else ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SMALLINT", "TINYINT"), ("BIGINT", "DECIMAL(18)"), ("BIGINT", "DECIMAL(20,2)"), ("INTEGER", "DECIMAL(10,1)"),
        ("DECIMAL(10,2)", "DECIMAL(10,3)"), ("DECIMAL(10,2)", "DECIMAL(11,1)"), ("DECIMAL(4,0)", "BIGINT"),
        ("CHAR(5)", "CHAR(3)"), ("VARCHAR", "VARCHAR(9)"), ("VARCHAR(3)", "CHAR(5)"), ("DATE", "VARCHAR"),
        ("TIMESTAMP", "DATE"), ("VARCHAR", "VARIANT"),
    ],
)  # fmt: skip
def test_what_a_ddl_may_not_change(old: str, new: str) -> None:
    refused(*(document(ddl_column(one), enableColumnBasedNullHandling=True) for one in (old, new)))


def test_a_ddl_widens_both_types() -> None:
    nulls = {"enableColumnBasedNullHandling": True}
    old = document(column("INT", **{SQL: "INTEGER"}), **nulls)
    words = refused(old, document(column("LONG", **{SQL: "INTEGER"}), **nulls))
    assert "column 'c' becomes LONG, and its hybrid.sqlType is INTEGER still" in words
    assert change(old, document(column("LONG", **{SQL: "BIGINT"}), **nulls)).widened == ("c",)
    assert not change(*[document(column("LONG", **{SQL: "INTEGER"}), **nulls)] * 2), "as earlier builds stored it"


def ddl_column(sql_type: str) -> dict[str, Any]:
    from hybrid.schema.sqltypes import parse_sql_type

    return column(parse_sql_type(sql_type, "test").data_type.value, **{SQL: sql_type})


def test_nulls_and_defaults_of_a_ddl() -> None:
    nulls = {"enableColumnBasedNullHandling": True}
    plain = ddl_column("INTEGER")
    never, filled = {**plain, "notNull": True}, {**plain, "hybrid.default": 5}
    assert not change(document(never, **nulls), document(plain, **nulls)), "NULL may come from now on"
    assert not change(document(plain, **nulls), document(filled, **nulls)), "rows that come from now on"
    assert "cannot be added with a DEFAULT" in refused(document(**nulls), document(filled, **nulls))
    assert "cannot be added as NOT NULL" in refused(document(**nulls), document(never, **nulls))
    assert "the table was not described in the same way" in refused(
        document(column(), **nulls), document(plain, **nulls)
    )
