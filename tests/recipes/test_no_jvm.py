"""What only reads, or changes a state alone, starts no JVM, answers without Kafka, and starts quickly."""

import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

import hybrid
from hybrid.catalog.definitions import Definitions
from hybrid.cli.main import run
from hybrid.config.table_config import Half
from hybrid.kafka.topics import create_topic
from hybrid.lake.log import open_half
from tests.recipes.conftest import RecipeHome, commands_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

READS = [
    ("query", "select count(*), sum(amount) from orders"),
    ("query", "select * from orders", "--explain"),
    ("segment", "list", "orders"),
    ("boundary", "show", "orders"),
    ("status",),
    ("task", "list"),
    ("replacement", "list", "orders"),
    ("rejected", "list", "orders"),
    ("table", "show", "orders"),
]

# The same table and the same rows, read by hand with the two libraries alone.
BARE = """
import sys, duckdb, deltalake
files = [f for half in ("OFFLINE", "REALTIME") for f in deltalake.DeltaTable(sys.argv[1] + "/" + half).file_uris()]
print(duckdb.execute("select count(*), sum(amount) from read_parquet($1)", [files]).fetchall())
"""


# Several commands in one process, which says how each ended and what it printed.
COMMANDS = """
import contextlib, io, json, sys
from hybrid.cli.main import run
ended = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        code = run(words)
    ended.append([words, code, said.getvalue()])
print(json.dumps(ended))
"""


@pytest.fixture(scope="module")
def template(broker, tmp_path_factory):
    """The recipe's home after a move: made once, copied for each test."""
    folder, topic = tmp_path_factory.mktemp("no_jvm") / "home", f"t-{uuid.uuid4().hex[:12]}"
    create_topic(broker, topic)
    ingested = [["ingest", "orders", "--until-caught-up"], ["move", "orders"]]
    for words in [*commands_of("orders", broker, topic), *ingested]:
        assert run(["--home", str(folder), *words]) == 0, words
    return folder


@pytest.fixture
def home(template, tmp_path, capsys):
    shutil.copytree(template, tmp_path / "home")
    return RecipeHome(tmp_path / "home", capsys)


def command(home, *words):
    started = time.monotonic()
    process = [sys.executable, "-m", "hybrid.cli", "--home", str(home.home), *words]
    done = subprocess.run(process, capture_output=True, text=True, check=False)
    return done, time.monotonic() - started


@pytest.fixture
def without_java(home, tmp_path):
    """Runs commands in a process of their own, in which whatever starts Java is found out."""
    folder = tmp_path / "trap"
    folder.mkdir()
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ntouch {folder}/started\nexit 1\n")
    java.chmod(0o755)
    places = {"PATH": f"{folder}:{os.environ['PATH']}", "JAVA_HOME": str(folder / "nowhere")}

    def succeed(*commands):
        words = json.dumps([["--home", str(home.home), *one] for one in commands])
        process = [sys.executable, "-c", COMMANDS, words]
        done = subprocess.run(process, capture_output=True, text=True, env={**os.environ, **places}, check=True)
        ended = json.loads(done.stdout)
        assert len(ended) == len(commands)
        assert [one for one in ended if one[1] != 0] == []
        assert not (folder / "started").exists()

    return succeed


def test_reads_start_no_jvm(home, without_java):
    without_java(*READS, ("segment", "show", "orders", home.names("REALTIME")[0]))


def _versions(home):
    return [open_half(home.home / "warehouse" / "orders" / half.value).version for half in Half]


def test_changes_of_the_state_alone_start_no_jvm(home, without_java):
    before = _versions(home)
    changes = [
        ("boundary", "set", "orders", "--at", "2021-09-24T06:04:30.001Z"),
        ("boundary", "clear", "orders"),
        ("segment", "seal", "orders"),
        ("connector", "reset", "orders", "kafka", "--to", "earliest", "--yes"),
    ]
    without_java(*changes)
    after = _versions(home)
    assert sum(after) - sum(before) == len(changes)


def test_without_kafka_the_committed_rows_answer_and_a_warning_says_so(home):
    record = home.home / "catalog.db"
    assert record.exists()
    definitions = Definitions(home.home / "warehouse")
    known = definitions.find("orders")
    definitions.replace(replace(known, brokers="127.0.0.1:1"))  # as if its brokers were gone: `apply` would ask them
    done, _ = command(home, "query", "select count(*) from orders", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == [{"count(*)": 14}]
    assert "127.0.0.1:1" in done.stderr and "warning" in done.stderr


@pytest.mark.alone
def test_a_query_takes_at_most_four_times_the_bare_libraries(home):
    """Whole processes, in turn, medians: how much of the wall time is ours and not the engine's."""
    warehouse = home.home / "warehouse" / "orders"
    # As an installed package is: without this a run compiles all modules where Python may write no bytecode.
    compileall.compile_dir(Path(hybrid.__file__).parent, quiet=1)
    bare, ours = [], []
    for _ in range(7):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", BARE, str(warehouse)], check=True, capture_output=True)
        bare.append(time.monotonic() - started)
        done, seconds = command(home, "query", "select count(*), sum(amount) from orders")
        assert done.returncode == 0
        ours.append(seconds)
    ratio = statistics.median(ours) / statistics.median(bare)
    assert ratio <= 4, f"{ratio:.1f} times"
    assert Path(warehouse).exists()
