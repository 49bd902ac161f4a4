"""Every wrong input of docs/errors.md, run as it stands there: exit code, parts of the message, nothing changed."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.kafka.topics import create_topic, describe_topic
from tests.docs.pages import ERRORS, ROOT, spans, tables, words

SEGMENT = "orders_1632463351000_1632467070000_0"
SCHEMA = "data/orders/orders_schema.json"
REALTIME, OFFLINE = "data/orders/orders_table.json", "data/orders/orders_offline_table.json"

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@dataclass(frozen=True)
class Row:
    """One row of the page's tables."""

    wrong: str
    command: str
    code: int
    says: tuple[str, ...]

    def args(self, place: Place) -> tuple[dict[str, str], list[str]]:
        """Variables and words of the command, in the home of the tests and with their broker."""
        variables, args = words(self.command)
        home = [] if "--home" in args else ["--home", str(place.home)]
        return variables, [*(arg.replace("localhost:9092", place.broker) for arg in args), *home]


@dataclass(frozen=True)
class Place:
    """The folder in which the commands are run: the recipes' files, `wrong/`, and the home."""

    folder: Path
    broker: str

    @property
    def home(self) -> Path:
        return self.folder / ".hybrid"

    def hybrid(self, *args: str, code: int = 0) -> None:
        """Runs a command that is right."""
        with contextlib.chdir(self.folder):
            assert run([*args, "--home", str(self.home)]) == code, args

    def state(self) -> dict[str, tuple[int, int]]:
        """Every file that a failing command must leave as it is: data, logs of Delta, definitions, the user's files.

        Words for people, locks and the record of runs are not among them.
        """
        files = (path for path in self.folder.rglob("*") if path.is_file() and "logs" not in path.parts)
        return {
            str(path): (path.stat().st_size, path.stat().st_mtime_ns)
            for path in files
            if not path.name.endswith(".lock") and not path.name.startswith("catalog.db")
        }


ROWS = [
    Row(row[0], spans(row[1])[0], int(row[2]), tuple(spans(row[3])))
    for table in tables(ERRORS)
    if table.headings[1:2] == ("Wrong inputs",) and table.names[1] == "command"
    for row in table.rows
]


@pytest.fixture(scope="module")
def place(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("wrong"), broker)
    for name in ("data", "job_specs"):
        shutil.copytree(ROOT / name, place.folder / name)
    write_wrong_files(place.folder / "wrong")
    prepare_tables(place)
    with busy_half(place.home / "warehouse" / "busy" / "REALTIME.lock"):
        yield place


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.wrong)
def test_wrong_input(
    row: Row, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variables, args = row.args(place)
    monkeypatch.chdir(place.folder)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))  # nothing is piped
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = place.state()
    capsys.readouterr()
    code, out, err = run_apart(args) if "JAVA_HOME" in variables else (run(args), *capsys.readouterr())
    said = err.replace(place.broker, "localhost:9092")
    assert (code, out) == (row.code, ""), said
    position = said.find("error: ")
    for part in row.says:
        found = said.find(part, max(position, 0))
        assert found >= 0, f"{part!r} is not said (in this order) in:\n{said}"
        position = found
    assert "Unexpected" not in said and "Traceback" not in said
    assert place.state() == before


def run_apart(args: list[str]) -> tuple[int, str, str]:
    """A command in a process of its own: this one has a JVM already."""
    command = [sys.executable, "-c", "from hybrid.cli.main import main; main()", *args]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def test_rows_are_many_and_no_command_stands_twice() -> None:
    assert len(ROWS) > 60
    assert len({row.command for row in ROWS}) == len(ROWS)
    assert all(row.says and row.code in {1, 2, 4} for row in ROWS)


# What the rows need


def prepare_tables(place: Place) -> None:
    for name in ("orders", "busy", "expired", "recreated"):
        create_topic(place.broker, f"wrong-{name}")
    create(place, "orders", OFFLINE)
    for name in ("busy", "expired", "recreated", "missing"):
        create(place, name)
    place.hybrid(
        *("table", "create", "--schema", SCHEMA, "--config", OFFLINE, "--set", "/tableName=archive"),
    )
    for name in ("orders", "busy", "expired"):
        place.hybrid("kafka", "produce", f"wrong-{name}", "data/orders/events.jsonl", "--kafka", place.broker)
    forget_first_messages(place.broker, "wrong-expired", 3)
    recreate(place.broker, "wrong-recreated")
    place.hybrid("ingest", "orders", "--until-caught-up")
    place.hybrid("move", "orders")


