"""What flow files declare, in every spelling; and mistakes of declaration that others let through."""

import pytest

from hybrid.errors import HybridError, SpecError, UsageError
from hybrid.flow.declared.python_face import REFUSED

OURS = """
from hybrid import flows
spark = flows.spark
root = flows.conf("root")
flows.create_streaming_table(name="t", comment="c", table_properties={"hybrid.timeColumn": "ts", "quality": "bronze"})

@flows.append_flow(target="t", name="live")
def live():
    return flows.read_files_stream(root, format="json").load()

for year in "2024,2023".split(","):
    @flows.append_flow(target="t", name=f"old_{year}", once=True, comment="backfill")
    def old(year=year):
        return spark.read.format("json").load(f"{root}/{year}")
"""
LAKEFLOW = """
{imported}
root = spark.conf.get("root")
{lake}.create_streaming_table("t", comment="c", table_properties={{"hybrid.timeColumn": "ts", "quality": "bronze"}})

@{lake}.append_flow(target="t", name="live")
def live():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(root)

for year in "2024,2023".split(","):
    @{lake}.append_flow(target="t", name=f"old_{{year}}", once=True, comment="backfill")
    def old(year=year):
        return spark.read.format("json").load(f"{{root}}/{{year}}")
"""
SQL = """
-- the same ${nobody} needs
CREATE OR REFRESH STREAMING TABLE t TBLPROPERTIES ('hybrid.timeColumn' = 'ts', 'quality' = 'bronze') COMMENT 'c';
CREATE FLOW live AS INSERT INTO t BY NAME SELECT * FROM STREAM read_files('${root}', format => 'json'); /* ; */
CREATE FLOW old_2024 COMMENT 'backfill' AS INSERT INTO ONCE t BY NAME
  SELECT * FROM read_files("${root}/2024", format => "json") WHERE a <> ';';
CREATE FLOW `old_2023` COMMENT 'backfill' AS INSERT INTO ONCE t BY NAME
  SELECT * FROM read_files('${root}/2023', format => 'json')
"""


def what(session):
    tables = [(one.name, one.comment, dict(one.properties)) for one in session.declaration.tables.values()]
    return tables, [(one.target, one.name, one.once, one.comment) for one in session.declaration.flows]


def test_every_spelling_declares_the_same(flow_home):
    ours = what(flow_home.load(OURS, root="/data"))
    for lake, imported in (("dlt", "import dlt"), ("dp", "from pyspark import pipelines as dp")):
        assert what(flow_home.load(LAKEFLOW.format(lake=lake, imported=imported), root="/data")) == ours
    assert what(flow_home.load(SQL, "flows.sql", root="/data")) == ours
    assert ours[1][1:] == [("t", "old_2024", True, "backfill"), ("t", "old_2023", True, "backfill")]


def test_a_table_with_its_flow(flow_home):
    python = (
        "import dlt\n@dlt.table\ndef t():\n    return 1\n@dlt.table(name='u', comment='x')\ndef v():\n    return 1\n"
    )
    sql = """CREATE STREAMING LIVE TABLE t AS SELECT * FROM STREAM(read_files('/a', format => 'csv', header => true));
             CREATE STREAMING TABLE u COMMENT 'x' AS SELECT a FROM STREAM read_files('/a', format => 'csv')"""
    for text, name in ((python, "f.py"), (sql, "f.sql")):
        assert what(flow_home.load(text, name))[1] == [("t", "t", False, None), ("u", "u", False, "x")]


def test_columns_in_sql(flow_home):
    columns = "id BIGINT COMMENT 'it''s', price DECIMAL(10, 2)"
    query = "SELECT * FROM STREAM read_files('/a', format => 'json')"
    text = f"CREATE STREAMING TABLE t ({columns}) CLUSTER BY (id) AS {query}"
    assert flow_home.load(text, "f.sql").declaration.tables["t"].schema == columns


def test_variables(flow_home):
    session = flow_home.load(OURS, root="/data", roots="/x")
    assert session.declaration.warnings == [
        f"--var roots: {session.declaration.source} does not use it. Did you mean 'root'?"
    ]
    for text, name in ((OURS, "f.py"), (LAKEFLOW.format(lake="dlt", imported="import dlt"), "f.py"), (SQL, "f.sql")):
        with pytest.raises(SpecError, match=r"no --var of that name was given\. Is 'rot' meant"):
            flow_home.load(text, name, rot="/data")
    assert flow_home.load("from hybrid import flows\nassert flows.conf('a', 'b') == 'b'\n" + OURS, root="x")


def test_a_variable_that_a_flows_function_reads_is_no_unused_one(flow_home):
    text = OURS.replace('format="json").load()', "format=flows.conf('kind')).load()", 1)
    session = flow_home.load(text, root="/data", kind="json", other="x")
    assert session.declaration.warnings == [f"--var other: {session.declaration.source} does not use it."]


