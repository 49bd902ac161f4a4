"""Every command is run once with --json: what it prints has the keys that docs/reference lists, in their order."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.cli.main import run
from tests.docs.pages import REFERENCE_PAGES, ROOT, spans, tables
from tests.docs.test_reference import CODE
from tests.s3_server import COMMAND, s3_server
from tests.watchdog import watched_broker

# The first test waits for all commands.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

ROWS = [
    row for page in REFERENCE_PAGES for one in tables(page) if one.names == ("command", "prints", "keys")
    for row in one.rows
]  # fmt: skip
FORMS = {spans(row[0])[0]: row[1] for row in ROWS}
KEYS = {spans(row[0])[0]: spans(row[2]) for row in ROWS}
DATA = ROOT / "data" / "orders"
HAS_S3 = COMMAND is not None
SCHEDULED = ("--set", "/task/taskTypeConfigsMap/RealtimeToOfflineSegmentsTask/schedule=0 0 * * * ?")

DDL = """CREATE TABLE events (id INTEGER NOT NULL) WITH ('connectors' = '[{"labels": ["live"], "transport": {"name":
  "kafka_input", "config": {"topic": "events", "start_from": "earliest"}}, "format": {"name": "json"}}]');"""


@pytest.fixture(scope="module")
def printed(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What each documented command printed, parsed; the recipe is played on the way."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "bad.txt").write_text("no JSON\n", encoding="utf-8")
    found: dict[str, Any] = {}

    def play(name: str, *args: str, code: int = 0, home: str = "home") -> Any:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert run([*name.split(), *args, "--json", "--home", str(folder / home)]) == code, name
        found[name] = json.loads(out.getvalue()) if out.getvalue() else None
        return found[name]

    play_tables(play, broker, folder)
    play_work(play)
    watched_broker(folder / "home")
    play_machine(play)
    play_backup(play, str(folder / "backups"))
    if HAS_S3:
        play_warehouse(play, folder)
    with contextlib.closing(hybrid.connect(folder / "home")) as home:
        begun = home.erasures.begin({"orders": "order_id = 4"})
    play("erase discard", begun.id)
    yield found


def play_tables(play: Any, broker: str, folder: Path) -> None:
    configs = ("--config", str(DATA / "orders_table.json"), "--config", str(DATA / "orders_offline_table.json"))
    files = ("--schema", str(DATA / "orders_schema.json"), *configs, "--set", "stream.kafka.topic.name=keys")
    play("kafka topic create", "keys", "--kafka", broker)
    play("kafka topic list", "--kafka", broker)
    play("kafka topic create", "wrong", "--kafka", broker)
    play("kafka topic delete", "wrong", "--yes", "--kafka", broker)
    play("table validate", *files)
    play("table create", *files, "--kafka", broker)
    play("table apply", *files, "--kafka", broker, "--set", "bufferTimePeriod=2m", *SCHEDULED)
    topic = ("--set", "stream.kafka.topic.name=keys")
    admin = ("-schemaFile", str(DATA / "orders_schema.json"), "-tableConfigFile", str(DATA / "orders_table.json"))
    play("admin AddTable", *admin, "-update", "-exec", "--kafka", broker, *SCHEDULED, *topic)
    play("table list")
    play("table init", str(DATA / "events.jsonl"))
    play("table export", "orders")
    play("table show", "orders")
    ddl = folder / "events.sql"
    ddl.write_text(DDL, encoding="utf-8")
    assert run(["table", "create", "-f", str(ddl), "--kafka", broker, "--home", str(folder / "home")]) == 0
    flow = folder / "flow.sql"
    (folder / "one.json").write_text('{"id": 1}', encoding="utf-8")
    query = f"SELECT * FROM STREAM read_files('{folder}/one.json', format => 'json')"
    flow.write_text(f"CREATE STREAMING TABLE files AS {query}", encoding="utf-8")
    play("flow run", str(flow))
    play("flow list")
    play("kafka produce", "keys", str(DATA / "events.jsonl"), "--kafka", broker)
    play("kafka produce", "keys", str(folder / "bad.txt"), "--kafka", broker)


def play_work(play: Any) -> None:
    play("ingest", "orders", "--until-caught-up")
    play("move", "orders")
    play("task run", "orders", "RealtimeToOfflineSegmentsTask", "--dry-run")
    segment = play("segment list", "orders")[0]["name"]
    play("segment show", "orders", segment)
    play("boundary show", "orders")
    play("boundary set", "orders", "--at", "1632463470000")
    play("boundary clear", "orders")
    play("rejected list", "orders")
    play("rejected replay", "orders")
    play("connector reset", "orders", "--to", "earliest", "--dry-run")
    for name in ("connector list", "connector pause", "connector start", "connector resume"):
        play(name, "events")
    variables = ("--var", f"segmentName={segment}", "--input", str(DATA / "corrected"))
    play("job run", str(ROOT / "job_specs/orders/job-spec.yml"), *variables)
    spec = ("-jobSpecFile", str(ROOT / "job_specs/orders/job-spec.yml"), "--input", str(DATA / "corrected"))
    play("admin LaunchDataIngestionJob", *spec, "-values", f"segmentName={segment}")
    replacement = play("replacement list", "orders")[0]["id"]
    play("replacement show", "orders", replacement)
    play("replacement revert", "orders", replacement, "--yes")
    play_backfill(play)
    play("query", "select count(*), count(*) from orders")
    play("query list")
    play("query --explain", "select * from orders")
    play("table view", "orders", "--for", "duckdb")
    play("task show", play("task list")[0]["id"])
    play("task schedule")
    play("segment seal", "orders")
    play("status")
    play("logs")
    play("doctor")


def play_backfill(play: Any) -> None:
    window = ("--from", "1632463351000", "--to", "1632470400000")
    for doubling in range(2):  # the second is paused and cancelled
        plan = play("backfill plan", "orders", *window, "--update", "amount = amount * 2")["id"]
        if not doubling:
            play("backfill run", plan, "--yes")
            play("backfill resume", plan)
            play("backfill revert", plan, "--yes")
    play("purge", "orders", "--where", "order_id = 999", "--dry-run")
    play("backfill pause", plan)
    play("backfill list", "orders")
    play("backfill status", plan)
    play("backfill cancel", plan)
    erasure = play("erase run", "orders", "--where", "order_id = 3", "--yes")["id"]
    play("erase resume", erasure)
    play("erase show", erasure)
    play("erase list")


def play_machine(play: Any) -> None:
    play("setup")
    play("config show")
    play("access add", "ada", "--right", "read")
    play("access list")
    play("access remove", "ada")
    play("kafka status", code=3)
    play("kafka start", "--port", "0")
    play("kafka stop")
    play("table drop", "orders")
    play("table list --dropped")
    play("table undrop", "orders")


def play_backup(play: Any, directory: str) -> None:
    backup = play("backup create", directory)["id"]
    play("backup list", directory)
    play("backup verify", directory)
    play("backup restore", directory, home="restored")
    play("backup delete", directory, backup, "--yes")


def play_warehouse(play: Any, folder: Path) -> None:
    """The restored home goes to a store, and another one brings it."""
    with s3_server(folder / "s3" / "store") as server, pytest.MonkeyPatch.context() as patch:
        server.create_bucket("bucket")
        for name, value in {**server.environment, "HYBRID_WAREHOUSE": "s3://bucket/keys"}.items():
            patch.setenv(name, value)
        play("warehouse push", home="restored")
        play("warehouse show", home="restored")
        play("warehouse sync", home="restored")
        play("warehouse pull", home="pulled")


def test_every_command_is_listed() -> None:
    forms = {("query", "--explain"), ("table", "list", "--dropped")}
    assert {tuple(name.split()) for name in FORMS} == {*CODE, *forms} - {
        ("demo",), ("serve",), ("shell",), ("completion",)
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in FORMS if name != "query"])
def test_keys(name: str, printed: dict[str, Any]) -> None:
    if name.startswith("warehouse ") and not HAS_S3:
        pytest.skip("versitygw is not there")
    result = printed[name]
    assert isinstance(result, list if FORMS[name] == "list" else dict)
    keys = KEYS[name] if len(KEYS[name]) > 1 else KEYS[KEYS[name][0]]
    for row in result if isinstance(result, list) else [result]:
        assert list(row) == keys


def test_lists_have_rows(printed: dict[str, Any]) -> None:
    assert [name for name, form in FORMS.items() if form == "list" and not printed[name]] == []


def test_a_certificate_names_the_topic(printed: dict[str, Any]) -> None:
    """The only erasure here with a broker that answers."""
    done = printed["erase run"]
    assert done["state"] == "DONE" and printed["erase resume"] == printed["erase show"] == done
    (message,) = done["tables"][0]["messages"]
    assert message["topic"] == "keys" and message["first"] == message["last"]
    kafka = next(place for place in done["outside"] if "Kafka holds" in place["detail"])
    assert "Kafka holds keys/0 from 0 to 15" in kafka["detail"] and "broker" in kafka["who"]


def test_a_query_prints_its_columns(printed: dict[str, Any]) -> None:
    assert printed["query"] == [{"count(*)": 13, "count(*)_2": 13}], "14 events, one of them erased"
