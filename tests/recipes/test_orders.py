"""The orders recipe by the command line: the listed names, rows and sums, and nothing else."""

import re

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FIRST = "orders_1632463351000_1632467070000_0"
SECOND = "orders_1632667070000_1632667170000_0"
THIRD = "orders_1632677270000_1632677270699_0"
JOB = (
    "job",
    "run",
    "job_specs/orders/job-spec.yml",
    "--input",
    "data/orders/corrected",
    "--var",
    f"segmentName={FIRST}",
)
TOTALS = "select count(*), sum(amount) from orders"
EVERYTHING = "select * from orders order by order_id, ts limit 100"
CORRECTED = [15.948, 251.22, 239.22, 3.888, 11.724, 66.624, 63.048]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


def totals(home):
    (row,) = home.rows(TOTALS)
    return row["count(*)"], row["sum(amount)"]


def about(count, amount):
    return count, pytest.approx(amount, rel=1e-6)


class Revisions:
    """What the table held at some revisions, to be asked again later."""

    def __init__(self, home):
        self._home = home
        self._seen = []

    def note(self):
        revision = self._home.run("query", "--explain", EVERYTHING)["revision"]
        rows = self._home.rows(EVERYTHING)
        assert self._home.run("query", EVERYTHING, "--as-of", revision) == rows, "at once, too"
        self._seen.append((revision, rows))

    def check(self):
        assert len({str(rows) for _, rows in self._seen}) > 1
        for revision, rows in self._seen:
            assert self._home.run("query", EVERYTHING, "--as-of", revision) == rows
            assert self._home.rows(f"SET asOf = '{revision}'; {EVERYTHING}") == rows
            for engine in ("duckdb", "polars"):
                self._check_view(engine, revision, rows)
        self._check_view("spark", *self._seen[-1])

    def _check_view(self, engine, revision, rows):
        made = self._home.run("table", "view", "orders", "--for", engine, "--as-of", revision)
        assert (made["table"], made["for"], made["revision"]) == ("orders", engine, revision)
        space = {"__name__": "view"}
        exec(made["code"], space)
        view = space["view"]
        table = view.toArrow() if engine == "spark" else view.pl() if engine == "duckdb" else view.collect()
        found = table.to_pylist() if engine == "spark" else table.to_dicts()
        shown = [{**row, "amount": pytest.approx(row["amount"], rel=1e-6)} for row in rows]
        assert sorted(found, key=lambda row: (row["order_id"], row["ts"])) == shown


def test_orders_end_to_end(make_recipe):
    home = make_recipe("orders")
    assert totals(home) == about(14, 780.08), "from Kafka alone"
    then = Revisions(home)
    then.note()
    assert home.run("boundary", "show", "orders")["time_ms"] is None

    assert home.run("ingest", "orders", "--until-caught-up")["rows"] == 14
    segments = {one["name"]: one for one in home.run("segment", "list", "orders")}
    assert [re.sub(r"__\d{8}T\d{4}Z$", "", name) for name in segments] == [
        "orders__0__0",
        "orders__0__1",
        "orders__0__2",
    ]
    assert [one["state"] for one in segments.values()] == ["SEALED", "SEALED", "CONSUMING"]
    by_segment = home.rows("select $segmentName, min(order_id), max(order_id) from orders group by $segmentName")
    assert sorted((row["min(order_id)"], row["max(order_id)"]) for row in by_segment) == [(1, 5), (6, 10), (11, 14)]
    assert totals(home) == about(14, 780.08)
    assert home.names("OFFLINE") == []

    report = home.run("move", "orders")
    assert report["segments"] == [FIRST] and report["rows_read"] == 7
    assert totals(home) == about(14, 780.08)
    shown = home.rows("select $segmentName, * from orders ORDER BY order_id limit 20")
    assert list(shown[0]) == ["$segmentName", "amount", "customer_id", "order_id", "order_status", "ts"]
    assert [row["$segmentName"] == FIRST for row in shown] == [True] * 7 + [False] * 7

    then.note()
    dry = home.run(*JOB, "--dry-run")
    assert (dry["added"], dry["removed"], dry["version"]) == (7, 7, None)
    assert totals(home) == about(14, 780.08)
    home.run(*JOB)
    assert [row["amount"] for row in home.rows("select * from orders order by order_id limit 7")] == CORRECTED
    assert totals(home) == about(14, 888.692)
    assert home.names("OFFLINE") == [FIRST]
    assert home.run(*JOB)["version"] is None, "twice changes nothing"
    assert "Nothing to change" in home.messages

    (entry,) = home.run("replacement", "list", "orders")
    home.run("replacement", "revert", "orders", entry["id"], "--yes")
    assert totals(home) == about(14, 780.08)
    newest = home.run("replacement", "list", "orders")[0]
    home.run("replacement", "revert", "orders", newest["id"], "--yes")
    assert totals(home) == about(14, 888.692), "a revert can be reverted"

    assert home.run("move", "orders")["segments"] == [SECOND]
    assert home.run("move", "orders")["segments"] == [THIRD]
    assert home.run("move", "orders")["segments"] == []
    assert "every ingested row is in the offline half already" in home.messages
    assert home.names("OFFLINE") == [FIRST, SECOND, THIRD]
    assert totals(home) == about(14, 888.692)
    then.note()
    then.check()


