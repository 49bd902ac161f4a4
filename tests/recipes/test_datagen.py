"""`datagen`: made-up history in commits that a killed load goes on from, and rows that come in the course of time."""

import json

import pytest

from tests.recipes.conftest import RecipeHome

pytestmark = pytest.mark.spark

DDL = """CREATE TABLE trades (id BIGINT NOT NULL, symbol VARCHAR, price DECIMAL(10,2), ts TIMESTAMP NOT NULL
  LATENESS INTERVAL 1 HOUR) WITH ('connectors' = '[{"name": "made", MORE "transport": {"name": "datagen",
  "config": CONFIG}}]');"""
FIELDS = {
    "symbol": {"values": ["AAPL", "GOOGL", "SPY"], "strategy": "uniform"},
    "price": {"strategy": "uniform", "range": [100, 200]},
    "ts": {"range": ["2024-03-01T00:00:00Z", "2024-04-01T00:00:00Z"], "scale": 3_600_000},
}
PLAN = {"limit": 60, "fields": FIELDS}
QUERY = "select id, symbol, price, ts from trades order by id limit 1000"


@pytest.fixture
def make(tmp_path, capsys):
    def made(plan, more="", **config):
        home = RecipeHome(tmp_path / f"home{len(list(tmp_path.iterdir()))}", capsys)
        text = DDL.replace("CONFIG", json.dumps({"plan": plan, **config})).replace("MORE", more)
        (tmp_path / "trades.sql").write_text(text)
        home.run("table", "create", "-f", str(tmp_path / "trades.sql"))
        return home

    return made


def load(home):
    home.run("ingest", "trades", "--until-caught-up")
    return home.rows(QUERY)


def connector(home):
    return home.run("connector", "list", "trades")[0]


def test_a_killed_load_goes_on_and_ends_with_the_same_rows(make, dies):
    whole = load(make([PLAN], seed=7))
    assert [row["id"] for row in whole] == list(range(60)) and len({row["price"] for row in whole}) > 40
    home = make([PLAN], seed=7, more='"max_batch_size": 20,')
    for point in ("history.commit.before@2", "history.commit.after"):
        with dies(point):
            home.run("ingest", "trades", "--until-caught-up")
        assert connector(home)["records"] in (20, 40)
    assert load(home) == whole
    found = connector(home)
    assert (found["state"], found["records"], found["detail"]) == ("COMPLETED", 60, "60 records")
    days = [one["name"] for one in home.run("segment", "list", "trades") if one["half"] == "OFFLINE"]
    assert len(days) >= 3


def test_rows_at_a_rate_come_as_time_goes_by(make):
    home = make([{"limit": 3, "fields": FIELDS}, {"rate": 50, "fields": FIELDS}])
    first = load(home)
    assert len(first) >= 53
    assert connector(home)["state"] == "RUNNING"
    more = load(home)
    assert len(more) > len(first)
    ids = sorted(row["id"] for row in more)
    assert ids == sorted([0, 1, 2, *range(len(more) - 3)]), "each number of each plan once"
    home.run("connector", "pause", "trades")
    assert len(load(home)) == len(load(home))


def test_a_row_that_is_none_stops_it_with_its_place(make):
    home = make([{"limit": 200, "fields": {**FIELDS, "symbol": {"values": ["a"]}, "price": {"scale": 10**6}}}])
    home.run("ingest", "trades", "--until-caught-up")
    assert home.rows("select count(*) n from trades") == [{"n": 200}], "increments stay within the column"
    home = make([{"limit": 5, "fields": {**FIELDS, "price": {"strategy": "uniform", "range": [1, 9], "scale": 10**9}}}])
    home.run("ingest", "trades", "--until-caught-up", code=1)
    assert "plan[0], row 1: Column 'price': " in connector(home)["latest_error"]
