"""CSV files of flows: columns by their names where a header gives them, else by their places; never rows of nulls."""

from __future__ import annotations

import pytest

from tests.flow.declared.test_running import rejected

pytestmark = pytest.mark.spark

FLOWS = """
import dlt
folder = "{folder}"
@dlt.table
def streamed():
    return spark.readStream.format("csv").schema("id INT, name STRING").load(folder)
@dlt.table
def clouded():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").option("header", "false")
        .schema("id INT, name STRING").load(folder))
@dlt.table
def rescued():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").schema("id INT, name STRING")
        .option("cloudFiles.schemaEvolutionMode", "rescue").load(folder))
dlt.create_streaming_table("batch")
@dlt.append_flow(target="batch", name="batch", once=True)
def batch():
    return spark.read.csv(folder, schema="id INT, name STRING")
@dlt.table
def hinted():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv")
        .option("cloudFiles.schemaHints", "id INT").load(folder))
"""
SQL_FLOW = """
CREATE OR REFRESH STREAMING TABLE listed AS SELECT *
FROM STREAM read_files('{folder}', format => 'csv', schema => 'id INT, name STRING');
"""


def test_without_a_header_columns_are_those_of_the_schema_by_their_places(spark_home):
    folder = spark_home.folder / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("1,x\n2,y\n")
    (folder / "2.csv").write_text("3,z,more\nw,4\n")
    reports = spark_home.run(FLOWS.format(folder=folder))
    for name in ("streamed", "clouded", "batch"):
        assert (reports[name].rows, reports[name].rejected) == (3, 1), name
        assert spark_home.rows(f"select id, name from {name} order by id") == [(1, "x"), (2, "y"), (3, "z")], name
    assert reports["rescued"].rows == 4
    assert spark_home.rows("select id, name from rescued order by name") == [(None, "4"), (1, "x"), (2, "y"), (3, "z")]
    assert reports["hinted"].state == "FAILED"
    assert "no header names the columns" in reports["hinted"].sentence
    assert any("does not fit the columns" in reason for reason, _ in rejected(spark_home, "streamed"))
    assert spark_home.run(SQL_FLOW.format(folder=folder), name="flows.sql")["listed"].rows == 3
    assert spark_home.rows("select id, name from listed order by id") == [(1, "x"), (2, "y"), (3, "z")]


HEADERS = """
import dlt
@dlt.table
def events():
    return (spark.readStream.format("csv").option("header", "true").option("comment", "#")
        .schema("id INT, name STRING").load("{folder}"))
@dlt.table
def wrong():
    return spark.readStream.format("csv").option("header", "true").schema("a INT, b STRING").load("{folder}")
"""


def test_headers_in_another_order_and_behind_comments_in_one_batch(spark_home):
    folder = spark_home.folder / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("# made today\nid,name\n1,x\n")
    (folder / "2.csv").write_text("# made today\nname,id\ny,2\n")
    (folder / "3.csv").write_text("\nname,id\nz,3\n")
    reports = spark_home.run(HEADERS.format(folder=folder))
    assert (reports["events"].state, reports["events"].rows) == ("DONE", 3), reports["events"].sentence
    assert spark_home.rows("select id, name from events order by id") == [(1, "x"), (2, "y"), (3, "z")]
    assert reports["wrong"].state == "FAILED"
    assert "none of them is a column of the schema" in reports["wrong"].sentence