def test_orders_in_boundary_mode_pinot(make_recipe):
    home = make_recipe("orders", ["/metadata/customConfigs/hybrid.boundary=pinot"])
    home.run("ingest", "orders", "--until-caught-up")
    home.run("move", "orders")
    assert totals(home) == about(14, 780.08)
    shown = home.run("boundary", "show", "orders")
    assert (shown["mode"], shown["time_value"], shown["override"]) == ("pinot", "1632463470000", None)
    home.run(*JOB)
    assert totals(home) == about(14, 864.478)
    assert home.run("boundary", "set", "orders")["committed"]
    assert home.run("boundary", "show", "orders")["time_value"] == "1632467070000"
    assert totals(home) == about(14, 888.692)
    assert not home.run("boundary", "set", "orders", "--at", "1632467070001")["committed"], "it is there already"
    assert home.run("boundary", "clear", "orders")["committed"]
    assert totals(home) == about(14, 864.478)
    home.run("boundary", "set", "orders", "--at", "2021-09-24T06:04:30.001Z")
    assert totals(home) == about(14, 864.478)
    home.run("boundary", "set", "orders", "--at", "2021-09-24T08:04:31+01:00", code=4)
    assert "covers times before 2021-09-24T07:04:30.001Z" in home.messages
    home.run("move", "orders", "--max-buckets", "all")
    assert totals(home) == about(14, 864.478), "a move keeps what was set"
    home.run("boundary", "clear", "orders")
    assert totals(home) == about(14, 888.692), "the boundary has passed the corrected rows"
    assert [run["state"] for run in home.run("task", "list") if run["type"] == "boundary"] == [
        *("DONE", "FAILED", "DONE", "DONE", "NOTHING", "DONE")
    ]


def test_all_buckets_in_one_run_and_moves_before_ingestion(make_recipe):
    home = make_recipe("orders")
    home.run("move", "orders")
    assert "no realtime rows yet" in home.messages
    home.run("ingest", "orders", "--until-caught-up")
    assert home.run("move", "orders", "--max-buckets", "all")["segments"] == [FIRST, SECOND, THIRD]
    assert totals(home) == about(14, 780.08)


def test_orders_upsert_end_to_end(make_recipe, tmp_path):
    home = make_recipe("orders_upsert")
    latest = home.rows("select order_id, order_status from orders order by order_id limit 20")
    assert len(latest) == 9
    home.run("ingest", "orders", "--until-caught-up")
    assert home.rows("select order_id, order_status from orders order by order_id limit 20") == latest
    report = home.run("move", "orders")
    assert (report["segments"], report["rows_read"], report["rows_written"]) == ([FIRST], 7, 4)
    offline = home.rows("select order_id, order_status from orders_OFFLINE order by order_id limit 20")
    assert offline == latest[:4]
    assert home.rows("select order_id, order_status from orders order by order_id limit 20") == latest

    job = [word.replace("orders/", "orders_upsert/") for word in JOB]
    home.run(*job)
    after = home.rows("select order_id, order_status from orders order by order_id limit 20")
    assert len(after) == 9
    assert (after[0]["order_status"], after[3]["order_status"]) == ("COMPLETED", "CANCELLED")
    assert len(home.rows("select * from orders_OFFLINE limit 20")) == 4
    assert home.run(*job)["version"] is None

    event = tmp_path / "later.jsonl"
    event.write_text('{"order_id":1,"customer_id":104,"order_status":"RETURNED","amount":1.5,"ts":"1632681000000"}\n')
    home.run("kafka", "produce", home.topic, str(event), "--kafka", home.broker)
    for _ in range(2):  # in Kafka, then committed
        later = home.rows("select order_id, order_status from orders order by order_id limit 20")
        assert len(later) == 9 and later[0]["order_status"] == "RETURNED"
        home.run("ingest", "orders", "--until-caught-up")


def test_orders_upsert_with_concat_keeps_all_versions_offline(make_recipe):
    task = "/task/taskTypeConfigsMap/RealtimeToOfflineSegmentsTask/mergeType=concat"
    home = make_recipe("orders_upsert", [task])
    home.run("ingest", "orders", "--until-caught-up")
    assert home.run("move", "orders")["rows_written"] == 7
    assert len(home.rows("select * from orders_OFFLINE limit 20")) == 7
    assert len(home.rows("select * from orders limit 20")) == 9
