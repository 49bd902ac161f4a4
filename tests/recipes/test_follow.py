"""A Delta table that is followed: what its later versions add, each row once."""

import json
import random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.examples import seeds
from tests.recipes.conftest import RecipeHome

pytestmark = pytest.mark.spark

DDL = """CREATE TABLE events (id BIGINT NOT NULL, p INTEGER) WITH ('connectors' = '[
  {"name": "lake", "transport": {"name": "delta_table_input", "config": CONFIG}}]');"""


@pytest.fixture
def home(tmp_path, capsys):
    return RecipeHome(tmp_path / "home", capsys)


def create(home, tmp_path, key="", table="events", **config):
    text = DDL.replace("NOT NULL", f"NOT NULL{key}").replace("events", table)
    text = text.replace("CONFIG", json.dumps({"uri": str(tmp_path / "lake"), **config}))
    (tmp_path / "events.sql").write_text(text)
    home.run("table", "create", "-f", str(tmp_path / "events.sql"))


def add(tmp_path, *ids):
    rows = {"id": list(ids), "p": pa.array([number % 2 for number in ids], pa.int32())}
    write_deltalake(str(tmp_path / "lake"), pa.table(rows), mode="append", partition_by=["p"])


def read(home, code=0, table="events"):
    home.run("ingest", table, "--until-caught-up", code=code)
    return [(row["id"], row["p"]) for row in home.rows(f"select id, p from {table} order by id, p limit 100")]


def state(home):
    return home.run("connector", "list", "events")[0]


def of(*ids):
    return [(number, number % 2) for number in ids]


def test_a_snapshot_then_what_is_added(home, tmp_path):
    add(tmp_path, 1, 2)
    create(home, tmp_path, mode="snapshot_and_follow")
    assert read(home) == of(1, 2) and state(home)["detail"] == "follows, up to version 0"
    assert read(home) == of(1, 2), "nothing new"
    runs = len(home.run("task", "list", "events"))
    add(tmp_path, 3)
    add(tmp_path, 4, 5)
    assert read(home) == of(1, 2, 3, 4, 5)
    DeltaTable(str(tmp_path / "lake")).optimize.compact()
    assert read(home) == of(1, 2, 3, 4, 5), "the same rows in other files"
    read(home)
    assert len([run for run in home.run("task", "list", "events") if run["type"] == "connector"]) == 3
    assert runs > 0
    add(tmp_path, 6)
    DeltaTable(str(tmp_path / "lake")).delete("id = 1")
    assert read(home, code=1) == of(1, 2, 3, 4, 5, 6)
    assert "changes or deletes rows, and table 'events' has no PRIMARY KEY" in state(home)["latest_error"]
    assert state(home)["state"] == "FAILED"


LAKE_SQL = """
CREATE TABLE delta.`{lake}` (id BIGINT, p INT) USING delta TBLPROPERTIES ({properties});
INSERT INTO delta.`{lake}` VALUES (1, 1), (2, 0), (2, 0), (3, 1), (4, 0);
"""
FED = "'delta.enableChangeDataFeed' = 'true'"
MASKED = "'delta.enableDeletionVectors' = 'true'"


def run_sql(spark, tmp_path, text):
    for statement in text.format(lake=tmp_path / "lake").split(";"):
        if statement.strip():
            spark.sql(statement)


def source(spark, tmp_path):
    return sorted((row[0], row[1]) for row in spark.read.format("delta").load(str(tmp_path / "lake")).collect())