def create(place: Place, name: str, *more_configs: str) -> None:
    configs = [word for config in (REALTIME, *more_configs) for word in ("--config", config)]
    sets = ("--set", f"/tableName={name}", "--set", f"stream.kafka.topic.name=wrong-{name}")
    place.hybrid("table", "create", "--schema", SCHEMA, *configs, *sets, "--kafka", place.broker)


def forget_first_messages(broker: str, topic: str, count: int) -> None:
    from kafka import TopicPartition
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.delete_records({TopicPartition(topic, 0): count})
    admin.close()


def recreate(broker: str, topic: str) -> None:
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.delete_topics([topic])
    admin.close()
    deadline = time.monotonic() + 20
    while describe_topic(broker, topic) is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    create_topic(broker, topic)


@contextlib.contextmanager
def busy_half(lock: Path) -> Iterator[None]:
    """Another process holds a half."""
    code = (
        "import sys, pathlib; from hybrid.lake.lock import half_lock\n"
        "with half_lock(pathlib.Path(sys.argv[1]), jvm_pid=None, timeout_s=1, waiting=print):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        try:
            yield
        finally:
            other.communicate()


def write_wrong_files(folder: Path) -> None:
    schema = json.loads((ROOT / SCHEMA).read_text(encoding="utf-8"))
    good = [json.loads(line) for line in (ROOT / "data/orders/events.jsonl").read_text(encoding="utf-8").splitlines()]
    dimension, metric, time = (schema[f"{kind}FieldSpecs"][0] for kind in ("dimension", "metric", "dateTime"))

    def changed(key: str, field: dict[str, object]) -> str:
        return json.dumps({**schema, key: [field, *schema[key][1:]]})

    def rows(*changes: dict[str, object]) -> str:
        return "".join(json.dumps({**row, **change}) + "\n" for row, change in zip(good, changes, strict=False))

    def job(table: str, data_format: str = "json") -> str:
        job = {"jobType": "SegmentCreation", "inputDirURI": ".", "recordReaderSpec": {"dataFormat": data_format}}
        names = {"type": "fixed", "configs": {"segment.name": SEGMENT}}
        return json.dumps({**job, "tableSpec": {"tableName": table}, "segmentNameGeneratorSpec": names})

    header = "order_id,customer_id,order_status,amount,ts\n"
    files = {
        "home/hybrid.toml": "kafka = localhost\n",
        "broken.json": '{\n  "schemaName": "orders"\n  "dimensionFieldSpecs": []\n}\n',
        "twice.json": '{\n  "schemaName": "orders",\n  "dimensionFieldSpecs": [{"name": "id",\n    "dataType": "INT",\n'
        '    "dataType": "LONG"}]\n}\n',
        "no_time.json": json.dumps({key: value for key, value in schema.items() if key != "dateTimeFieldSpecs"}),
        "integer.json": changed("dimensionFieldSpecs", {**dimension, "dataType": "INTEGER"}),
        "reserved.json": changed("dimensionFieldSpecs", {**dimension, "name": "_hy_id"}),
        "format.json": changed("dateTimeFieldSpecs", {**time, "format": "1:MILLIS:EPOCH"}),
        "whole.json": changed("metricFieldSpecs", {**metric, "dataType": "LONG"}),
        "broken.yml": "jobType: SegmentCreation\ninputDirURI: [\n",
        "other_table.yml": job("ordrs"),
        "no_offline.yml": job("expired"),
        "parquet.yml": job("orders", "parquet"),
        "csv.yml": job("orders", "csv"),
        "parquet/orders.parquet": "PAR1 this was a Parquet file once",
        "csv/orders.csv": header + "1,101,OPEN,1.5,1632463351000\n2,102,OPEN,1,5,1632463351001\n",
        "column/orders.json": rows({}, {"amonut": 1.5}),
        "value/orders.json": rows({}, {}, {"amount": "a lot"}),
        "time/orders.json": rows({"ts": None}),
        "json/orders.json": rows({}) + '{"order_id": 2,\n',
        "past/orders.json": rows({"ts": good[10]["ts"]}),
        "empty/orders.json": "",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    java = folder / "java8" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
