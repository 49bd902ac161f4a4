"""What stands of a column in CREATE TABLE: types, keys, defaults, time; and properties."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.ddl_time import period_text
from hybrid.config.schema_json import parse_schema
from hybrid.schema.period import parse_period
from hybrid.schema.schema import FieldKind
from hybrid.schema.sqltypes import parse_sql_type
from tests.config.ddl_docs import (
    CHANGES,
    RAW,
    configs,
    connectors,
    fails,
    fails_table,
    fields,
    move,
    one,
    table,
)

# Types


@pytest.mark.parametrize(
    ("written", "canonical", "data_type"),
    [
        ("tinyint", "TINYINT", "INT"),
        ("INT2", "SMALLINT", "INT"), ("int", "INTEGER", "INT"), ("INT4", "INTEGER", "INT"),
        ("INT8", "BIGINT", "LONG"), ("INT64", "BIGINT", "LONG"), ("FLOAT4", "REAL", "FLOAT"), ("REAL", "REAL", "FLOAT"),
        ("DOUBLE PRECISION", "DOUBLE", "DOUBLE"), ("FLOAT64", "DOUBLE", "DOUBLE"), ("bool", "BOOLEAN", "BOOLEAN"),
        ("DECIMAL(15, 2)", "DECIMAL(15,2)", "BIG_DECIMAL"), ("NUMERIC(7)", "DECIMAL(7,0)", "BIG_DECIMAL"),
        ("CHAR", "CHAR(1)", "STRING"), ("CHARACTER(3)", "CHAR(3)", "STRING"), ("VARCHAR", "VARCHAR", "STRING"),
        ("CHARACTER VARYING(5)", "VARCHAR(5)", "STRING"), ("text", "VARCHAR", "STRING"),
        ("STRING", "VARCHAR", "STRING"),
        ("DATE", "DATE", "STRING"), ("TIME", "TIME", "STRING"), ("TIMESTAMP", "TIMESTAMP", "TIMESTAMP"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP"), ("DATETIME", "TIMESTAMP", "TIMESTAMP"),
        ("timestamp without time zone", "TIMESTAMP", "TIMESTAMP"), ("VARBINARY", "VARBINARY", "BYTES"),
        ("BYTEA", "VARBINARY", "BYTES"), ("BINARY VARYING", "VARBINARY", "BYTES"), ("VARIANT", "VARIANT", "JSON"),
    ],
)  # fmt: skip
def test_types(written: str, canonical: str, data_type: str) -> None:
    made = table(f"a {written} NOT NULL, b {written} ARRAY")
    assert fields(made) == {
        "a": {"name": "a", "dataType": data_type, "notNull": True, "hybrid.sqlType": canonical},
        "b": {"name": "b", "dataType": data_type, "singleValueField": False, "hybrid.sqlType": f"{canonical} ARRAY"},
    }
    assert made.warnings == ()
    schema = parse_schema(made.schema_doc, "t.sql")
    assert [field.single_value for field in schema.fields] == [True, False]
    assert parse_sql_type(f"{canonical} ARRAY", "f").text == f"{canonical} ARRAY"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("FLOAT", "line 1, column 19: the type FLOAT has another size in every dialect. Write REAL or DOUBLE"),
        ("UUID", "the type UUID is not built yet"), ("INT UNSIGNED", "UNSIGNED is not built yet"),
        ("UNSIGNED", "the type UNSIGNED is not built yet"), ("MAP<INT, INT>", "the type MAP is not built yet"),
        ("ROW(a INT)", "the type ROW is not built yet"), ("INTERVAL DAY", "INTERVAL is no type of a column"),
        ("INT ARRAY ARRAY", "an ARRAY of ARRAYs is not built yet"), ("INTEGR", "Did you mean 'INTEGER'?"),
        ("address_typ", "'address_typ' is not a type. Types are: BOOLEAN"), ("INT(4)", "the type INT takes no size"),
        ("STRING(4)", "the type STRING takes no size. Write it without (4)"), ("TIMESTAMP(3)", "takes no size"),
        ("CHAR(0)", "'0' is not a size from 1 to"), ("VARCHAR(x)", "'x' is not a size"),
        ("DECIMAL(39)", "'39' is not a size from 1 to 38"), ("DECIMAL(5,6)", "'6' is not a size from 0 to 5"),
        ("DECIMAL(5 x", "')' is missing behind the digits of DECIMAL"), ("'INT'", "the column 'a' has no type"),
        ("", "the column 'a' has no type; here is ')'"),
    ],
)  # fmt: skip
def test_wrong_types(written: str, words: str) -> None:
    assert words in fails(f"CREATE TABLE t (a {written})")


def test_types_of_which_something_is_lost_give_a_warning() -> None:
    made = table("a BINARY(16), b DECIMAL(38, 2), c DECIMAL(30, 19), d DECIMAL, e DECIMAL(38,18)")
    places = [warning.split(": ")[1] for warning in made.warnings]
    assert places == [f"line 1, column {column}" for column in (19, 33, 51, 70)]
    assert "the length of BINARY(16) is not checked" in made.warnings[0]
    assert "holds at most 20 digits before and 18 behind the point" in made.warnings[1]
    assert fields(made)["a"]["hybrid.sqlType"] == "VARBINARY" and fields(made)["d"]["hybrid.sqlType"] == "DECIMAL(38,0)"


TYPES = st.sampled_from(
    [
        "INTEGER",
        "BIGINT",
        "DOUBLE",
        "DECIMAL(15,2)",
        "CHAR(3)",
        "VARCHAR",
        "VARCHAR(44)",
        "DATE",
        "TIMESTAMP",
        "VARIANT",
    ]
)
COLUMN_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)


COLUMNS = st.lists(
    st.tuples(COLUMN_NAMES, TYPES, st.booleans(), st.booleans()),
    min_size=1,
    max_size=6,
    unique_by=lambda column: column[0].lower(),
)


@pytest.mark.slow
@given(COLUMNS, st.sampled_from([" ", "\n\t", " -- x\n", "/*,*/ "]))
def test_what_is_written_is_what_is_read(columns: list[tuple[str, str, bool, bool]], gap: str) -> None:
    written = [
        gap.join([f'"{name}"' if quoted else f"{name}", kind, "NOT NULL" if required else "", ""])
        for name, kind, required, quoted in columns
    ]
    made = one(f"CREATE{gap}TABLE{gap}t{gap}({f',{gap}'.join(written)})")
    read = [(name, field["hybrid.sqlType"], field.get("notNull", False)) for name, field in fields(made).items()]
    assert read == [(name if quoted else name.lower(), kind, required) for name, kind, required, quoted in columns]
    assert parse_schema(made.schema_doc, "f").column_names == tuple(name for name, _, _ in read)


# Constraints


def test_keys() -> None:
    made = table("a INT, b VARCHAR NULL, c INT, PRIMARY KEY (C, a)")
    assert made.schema_doc["primaryKeyColumns"] == ["c", "a"]
    assert [name for name, field in fields(made).items() if field.get("notNull")] == ["a", "c"]
    for config in configs(made):
        assert config["upsertConfig"] == {"mode": "FULL", "comparisonColumn": "_hy_timestamp"}
    assert table("a INT NOT NULL PRIMARY KEY").schema_doc["primaryKeyColumns"] == ["a"]


def test_a_column_may_be_called_like_a_word_of_the_grammar() -> None:
    made = table(
        "key INT, primary INT, check INT, lateness INT, unique VARCHAR, date DATE, constraint INT, foreign INT"
    )
    assert len(fields(made)) == 8


def test_what_changes_nothing_gives_a_warning() -> None:
    made = table(
        "a INT FOREIGN KEY REFERENCES other(id), b VARCHAR INTERNED, c TIMESTAMP WATERMARK INTERVAL 1 HOUR, "
        "FOREIGN KEY (a, b) REFERENCES other (x, y)",
        expected_size="5", skip_unused_columns="false", other="x", materialised="true",
    )  # fmt: skip
    texts = [re.sub(r"^t\.sql: line 1, column \d+: ", "", warning) for warning in made.warnings]
    assert texts == [
        "the FOREIGN KEY to 'other' is not checked.",
        "INTERNED has no effect.",
        "WATERMARK has no effect: a row is seen as soon as it arrives.",
        "the FOREIGN KEY to 'other' is not checked.",
        "'other' is not implemented and has no effect.",
        "'materialised' is not implemented and has no effect. Did you mean 'materialized'?",
    ]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("a INT, A INT", "line 1, column 24: the column 'a' is given twice in the table. Remove one"),
        ('a INT, "A" INT', "is given twice in the table (as 'a': case does not count)"),
        ("_hy_x INT", "is no name of a column"),
        ('"$x" INT', "is no name of a column"),
        ('"" INT', '"" is not the name of a column'),
        ("5 INT", "'5' is not the name of a column"),
        ("a INT,", "')' is not the name of a column"),
        ("a INT b INT", "'b' is not understood here: a column ends with ',' or ')'"),
        ("a INT CHECK (a > 1)", "line 1, column 23: CHECK cannot be honoured"),
        ("a INT, CHECK (a > 1)", "CHECK cannot be honoured: rows are not checked by conditions"),
        ("a INT UNIQUE", "UNIQUE cannot be honoured: is not kept. Write PRIMARY KEY"),
        ("a INT, UNIQUE (a)", "UNIQUE cannot be honoured"),
        ("a INT, CONSTRAINT k PRIMARY KEY (a)", "CONSTRAINT cannot be honoured: constraints have no names here"),
        ("a INT REFERENCES b(c)", "write FOREIGN KEY REFERENCES"),
        ("a INT GENERATED ALWAYS AS (1)", "GENERATED cannot be honoured"),
        ("a INT, PRIMARY KEY (b)", "line 1, column 24: the key column 'b' is not a column. Columns are: a"),
        ("a INT, PRIMARY KEY (a, a)", "'a' is given twice in the primary key"),
        ("a INT PRIMARY KEY, b INT PRIMARY KEY", "line 1, column 42: a second PRIMARY KEY"),
        ("a INT, PRIMARY KEY ()", "')' is not the name of a column"),
        ("a INT ARRAY PRIMARY KEY", "'a' is INTEGER ARRAY and cannot be part of a primary key"),
        ("a VARIANT PRIMARY KEY", "'a' is VARIANT and cannot be part"),
        ("a INT NULL PRIMARY KEY", "the column 'a' cannot be NULL: it is part of the primary key"),
        ("a INT NULL NOT NULL", "the column 'a' cannot be NULL: it is NOT NULL"),
        ("PRIMARY KEY (a)", "the table 't' has no column"),
        ("a INT FOREIGN KEY b(c)", "'REFERENCES' is missing behind FOREIGN KEY"),
    ],
)
def test_wrong_columns(columns: str, words: str) -> None:
    assert words in fails_table(columns)


# Defaults


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("INT DEFAULT 5", 5), ("INT DEFAULT -5 NOT NULL", -5), ("SMALLINT DEFAULT + 7", 7), ("BIGINT DEFAULT 0", 0),
        ("DOUBLE DEFAULT 1.5e3", 1500.0), ("DOUBLE DEFAULT .5", 0.5), ("REAL DEFAULT -2", -2.0),
        ("DECIMAL(5,2) DEFAULT 1.50", "1.5"), ("DECIMAL(5,2) DEFAULT 100", 100), ("DECIMAL(38,18) DEFAULT 0.1", "0.1"),
        ("DECIMAL(38,18) DEFAULT 12345678901234567890.123456789012345678", "12345678901234567890.123456789012345678"),
        ("VARCHAR DEFAULT ''", ""), ("CHAR(4) DEFAULT 'ab'", "ab"), ("VARCHAR(3) DEFAULT 'a''b'", "a'b"),
        ("BOOLEAN DEFAULT TRUE", True), ("BOOLEAN DEFAULT false", False),
        ("DATE DEFAULT DATE '2024-02-29'", "2024-02-29"),
        ("DATE DEFAULT '2024-02-29'", "2024-02-29"), ("TIME DEFAULT TIME '12:30:00'", "12:30:00"),
        ("TIMESTAMP DEFAULT TIMESTAMP '2024-02-29 12:00:00'", "2024-02-29 12:00:00"),
        ("VARBINARY DEFAULT x'0aff'", "0aff"),
    ],
)  # fmt: skip
def test_defaults(column: str, value: object) -> None:
    made = table(f"a {column}, b INT")
    found = fields(made)["a"]["hybrid.default"]
    assert found == value and type(found) is type(value)
    parse_schema(made.schema_doc, "f")


def test_a_default_of_null_is_none() -> None:
    assert "hybrid.default" not in fields(table("a INT DEFAULT NULL"))["a"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("INT DEFAULT 'x'", "line 1, column 31: the DEFAULT of 'a', 'x', does not fit its type: an INT"),
        ("INT DEFAULT 1.5", "the DEFAULT of 'a', '1.5', does not fit"),
        ("TINYINT DEFAULT 128", "does not fit its type: a TINYINT"),
        ("BIGINT DEFAULT 9223372036854775808", "does not fit"),
        ("DECIMAL(5,2) DEFAULT 1.234", "does not fit its type: a DECIMAL(5,2)"),
        ("DECIMAL(5,2) DEFAULT 1000", "does not fit"),
        ("VARCHAR(2) DEFAULT 'abc'", "does not fit its type: a VARCHAR(2)"),
        ("BOOLEAN DEFAULT 'perhaps'", "does not fit"),
        ("DATE DEFAULT '2023-02-29'", "does not fit its type: a DATE"),
        ("TIMESTAMP DEFAULT 'noon'", "does not fit"),
        ("VARBINARY DEFAULT 'xyz'", "does not fit"),
        ("DOUBLE DEFAULT 1e999", "is not a number that a column can hold"),
        ("INT DEFAULT 1e999999999999999999", "is not a number that a column can hold"),
        ("INT NOT NULL DEFAULT NULL", "DEFAULT NULL does not fit 'a', which is NOT NULL"),
        ("INT DEFAULT", "a DEFAULT is a literal here"),
        ("INT DEFAULT 1 + 1", "a DEFAULT is a literal here"),
        ("TIMESTAMP DEFAULT NOW()", "a DEFAULT is a literal here (a number, a string, TRUE, FALSE, NULL, DATE '...')"),
        (
            "VARCHAR DEFAULT CAST(CONNECTOR_METADATA()['kafka_topic'] AS VARCHAR)",
            "CONNECTOR_METADATA) is not built yet",
        ),
        ("INT ARRAY DEFAULT 5", "a default of an ARRAY is not built yet"),
    ],
)
def test_wrong_defaults(column: str, words: str) -> None:
    assert words in fails_table(f"a {column}")


# Time


@pytest.mark.parametrize(
    ("lateness", "buffer"),
    [
        ("INTERVAL 1 HOUR", "1h"), ("INTERVAL 1 HOURS", "1h"), ("interval '1' hour", "1h"), ("INTERVAL 0 DAYS", "0s"),
        ("INTERVAL 90 DAYS", "90d"), ("INTERVAL '1:30' HOUR TO MINUTE", "1h30m"), ("INTERVAL '1.5' SECONDS", "1s500ms"),
        ("INTERVAL '1:00' HOURS TO MINUTES", "1h"), ("INTERVAL '5 10:10' DAY TO MINUTE", "5d10h10m"),
        ("INTERVAL '1 2:03:04.005' DAY TO SECOND", "1d2h3m4s5ms"), ("INTERVAL '2:30' MINUTE TO SECOND", "2m30s"),
    ],
)  # fmt: skip
def test_lateness(lateness: str, buffer: str) -> None:
    made = table(f"a INT, ts TIMESTAMP NOT NULL LATENESS {lateness}")
    assert move(made) == {"bucketTimePeriod": "1d", "bufferTimePeriod": buffer}
    assert configs(made)[1]["segmentsConfig"] == {"timeColumnName": "ts"}


@given(st.integers(0, 366_000 * 86_400_000))
def test_a_period_is_read_as_it_is_written(millis: int) -> None:
    assert parse_period(period_text(millis), "f", "p") == millis


@pytest.mark.parametrize(
    ("column", "options", "form", "buffer"),
    [
        ("DATE NOT NULL LATENESS INTERVAL 1 DAY", {}, "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd", "1d"),
        ("BIGINT NOT NULL LATENESS 3600000", {}, "1:MILLISECONDS:EPOCH", "1h"),
        ("BIGINT NOT NULL LATENESS INTERVAL 2 HOURS", {}, "1:MILLISECONDS:EPOCH", "2h"),
        ("BIGINT NOT NULL LATENESS 3600 * 24 * 30", {"hybrid_timeUnit": "seconds"}, "1:SECONDS:EPOCH", "30d"),
        ("INTEGER NOT NULL LATENESS 2", {"hybrid_timeUnit": "DAYS"}, "1:DAYS:EPOCH", "2d"),
        ("BIGINT NOT NULL LATENESS 1500", {"hybrid_timeUnit": "MICROSECONDS"}, "1:MICROSECONDS:EPOCH", "2ms"),
        ("TIMESTAMP NOT NULL", {"hybrid_timeColumn": "TS"}, "TIMESTAMP", None),
        ("TIMESTAMP PRIMARY KEY", {"hybrid_timeColumn": "ts", "hybrid_bufferTimePeriod": "5m"}, "TIMESTAMP", "5m"),
        ("TIMESTAMP NOT NULL LATENESS INTERVAL 1 DAY", {"hybrid_bufferTimePeriod": "5m"}, "TIMESTAMP", "5m"),
    ],
)  # fmt: skip
def test_time_columns(column: str, options: dict[str, str], form: str, buffer: str | None) -> None:
    made = table(f"ts {column}, a INT", **options)
    schema = parse_schema(made.schema_doc, "f")
    time = schema.find("ts")
    assert time is not None and time.kind is FieldKind.DATE_TIME and time.not_null
    assert time.time_format is not None and time.time_format.text == form
    assert move(made).get("bufferTimePeriod") == buffer and made.warnings == ()


def test_a_time_column_that_is_named_leaves_other_lateness_without_effect() -> None:
    made = table(
        "a TIMESTAMP LATENESS INTERVAL 1 DAY, ts TIMESTAMP NOT NULL LATENESS INTERVAL 1 HOUR", hybrid_timeColumn="ts"
    )
    assert move(made)["bufferTimePeriod"] == "1h"
    assert made.warnings == (
        "t.sql: line 1, column 17: the LATENESS of 'a' has no effect: 'ts' is the time column.",
    )  # fmt: skip


def test_milliseconds_do_not_fit_an_integer() -> None:
    [warning] = table("ts INTEGER NOT NULL LATENESS 5").warnings
    assert "'ts' is INTEGER and holds MILLISECONDS until January 1970 only. Write BIGINT" in warning


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("ts TIMESTAMP LATENESS INTERVAL 1 DAY", {}, "line 1, column 17: the time column 'ts' must be NOT NULL"),
        ("ts DOUBLE NOT NULL LATENESS INTERVAL 1 DAY", {}, "'ts' is DOUBLE; a time column is TIMESTAMP, DATE, BIGINT"),
        ("ts SMALLINT NOT NULL LATENESS 5", {}, "'ts' is SMALLINT; a time column is"),
        ("ts BIGINT ARRAY NOT NULL LATENESS 5", {}, "'ts' is BIGINT ARRAY"),
        ("ts TIMESTAMP NOT NULL LATENESS 5", {}, "'5' is not the lateness of 'ts', which is TIMESTAMP"),
        ("ts BIGINT NOT NULL LATENESS -5", {}, "'-' is not a whole number from 0 on"),
        ("ts BIGINT NOT NULL LATENESS 10::BIGINT", {}, "'::' is not understood here"),
        ("ts BIGINT NOT NULL LATENESS 999999999999999999", {}, "is longer than a thousand years"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL 1 MONTH", {}, "a MONTH has no fixed length"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL 1 WEEK", {}, "a WEEK has no fixed length"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL 1 FORTNIGHT", {}, "'FORTNIGHT' is not a unit of time"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL -1 HOUR", {}, "'-' is not an interval"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL '-1' HOUR", {}, "'-1' is not an interval of HOUR"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL '1:30' HOUR", {}, "'1:30' is not an interval of HOUR"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL '1' HOUR TO MINUTE", {}, "is not an interval of HOUR TO MINUTE"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL '1:30' MINUTE TO HOUR", {}, "is not an interval of MINUTE TO HOUR"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL 1.5 HOUR", {}, "is not an interval of HOUR"),
        ("ts TIMESTAMP NOT NULL LATENESS INTERVAL 999999999 DAYS", {}, "is not an interval of DAY"),
        ("a DATE NOT NULL LATENESS INTERVAL 1 DAY, b DATE NOT NULL LATENESS INTERVAL 1 DAY", {},
         "line 1, column 58: 'a' and 'b' have a LATENESS, and a table has one time column"),
        ("a INT", {"hybrid_timeColumn": "b"}, "'hybrid.timeColumn': 'b' is not a column of the table"),
        ("a INT", {"hybrid_bucketTimePeriod": "1h"}, "'hybrid.bucketTimePeriod': the table has no time column"),
        ("a INT", {"hybrid_timeUnit": "SECONDS"}, "'hybrid.timeUnit': the table has no time column"),
        ("a DATE NOT NULL", {"hybrid_timeColumn": "a", "hybrid_timeUnit": "DAYS"}, "'a' is DATE and counts no units"),
        ("a BIGINT NOT NULL", {"hybrid_timeColumn": "a", "hybrid_timeUnit": "SECOND"}, "Did you mean 'SECONDS'?"),
        ("a BIGINT NOT NULL", {"hybrid_timeColumn": "a", "hybrid_bucketTimePeriod": "1 hour"},
         "'hybrid.bucketTimePeriod': '1 hour' is not a period"),
        ("a BIGINT NOT NULL", {"hybrid_timeColumn": "a", "hybrid_bufferTimePeriod": "x"}, "'x' is not a period"),
    ],
)  # fmt: skip
def test_wrong_time_columns(columns: str, options: dict[str, str], words: str) -> None:
    assert words in fails_table(columns, **options)


# Properties


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hybrid_timeColum": "a"}, "column 30: 'hybrid.timeColum' is not known. Did you mean 'hybrid.timeColumn'"),
        ({"hybrid_boundary": "exactly"}, "'hybrid.boundary': 'exactly' is not known. Write 'exact' or 'pinot'"),
        ({"materialized": "yes"}, "'materialized': 'yes' is neither 'true' nor 'false'"),
        ({"append_only": ""}, "'append_only': '' is neither"),
        ({"expected_size": "big"}, "'expected_size': 'big' is not a whole number"),
        ({"hybrid_comparisonColumn": "a"}, "'hybrid.comparisonColumn': the table has no PRIMARY KEY"),
        ({"append_only": "true", "connectors": connectors(CHANGES)},
         "'append_only': 'true' does not fit the connector 'kafka_input_0', which can delete"),
    ],
)  # fmt: skip
def test_wrong_properties(options: dict[str, str], words: str) -> None:
    assert words in fails_table("a INT", **options)


def test_append_only() -> None:
    assert "'true' does not fit the PRIMARY KEY (a)" in fails_table("a INT PRIMARY KEY", append_only="true")
    assert table("a INT", append_only="true", connectors=connectors(RAW)).warnings == ()
    assert table("a INT PRIMARY KEY", append_only="false", connectors=connectors(CHANGES)).warnings == ()


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("x", "'x' is not a column of the table"),
        ("b", "'b' is BOOLEAN and has no order"),
        ("c", "'c' is INTEGER ARRAY"),
    ],
)
def test_wrong_comparison_columns(column: str, words: str) -> None:
    assert words in fails_table("a INT PRIMARY KEY, b BOOLEAN, c INT ARRAY", hybrid_comparisonColumn=column)
