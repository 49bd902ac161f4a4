"""What a SQL flow knows of the file of a row, and files whose names hold what URLs and patterns use."""

from __future__ import annotations

import pytest

from hybrid.flow.declared.sql_metadata import is_narrowed, with_metadata
from tests.flow.declared.conftest import FlowHome


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT * FROM f", None),
        ("SELECT '_metadata', a -- _metadata\nFROM f", None),
        ("SELECT my_metadata, _metadata2 FROM f", None),
        ("SELECT _metadata.file_path FROM f", "SELECT _hy_metadata.file_path FROM f"),
        ("SELECT f._Metadata.file_name AS n FROM f", "SELECT f._hy_metadata.file_name AS n FROM f"),
        ("SELECT `_metadata`.file_name FROM f", "SELECT _hy_metadata.file_name FROM f"),
        ("SELECT *, _metadata FROM f", "SELECT *, _hy_metadata AS _metadata FROM f"),
        ("SELECT f._metadata, a FROM f", "SELECT f._hy_metadata AS _metadata, a FROM f"),
        ("SELECT to_json(_metadata) j FROM f GROUP BY a, _metadata, b",
         "SELECT to_json(_hy_metadata) j FROM f GROUP BY a, _hy_metadata, b"),
    ],
)  # fmt: skip
def test_the_name_in_a_query(text: str, named: str | None) -> None:
    assert with_metadata(text) == named


@pytest.mark.parametrize(
    ("text", "narrowed"),
    [
        ("SELECT DISTINCT * FROM f WHERE _metadata.file_size > 1", True),
        ("SELECT * FROM f UNION SELECT * FROM g", True),
        ("SELECT * FROM f UNION ALL SELECT * FROM g", False),
        ("SELECT * EXCEPT (a) FROM f", False),
        ("SELECT DISTINCT a FROM f", False),
        ("SELECT *, 'UNION' FROM f", False),
    ],
)
def test_queries_that_compare_whole_rows(text: str, narrowed: bool) -> None:
    assert is_narrowed(text) is narrowed


@pytest.mark.spark
def test_sql_flows_read_the_metadata_of_files(spark_home: FlowHome) -> None:
    home = spark_home
    home.write("csv/a b#1.csv", "id,name", "1,x")
    home.write("csv/b%41[2].csv", "name,id", "y,2")
    home.write("json/größe {3}?.json", {"id": 3, "name": "z"}, '{"id": "no"}')
    home.write("bad/größe + 1.json", "no object")
    folder = home.root
    text = f"""
CREATE STREAMING TABLE bad AS SELECT * FROM STREAM read_files('{folder}/bad', format => 'json', schema => 'id INT');
CREATE STREAMING TABLE csvs AS SELECT *, _metadata.file_name AS file, _metadata.file_size > 5 AS large
  FROM STREAM read_files('{folder}/csv', format => 'csv', header => true);
CREATE STREAMING TABLE jsons AS SELECT id, _metadata.file_path AS path, _metadata.file_modification_time AS at
  FROM STREAM read_files('{folder}/json', format => 'json', schema => 'id INT', schemaEvolutionMode => 'rescue')
  WHERE _metadata.file_name LIKE '%.json';
CREATE STREAMING TABLE inner_ AS SELECT * FROM (SELECT id, _metadata.file_name n
  FROM STREAM read_files('{folder}/csv', format => 'csv', header => true)) WHERE n LIKE 'a%';
"""
    home.run(text, "flows.sql")
    assert home.rows("select id, name, file, large from csvs order by id") == [
        (1, "x", "a%20b%231.csv", True),
        (2, "y", "b%2541%5B2%5D.csv", True),
    ], "as Spark writes it"
    assert home.api.table("bad").rejected(10)[0]["reason"].endswith(f", in {folder}/bad/größe + 1.json")
    (path, at), *_ = home.rows("select path, at from jsons where id = 3")
    assert path.startswith("file:/") and at is not None
    assert home.rows("select id, n from inner_") == [(1, "a%20b%231.csv")]


@pytest.mark.spark
def test_a_flow_that_fails_says_one_sentence(spark_home: FlowHome, capfd: pytest.CaptureFixture[str]) -> None:
    home = spark_home
    home.write("a.json", {"id": 1})
    for query in ("SELECT nope, `id` FROM", "SELECT raise_error('bad row') AS id FROM"):
        text = f"CREATE STREAMING TABLE t AS {query} STREAM read_files('{home.root}/a.json', format => 'json');"
        report = home.run(text, "flows.sql")["t"]
        message = report.sentence
        assert report.state == "FAILED" and "failed: [" in message and "\n" not in message, message
        assert len(message) < 400, message
    assert len(capfd.readouterr().err) < 500