@pytest.mark.timeout(300)
def test_versions_that_change_rows(home, tmp_path, workbench):
    """With deletion vectors, and with change data beside them: of equal rows as many go as went.

    The table `filed` is told to read the files, as of a table without change data.
    """
    run_sql(workbench.spark, tmp_path, LAKE_SQL.replace("{properties}", f"{FED}, {MASKED}"))
    create(home, tmp_path, mode="snapshot_and_follow", change_feed="auto")
    create(home, tmp_path, table="filed", mode="snapshot_and_follow", change_feed="off")

    def check(wanted):
        assert source(workbench.spark, tmp_path) == wanted
        for table in ("events", "filed"):
            assert read(home, table=table) == wanted, table

    check(of(1, 2, 2, 3, 4))
    changed = "DELETE FROM delta.`{lake}` WHERE id = 3; UPDATE delta.`{lake}` SET p = 5 WHERE id = 4"
    run_sql(workbench.spark, tmp_path, changed)
    check([*of(1, 2, 2), (4, 5)])
    changed = """
      MERGE INTO delta.`{lake}` t USING (SELECT 1 AS id UNION ALL SELECT 9 AS id) s ON t.id = s.id
      WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (9, 9);
      OPTIMIZE delta.`{lake}`; DELETE FROM delta.`{lake}` WHERE id = 9; INSERT INTO delta.`{lake}` VALUES (3, 1)"""
    run_sql(workbench.spark, tmp_path, changed)
    check([*of(2, 2, 3), (4, 5)])
    for table in ("events", "filed"):
        totals = home.rows(f"select count(*) as n, sum(p) as s from {table} where id < 4")
        assert totals == [{"n": 3, "s": 1}], table


def test_changes_by_key_and_a_death_in_the_middle(home, tmp_path, dies):
    """No change data: what a version did is told by its files. A key has the source's row, also when it dies."""
    add(tmp_path, 1, 2, 3, 4)
    create(home, tmp_path, mode="snapshot_and_follow", key=" PRIMARY KEY")
    assert read(home) == of(1, 2, 3, 4)
    lake = DeltaTable(str(tmp_path / "lake"))
    lake.delete("id = 1")
    lake.update({"p": "7"}, predicate="id = 2")
    lake.update({"id": "5"}, predicate="id = 3")
    with dies("history.commit.inside@2"):  # a kill -9 there is in test_lineitem
        home.run("ingest", "events", "--until-caught-up")
    rows = [(row["id"], row["p"]) for row in home.rows("select id, p from events order by id limit 100")]
    assert rows == of(2, 3, 4), "the first of three versions"
    assert read(home) == [(2, 7), (4, 0), (5, 1)]
    assert home.rows("select count(*) as n from events where p = 1") == [{"n": 1}]
    for value in (7, 5):
        rows = pa.table({"id": [4], "p": pa.array([value], pa.int32())})
        write_deltalake(str(tmp_path / "lake"), rows, mode="append", partition_by=["p"])
    assert read(home) == [(2, 7), (4, 5), (5, 1)], "of one key the row of the later version stays"
    add(tmp_path, 1)
    write_deltalake(str(tmp_path / "lake"), pa.table({"id": [8], "p": pa.array([0], pa.int32())}), mode="overwrite",
                    partition_by=["p"])  # fmt: skip
    assert read(home) == [(8, 0)]


def test_only_what_comes_up_to_a_version(home, tmp_path):
    add(tmp_path, 1)
    create(home, tmp_path, mode="follow", end_version=2)
    assert read(home) == [] and state(home)["state"] == "RUNNING"
    for number in (2, 3, 4):
        add(tmp_path, number)
    assert read(home) == of(2, 3), "version 0 was there before, version 3 is beyond the last"
    assert state(home)["state"] == "COMPLETED" and state(home)["end_of_input"]


def test_a_columns_name_may_have_a_dot(home, tmp_path):
    rows = {"id": [1, 2], "p.q": pa.array([3, None], pa.int32())}
    write_deltalake(str(tmp_path / "lake"), pa.table(rows))
    config = json.dumps({"uri": str(tmp_path / "lake"), "mode": "snapshot"})
    text = DDL.replace(" p INTEGER", ' "p.q" INTEGER').replace("CONFIG", config)
    (tmp_path / "events.sql").write_text(text)
    home.run("table", "create", "-f", str(tmp_path / "events.sql"))
    home.run("ingest", "events", "--until-caught-up")
    assert home.rows('select id, "p.q" as q from events order by id limit 100') == [
        {"id": 1, "q": 3}, {"id": 2, "q": None},
    ]  # fmt: skip


MAPPED_SQL = """
CREATE TABLE delta.`{lake}` (id BIGINT, old INT, s STRUCT<a: INT>, part STRING) USING delta PARTITIONED BY (part)
  TBLPROPERTIES ('delta.columnMapping.mode' = 'name', {properties});
INSERT INTO delta.`{lake}` VALUES (1, 1, null, 'x'), (2, 0, null, null);
ALTER TABLE delta.`{lake}` RENAME COLUMN old TO p;
INSERT INTO delta.`{lake}` VALUES (3, 1, null, 'y')
"""


