"""CREATE TABLE as a whole: documents, statements, connectors."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.connectors_json import connector_warnings, parse_connectors
from hybrid.config.ddl import parse_ddl
from hybrid.config.schema_json import parse_schema
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.schema.document import Section
from hybrid.schema.schema import FieldKind
from tests.config.ddl_docs import (
    CHANGES,
    FILES,
    configs,
    connectors,
    fails,
    fields,
    move,
    table,
)

# The recipes


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_recipes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    [made] = parse_ddl(text, path.name)
    assert made.name == "lineitem" and made.warnings == ()
    schema = parse_schema(made.schema_doc, path.name)
    assert schema.name == "lineitem" and schema.null_handling and schema.primary_key == () and len(schema.fields) == 16
    assert all(field.not_null and field.kind is FieldKind.DIMENSION for field in schema.fields)
    types = [fields(made)[name]["hybrid.sqlType"] for name in ("l_orderkey", "l_tax", "l_shipmode", "l_shipdate")]
    assert types == ["INTEGER", "DECIMAL(15,2)", "CHAR(10)", "DATE"]
    realtime, offline = configs(made)
    assert realtime["connectors"] == json.loads(text[text.index("'[") + 1 : text.index("]'") + 1])
    assert [one["tableType"] for one in (realtime, offline)] == ["REALTIME", "OFFLINE"]
    assert "connectors" not in offline and "upsertConfig" not in realtime
    history, live = parse_connectors(Section(realtime, path.name))
    assert (history.name, live.name, live.start_after) == (
        "lineitem.historical", "lineitem.live", ("lineitem.historical",),
    )  # fmt: skip
    assert list(connector_warnings(Section(realtime, path.name))) == []


def test_both_recipes_say_the_same() -> None:
    found = [parse_connectors(Section(parse_ddl(path.read_text(), "f")[0].configs[0], "f")) for path in FILES]
    assert len(found) == 2 and found[0] == found[1]


# Documents


def test_the_documents_of_a_table_with_everything() -> None:
    made = table(
        "ID BIGINT PRIMARY KEY, \"Name\" VARCHAR(9) DEFAULT 'it''s', "
        "ts TIMESTAMP NOT NULL LATENESS INTERVAL 90 MINUTES",
        connectors=connectors(CHANGES),
        hybrid_bucketTimePeriod="2h",
        hybrid_boundary="exact",
        materialized="true",
    )
    assert made.schema_doc == {
        "schemaName": "t",
        "enableColumnBasedNullHandling": True,
        "primaryKeyColumns": ["id"],
        "dimensionFieldSpecs": [
            {"name": "id", "dataType": "LONG", "notNull": True, "hybrid.sqlType": "BIGINT"},
            {"name": "Name", "dataType": "STRING", "hybrid.sqlType": "VARCHAR(9)", "hybrid.default": "it's"},
        ],
        "dateTimeFieldSpecs": [
            {"name": "ts", "dataType": "TIMESTAMP", "notNull": True, "hybrid.sqlType": "TIMESTAMP",
             "format": "TIMESTAMP", "granularity": "1:MILLISECONDS"}
        ],
    }  # fmt: skip
    both = {
        "tableName": "t",
        "segmentsConfig": {"timeColumnName": "ts"},
        "upsertConfig": {"mode": "FULL", "comparisonColumn": "_hy_timestamp"},
        "metadata": {
            "customConfigs": {
                "hybrid.ddl": "true", "hybrid.columns": '["id", "Name", "ts"]', "hybrid.boundary": "exact",
            }
        },
    }  # fmt: skip
    task = {"RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "2h", "bufferTimePeriod": "1h30m"}}
    assert made.configs == [
        {**both, "tableType": "REALTIME", "task": {"taskTypeConfigsMap": task}, "connectors": [CHANGES]},
        {**both, "tableType": "OFFLINE"},
    ]
    assert made.warnings == ()


def test_a_table_without_connectors_and_time() -> None:
    made = table("a INT")
    assert configs(made)[0]["connectors"] == [] and move(made) == {"bucketTimePeriod": "1d"}
    assert configs(made)[0]["segmentsConfig"] == {} and "dateTimeFieldSpecs" not in made.schema_doc
    assert "hybrid.columns" not in configs(made)[0]["metadata"]["customConfigs"]


def test_the_documents_share_nothing_and_are_json() -> None:
    made = table("a INT PRIMARY KEY", connectors=connectors(CHANGES))
    realtime, offline = configs(made)
    offline["metadata"]["x"] = offline["upsertConfig"]["x"] = 1
    assert "x" not in realtime["metadata"] and "x" not in realtime["upsertConfig"]
    json.dumps([made.schema_doc, made.configs])


def test_parse_table_reads_the_documents() -> None:
    made = table(
        "id BIGINT, ts BIGINT NOT NULL LATENESS 5000, v DECIMAL(9,2) DEFAULT 1.50, tags VARCHAR ARRAY, PRIMARY KEY(ID)",
        hybrid_comparisonColumn="TS",
        connectors=connectors(CHANGES),
    )
    realtime, offline = configs(made)
    spec = parse_table(made.schema_doc, "t.sql", [(realtime, "t.sql"), (offline, "t.sql")])
    assert spec.name == "t" and spec.time_column == "ts" and spec.primary_key == ("id",)
    assert spec.upsert is not None and spec.upsert.comparison_column == "ts"
    assert spec.move is not None and (spec.move.bucket_ms, spec.move.buffer_ms) == (86_400_000, 5000)


def test_several_tables_and_comments() -> None:
    text = """
    -- the first; with a ' in it
    CREATE TABLE a (x INT /* no, "really" */, y INT) ;;
    create table "B" ("X y_" INT);  -- done
    """
    with pytest.raises(SpecError, match='line 4, column 23: "X y_" is no name of a column'):
        parse_ddl(text, "f")
    assert [made.name for made in parse_ddl(text.replace("X y_", "X"), "f")] == ["a", "B"]


def test_quotes_keep_their_case_and_words_do_not() -> None:
    assert list(fields(table('Ab INT, "Cd" INT, "e""f" INT, é INT'))) == ["ab", "Cd", 'e"f', "é"]


# Statements


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "t.sql: holds no CREATE TABLE"),
        (" ;; -- CREATE TABLE t (a INT)", "t.sql: holds no CREATE TABLE"),
        ("CREATE VIEW v AS SELECT 1", "line 1, column 1: CREATE VIEW is not read here"),
        (
            "CREATE TABLE t (a INT);\nCREATE MATERIALIZED VIEW v AS SELECT 1",
            "line 2, column 1: CREATE VIEW is not read",
        ),
        ("CREATE LOCAL VIEW v AS SELECT 1", "CREATE VIEW is not read"),
        ("CREATE TYPE a AS INT", "CREATE TYPE is not read"),
        ("CREATE FUNCTION f() RETURNS INT", "CREATE FUNCTION is not read"),
        ("CREATE INDEX i ON t(a)", "CREATE INDEX is not read"),
        ("INSERT INTO t VALUES (1)", "INSERT is not read here: a file holds CREATE TABLE statements only"),
        ("DECLARE RECURSIVE VIEW v (a INT)", "DECLARE is not read"),
        ("LATENESS v.c INTERVAL 1 HOUR", "LATENESS is not read"),
        ("{", "'{' is not read here"),
        ("CREATE OR REPLACE TABLE t (a INT)", "CREATE OR REPLACE is not read"),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", "line 1, column 14: IF NOT EXISTS is not read"),
        ("CREATE TABLE a.t (a INT)", "'a.' is not read: names of tables have one part"),
        ('CREATE TABLE "a b" (a INT)', '"a b" is no name of a table'),
        ("CREATE TABLE orders_REALTIME (a INT)", "'orders_REALTIME' is no name of a table"),
        ("CREATE TABLE (a INT)", "'(' is not the name of a table"),
        ("CREATE TABLE t", "'(' is missing behind CREATE TABLE t; here is the end of the text"),
        ("CREATE TABLE t ()", "')' is not the name of a column"),
        ("CREATE TABLE t (a INT", "the end of the text is not understood here"),
        (
            "CREATE TABLE t (a INT) CREATE TABLE u (a INT)",
            "line 1, column 24: 'CREATE' is not understood here: ';' ends",
        ),
        ("CREATE TABLE t (a INT); CREATE TABLE T (a INT)", "the table 't' is given twice in the file"),
        ("CREATE TABLE t (a INT) WITH", "'(' is missing behind WITH"),
        ("CREATE TABLE t (a INT) WITH ()", "')' is not a property: write 'key' = 'value'"),
        ("CREATE TABLE t (a INT) WITH (k = 'v')", "'k' is not a property"),
        ("CREATE TABLE t (a INT) WITH ('k' 'v')", "'=' is missing behind 'k'; here is 'v'"),
        ("CREATE TABLE t (a INT) WITH ('k' = true)", "'true' is not the value of 'k': write it in single quotes"),
        ("CREATE TABLE t (a INT) WITH ('k' = 'v'", "')' is missing or ',' behind a property"),
        ("CREATE TABLE t (a INT) WITH ('k' = 'v', 'k' = 'v')", "line 1, column 41: the property 'k' is given twice"),
        ("CREATE TABLE t (\n  a INT DEFAULT 'x)", "line 2, column 17: this string has no closing '"),
        ('CREATE TABLE "t (a INT)', 'line 1, column 14: this name has no closing "'),
        ("CREATE TABLE t /* (a INT)", "line 1, column 16: this comment has no closing */"),
    ],
)
def test_wrong_statements(text: str, words: str) -> None:
    assert words in f"t.sql: {fails(text)}"


# Connectors


def with_connectors(value: str) -> str:
    head = "CREATE TABLE t (\n  a INT,\n  ts TIMESTAMP\n) WITH (\n  'materialized' = 'true',\n"
    return f"{head}  'connectors' = '{value}');"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "line 6, column 19: 'connectors' is not JSON: Expecting value"),
        ('[\n  {"name": "a",}]', "line 7, column 1"),
        ('[{"name": "it\'\'s"}\n {]', "line 7, column 2: 'connectors' is not JSON: Expecting ',' delimiter, here: {]"),
        ("[NaN]", "'connectors' is not JSON: NaN is no number of JSON"),
        ("[" * 500 + "]" * 500, "it nests deeper than 200 levels"),
        ("{}", "'connectors': {} is not a list"),
        ('[{"name": "a",\n "name": "b"}]', "line 7, column 2: 'connectors' has the key \"name\" twice in one object"),
        ("[\n {},\n 5]", "line 8, column 2, connectors[1]: 5 is not an object"),
        ("[\n\n {}]", "line 8, column 2, connectors[0].transport: is missing"),
        ('[\n {"transport":\n  {"name": "kafka"}}]', "line 8, column 4, connectors[0].transport.name: 'kafka' is"),
        ('[{"name": "it\'\'s", "transport": {}}]', "line 6, column 21, connectors[0].name: \"it's\" is refused"),
        (json.dumps([{**CHANGES, "labels": ["a"]}], indent=1).replace('"k"', '""'),
         "line 12, column 5, connectors[0].transport.config.bootstrap.servers: '' is not a text"),
        (json.dumps([{**CHANGES, "start_after": "x"}], indent=1), "connectors[0].start_after: no connector of this"),
        (connectors({"transport": {"name": "delta_table_input",
                                   "config": {"uri": "u", "mode": "snapshot", "timestamp_column": "tz"}}}),
         "connectors[0].transport.config.timestamp_column: 'tz' is not a column of the table. Columns are: a, ts"),
        (connectors({"transport": {"name": "datagen", "config": {"plan": [{"fields": {"A": {}, "c": {}}}]}}}),
         "connectors[0].transport.config.plan[0].fields.c: 'c' is not a column"),
    ],
)  # fmt: skip
def test_errors_inside_of_connectors_point_into_the_file(value: str, words: str) -> None:
    message = fails(with_connectors(value))
    assert words in message and message.startswith("line ")


def test_brokers_stand_in_for_those_that_are_missing() -> None:
    config = connectors({"transport": {"name": "kafka_input", "config": {"topic": "t"}}, "format": {"name": "json"}})
    assert "bootstrap.servers: is missing" in fails(with_connectors(config))
    [made] = parse_ddl(with_connectors(config), "t.sql", brokers="k:1")
    assert configs(made)[0]["connectors"] == json.loads(config)


def test_warnings_of_connectors_come_once() -> None:
    config = connectors({**CHANGES, "lables": ["x"]})
    made = table("a INT", connectors=config)
    assert made.warnings == ()
    [warning] = connector_warnings(Section(configs(made)[0], "t.sql"))
    assert "connectors[0].lables" in warning


# Whatever is written, the answer is tables or an error that names a place

PIECES = st.sampled_from(
    ["CREATE", "TABLE", "t", "(", ")", ",", ";", "a", "INT", "VARCHAR(3)", "DECIMAL(5,2)", "NOT", "NULL", "PRIMARY KEY",
     "DEFAULT", "5", "-", "'x'", '"b"', "LATENESS", "INTERVAL", "1 HOUR", "WITH", "'connectors'", "=", "'[{}]'",
     "ARRAY", "FOREIGN KEY", "REFERENCES", "--", "\n", "/*", "'", "1.5e3", "::", "é", "\x00", "CREATE TABLE t (a INT"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14) | st.lists(st.characters(), max_size=20))
def test_hostile_texts(pieces: list[str]) -> None:
    try:
        parse_ddl("CREATE TABLE t (" + " ".join(pieces), "t.sql")
    except SpecError as error:
        assert re.match(r"t\.sql: line \d+, column \d+", str(error))


@given(st.data())
def test_hostile_edits_of_a_recipe(data: st.DataObject) -> None:
    text = FILES[0].read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 12))
    text = text[:start] + data.draw(st.text(st.sampled_from("'\"[]{},:; a0-"), max_size=3)) + text[start + length :]
    try:
        parse_ddl(text, "t.sql")
    except SpecError as error:
        assert str(error).startswith("t.sql: ")
