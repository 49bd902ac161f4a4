"""`file_input`: history in files of every format, in the order of their names, before a stream."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.kafka.topics import TopicRecord, produce
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DDL = """
CREATE TABLE visits (id BIGINT NOT NULL KEY, ts TIMESTAMP NOT NULL LATENESS INTERVAL 1 HOUR, who VARCHAR, day DATE)
WITH ('connectors' = '[
  {"labels": ["files"], "transport": {"name": "file_input", "config": {"path": "PATH"FOLLOW}}, "format": FORMAT}LIVE]');
"""
LIVE = """, {"labels": ["live"], "start_after": "files", "format": {"name": "json"},
 "transport": {"name": "kafka_input", "config": {"topic": "TOPIC", "start_from": "earliest"}}}"""
RAW = {"name": "json", "config": {"update_format": "raw"}}


@pytest.fixture
def home(tmp_path, capsys):
    return RecipeHome(tmp_path / "home", capsys)


@pytest.fixture
def load(home, tmp_path, broker, topic):
    def loaded(form, path="", *, key="", live="", code=0, follow=False):
        text = DDL.replace("PATH", str(tmp_path / "in" / path)).replace("FORMAT", json.dumps(form)).replace(" KEY", key)
        text = text.replace("FOLLOW", ', "follow": true' if follow else "")
        (tmp_path / "visits.sql").write_text(text.replace("LIVE", live).replace("TOPIC", topic))
        home.run("table", "create", "-f", str(tmp_path / "visits.sql"), "--kafka", broker)
        home.run("ingest", "visits", "--until-caught-up", code=code)
        return home.rows("select id, who, day from visits order by id, who limit 100")

    (tmp_path / "in").mkdir()
    return loaded


def visit(number, who="ann", day="2024-03-01"):
    return {"id": number, "ts": f"{day} 10:00:00", "who": who, "day": day}


def shown(number, who="ann", day="2024-03-01"):
    return {"id": number, "who": who, "day": day}


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_json_lines_arrays_and_changes_in_a_folder_then_the_stream(home, load, tmp_path, broker, topic):
    (tmp_path / "in" / "a.json").write_text(lines({"insert": visit(1)}, {"insert": visit(2, day="2024-03-05")}))
    (tmp_path / "in" / "b.json").write_text(json.dumps([{"insert": visit(1, "bob")}, {"delete": {"id": 2}}]))
    (tmp_path / "in" / "_SUCCESS").write_text("")
    produce(broker, topic, [TopicRecord(json.dumps({"insert": visit(3, "eve")}).encode())])
    form = {"name": "json", "config": {"update_format": "insert_delete", "array": True}}
    assert load(form, key=" PRIMARY KEY", live=LIVE) == [shown(1, "bob"), shown(3, "eve")]
    produce(broker, topic, [TopicRecord(json.dumps({"delete": {"id": 1}}).encode())])
    assert home.rows("select id from visits") == [{"id": 3}]
    found = home.run("connector", "list", "visits")
    assert [(one["transport"], one["state"]) for one in found] == [
        ("file_input", "COMPLETED"), ("kafka_input", "RUNNING")
    ]  # fmt: skip


def test_csv_cells_are_the_columns_in_the_order_of_the_ddl(load, tmp_path):
    (tmp_path / "in" / "a.csv").write_text(
        '1;2024-03-01 10:00:00;"a;b";2024-03-01\n2;2024-03-01 11:00:00;;2024-03-02\n'
    )
    rows = load({"name": "csv", "config": {"delimiter": ";"}}, "a.csv")
    assert rows == [shown(1, "a;b"), shown(2, None, "2024-03-02")]


def test_csv_with_a_header_and_a_pattern(load, tmp_path):
    for number in (1, 2):
        text = f"ID,TS,WHO,DAY\n{number},2024-03-01 10:00:00,ann,2024-03-01\n"
        (tmp_path / "in" / f"part-{number}.csv").write_text(text)
    (tmp_path / "in" / "other.csv").write_text("nothing")
    assert load({"name": "csv", "config": {"headers": True}}, "part-*.csv") == [shown(1), shown(2)]


def test_parquet(load, tmp_path):
    rows = [visit(number) for number in range(1, 4)]
    table = pa.Table.from_pylist([{**row, "id": row["id"], "more": 1} for row in rows])
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=2)
    assert load({"name": "parquet"}) == [shown(number) for number in range(1, 4)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (lines(visit(1), {"id": "x", "ts": 5}), "a.json, line 2: Column 'id'"),
        (lines(visit(1)) + "{\n", "a.json, line 2: "),
        (lines({"id": 1}), "a.json, line 1: Column 'ts' is missing or null"),
    ],
)
def test_a_record_that_is_no_row_stops_it_with_its_place(home, load, tmp_path, text, words):
    (tmp_path / "in" / "a.json").write_text(text)
    assert load(RAW, code=1) == []
    assert words in home.messages or words in home.run("connector", "list", "visits")[0]["latest_error"]
    (tmp_path / "in" / "a.json").write_text(lines(visit(1)))
    home.run("connector", "start", "visits", "files")
    home.run("ingest", "visits", "--until-caught-up")
    assert home.rows("select id from visits") == [{"id": 1}]


def test_no_file(home, load):
    assert load(RAW, "nothing-*.json", code=1) == []
    assert "There is no file at" in home.run("connector", "list", "visits")[0]["latest_error"]


def test_a_relative_path_starts_at_the_folder_of_the_statements(home, tmp_path, monkeypatch):
    """Also where the folder of a later command has a file of that name."""
    for folder, number in (("ddl", 1), ("elsewhere", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.json").write_text(lines(visit(number)))
    statement = DDL.replace("PATH", "a.json").replace("FORMAT", json.dumps(RAW)).replace(" KEY", "")
    (tmp_path / "ddl" / "visits.sql").write_text(statement.replace("FOLLOW", "").replace("LIVE", ""))
    monkeypatch.chdir(tmp_path / "ddl")
    home.run("table", "create", "-f", "visits.sql")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert ingest(home) == [(1, "ann")]


def ingest(home, code=0):
    home.run("ingest", "visits", "--until-caught-up", code=code)
    return of_all(home)


def of_all(home):
    return [(row["id"], row["who"]) for row in home.rows("select id, who from visits order by id, who limit 100")]


def add(path, text):
    with path.open("a") as file:
        file.write(text)


@pytest.mark.timeout(300)
def test_files_that_are_followed(home, load, tmp_path, dies):
    """New files and added lines, each once, whatever dies; of one key the row that came later stays."""
    log = tmp_path / "in" / "b.json"
    log.write_text(lines(visit(1), visit(2)))
    assert load(RAW, key=" PRIMARY KEY", follow=True) == [shown(1), shown(2)]
    assert home.run("connector", "list", "visits")[0]["detail"] == "follows, 1 file so far"
    runs = len(home.run("task", "list", "visits"))
    add(log, json.dumps(visit(2, "bob"))[:-1])
    assert ingest(home) == [(1, "ann"), (2, "ann")], "a line without its end"
    assert len([one for one in home.run("task", "list", "visits") if one["type"] == "connector"]) == 1 and runs > 0
    add(log, "}\n")
    (tmp_path / "in" / "a.json").write_text(lines(visit(3)))
    wanted = [(1, "ann"), (2, "bob"), (3, "ann")]
    with dies("history.commit.inside"):  # a kill -9 there is in test_lineitem
        home.run("ingest", "visits", "--until-caught-up")
    assert of_all(home) == [(1, "ann"), (2, "ann")]
    with dies("history.commit.after"):
        home.run("ingest", "visits", "--until-caught-up")
    assert of_all(home) == wanted
    assert ingest(home) == wanted
    (state,) = home.run("connector", "list", "visits")
    assert (state["state"], state["records"], state["end_of_input"]) == ("RUNNING", 4, False)
    log.write_text(lines(visit(1)))
    add(tmp_path / "in" / "a.json", lines(visit(4)))
    assert ingest(home, code=1) == wanted
    (state,) = home.run("connector", "list", "visits")
    assert state["state"] == "FAILED" and "it was cut. Nothing more was loaded" in state["latest_error"]
    log.rename(tmp_path / "b.json")
    assert ingest(home) == [*wanted, (4, "ann")]
    read = tmp_path / "in" / "a.json"
    (tmp_path / "in" / "a.json.gz").write_bytes(gzip.compress(read.read_bytes()))
    read.unlink()
    assert ingest(home) == ingest(home) == [*wanted, (4, "ann")], "known, by a commit without rows"
    assert home.run("connector", "list", "visits")[0]["records"] == 5