@pytest.mark.timeout(300)
def test_columns_that_have_other_names_in_the_files(home, tmp_path, workbench):
    """Column mapping: renamed columns, those of paths, change data; fields of columns are not read."""
    run_sql(workbench.spark, tmp_path, MAPPED_SQL.replace("{properties}", FED))
    config = json.dumps({"uri": str(tmp_path / "lake"), "mode": "snapshot_and_follow", "filter": "id < 9"})
    text = DDL.replace("NOT NULL", "NOT NULL PRIMARY KEY").replace(" p INTEGER", " p INTEGER, part VARCHAR")
    (tmp_path / "events.sql").write_text(text.replace("CONFIG", config))
    home.run("table", "create", "-f", str(tmp_path / "events.sql"))
    changed = "UPDATE delta.`{lake}` SET p = 7 WHERE id = 2; DELETE FROM delta.`{lake}` WHERE id = 1"
    for wanted in ([(1, 1, "x"), (2, 0, None), (3, 1, "y")], [(2, 7, None), (3, 1, "y")]):
        home.run("ingest", "events", "--until-caught-up")
        found = home.rows("select id, p, part from events order by id limit 100")
        assert [(row["id"], row["p"], row["part"]) for row in found] == wanted
        run_sql(workbench.spark, tmp_path, changed)
    taken = text.replace("events", "others").replace(" p INTEGER", " p INTEGER, s VARCHAR").replace("CONFIG", config)
    (tmp_path / "others.sql").write_text(taken)
    home.run("table", "create", "-f", str(tmp_path / "others.sql"))
    home.run("ingest", "others", "--until-caught-up", code=1)
    assert "Column 's' of the Delta table" in home.run("connector", "list", "others")[0]["latest_error"]


STEPS = ("append", "delete", "update", "merge", "compact", "overwrite")


def walk(dice, lake, step):
    """One version more of a table in which each id is there once: what delta-rs does to rows, and what it does not."""
    table = DeltaTable(lake)
    there = [row["id"] for row in table.to_pyarrow_table().to_pylist()]
    some = ", ".join(map(str, dice.sample(there, min(2, len(there))))) or "0"
    new = [number for number in dice.sample(range(12), 3) if number not in there]
    rows = pa.table({"id": pa.array(new, pa.int64()), "p": pa.array([dice.randrange(3) for _ in new], pa.int32())})
    match step:
        case "append":
            write_deltalake(lake, rows, mode="append")
        case "delete":
            table.delete(f"id in ({some})")
        case "update":
            table.update({"p": f"{dice.randrange(3)}"}, predicate=f"id in ({some})")
        case "merge":
            more = pa.table({"id": pa.array(there[:2], pa.int64()), "p": pa.array([9] * len(there[:2]), pa.int32())})
            merge = table.merge(pa.concat_tables([rows, more]), "s.id = t.id", source_alias="s", target_alias="t")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        case "compact":
            table.optimize.compact()
        case _:
            kept = table.to_pyarrow_table().slice(1)
            write_deltalake(lake, kept, mode="overwrite")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds(0, 1))
def test_whatever_is_done_to_it(home, tmp_path, seed):
    """By key and by counting, what is shown is what the source holds. One reads change data, the other one files.

    Every second seed has them the other way round; changes by key from files, and counted ones from change data, have
    tests above.
    """
    dice, lake = random.Random(f"follow {seed}"), str(tmp_path / "lake")
    first = pa.table({"id": [1, 2, 3, 4], "p": pa.array([0, 0, 1, 1], pa.int32())})
    write_deltalake(lake, first, configuration={"delta.enableChangeDataFeed": "true"})
    feeds = ("auto", "off") if seed % 2 == 0 else ("off", "auto")
    tables = {"keyed": " PRIMARY KEY", "counted": ""}
    for (name, key), feed in zip(tables.items(), feeds, strict=True):
        create(home, tmp_path, key, name, mode="snapshot_and_follow", change_feed=feed)
    for steps in ((), dice.sample(STEPS, len(STEPS))):
        for step in steps:
            walk(dice, lake, step)
        wanted = sorted((row["id"], row["p"]) for row in DeltaTable(lake).to_pyarrow_table().to_pylist())
        for name in tables:
            assert read(home, table=name) == wanted, (name, steps)