HEAD = "from hybrid import flows\nflows.create_streaming_table('t')\n"
FLOW = "@flows.append_flow(target='t', name='f')\ndef {name}():\n    return None\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + FLOW.format(name="a") + FLOW.format(name="b"), "flow 'f' of table 't' is given twice, first at line 3"),
        (HEAD + HEAD, "table 't' is created twice, first at line 2"),
        (HEAD + "@flows.append_flow\ndef f(): pass", "target is missing"),
        (HEAD + "@flows.append_flow(target='t', name='a/b')\ndef f(): pass", "'a/b' is no name of a flow"),
        ("from hybrid import flows\nflows.create_streaming_table('cat.sch.t')", "'cat.sch.t' is no name of a table"),
        (HEAD + "flows.read_files('/a', format='json').load()", "stands outside of a flow"),
        (
            "from hybrid import flows\nflows.create_streaming_table('t', table_properties={'hybrid.timecolumn': 'x'})",
            "'hybrid.timecolumn' is no property of a table. Did you mean 'hybrid.timeColumn'?",
        ),
        (HEAD.replace("'t'", "'t', expect_all={'a': 'b'}"), "expectations are not built"),
        ("from hybrid import flows\nflows.create_streaming_table('t', colour='red')", "has no argument 'colour'"),
        ("def f(:", "line 1: this is not Python"),
        ("x = 1\nraise ValueError('no')", "line 2: ValueError: no"),
        ("import sys\nsys.exit(3)", "the file ends itself"),
    ],
)  # fmt: skip
def test_mistakes_in_python(flow_home, text, message):
    with pytest.raises(SpecError) as caught:
        flow_home.load(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_what_of_lakeflow_is_not_built_is_told_by_its_name(flow_home, name):
    with pytest.raises(SpecError, match=rf"line 2: dlt\.{name} is not built"):
        flow_home.load(f"import dlt\n@dlt.{name}\ndef f(): pass")
    with pytest.raises(SpecError, match="is not built"):
        flow_home.load(f"from pyspark.pipelines import {name}")


INTO = "CREATE FLOW f AS INSERT INTO t BY NAME SELECT * FROM "
ONCE = INTO.replace("INTO t", "INTO ONCE t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "line 1, column 8: CREATE MATERIALIZED is not built"),
        ("SELECT 1", "a flow file has CREATE STREAMING TABLE and CREATE FLOW"),
        ("CREATE FLOW f AS INSERT INTO t SELECT 1", "BY NAME is missing"),
        ("CREATE FLOW f AS AUTO CDC INTO t", "AUTO CDC is not built"),
        (ONCE + "STREAM read_files('/a', format => 'json')", "is ONCE and reads STREAM"),
        (INTO + "read_files('/a', format => 'json')", "is not ONCE and reads no stream"),
        (INTO + "STREAM other", "streams of flows are files"),
        (INTO + "STREAM read_files('/a', format = 'json')", "'=>' is missing"),
        (INTO + "STREAM read_files('/a', form => 'json')", "option form"),
        (INTO + "STREAM read_files('/a')", "option format: is missing"),
        ("CREATE STREAMING TABLE t (a INT NOT NULL)", "NOT NULL is not built"),
        ("CREATE STREAMING TABLE t (a INT, CONSTRAINT c EXPECT (a > 1))", "CONSTRAINT in the columns is not built"),
        ("CREATE STREAMING TABLE t SCHEDULE EVERY 1 HOUR", "'SCHEDULE' is not read here"),
        ("CREATE STREAMING TABLE t AS SELECT 'a", "this string has no closing '"),
    ],
)  # fmt: skip
def test_mistakes_in_sql(flow_home, text, message):
    with pytest.raises(SpecError) as caught:
        flow_home.load(text, "f.sql")
    assert message in str(caught.value)


def test_what_a_full_refresh_names(flow_home):
    declaration = flow_home.load(OURS, root="/data").declaration
    assert [flow.name for flow in declaration.chosen("old_2024")] == ["old_2024"]
    assert len(declaration.chosen("t")) == len(declaration.chosen(None)) == 3
    with pytest.raises(SpecError, match=r"no flow and no table of that name\. Did you mean 'old_2024'"):
        declaration.chosen("old_2042")


def test_outside_of_a_run(flow_home):
    from hybrid import flows

    with pytest.raises(UsageError) as caught:
        flows.create_streaming_table("t")
    assert caught.value.hint == "hybrid flow run FILE"
    for text, name in (("x = 1", "f.py"), ("", "f.txt")):
        with pytest.raises(HybridError):
            flow_home.load(text, name)
