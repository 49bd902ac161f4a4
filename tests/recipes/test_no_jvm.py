"""What only reads, or changes a state alone, starts no JVM, answers without Kafka, and starts quickly."""

import compileall
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import hybrid
from hybrid.catalog.definitions import Definitions
from hybrid.config.table_config import Half
from hybrid.lake.log import open_half

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


@pytest.fixture
def home(make_recipe):
    home = make_recipe("orders")
    home.run("ingest", "orders", "--until-caught-up")
    home.run("move", "orders")
    return home


def command(home, *words, env=None):
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "hybrid.cli", "--home", str(home.home), *words],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        check=False,
    )
    return done, time.monotonic() - started


@pytest.fixture
def trap(tmp_path):
    """Settings with which a command that starts Java leaves a file, which is given too."""
    folder = tmp_path / "trap"
    folder.mkdir()
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ntouch {folder}/started\nexit 1\n")
    java.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "JAVA_HOME": str(folder / "nowhere")}, folder / "started"


def test_reads_start_no_jvm(home, trap):
    env, started = trap
    segment = home.names("REALTIME")[0]
    for words in [*READS, ("segment", "show", "orders", segment)]:
        done, _ = command(home, *words, env=env)
        assert done.returncode == 0, f"{words}: {done.stderr}"
    assert not started.exists()


def _versions(home):
    return [open_half(home.home / "warehouse" / "orders" / half.value).version for half in Half]


def test_changes_of_the_state_alone_start_no_jvm(home, trap):
    env, started = trap
    before = _versions(home)
    changes = [
        ("boundary", "set", "orders", "--at", "2021-09-24T06:04:30.001Z"),
        ("boundary", "clear", "orders"),
        ("segment", "seal", "orders"),
        ("connector", "reset", "orders", "kafka", "--to", "earliest", "--yes"),
    ]
    for words in changes:
        done, _ = command(home, *words, env=env)
        assert done.returncode == 0, f"{words}: {done.stderr}"
    assert not started.exists()
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
    for _ in range(15):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", BARE, str(warehouse)], check=True, capture_output=True)
        bare.append(time.monotonic() - started)
        done, seconds = command(home, "query", "select count(*), sum(amount) from orders")
        assert done.returncode == 0
        ours.append(seconds)
    ratio = statistics.median(ours) / statistics.median(bare)
    assert ratio <= 4, f"{ratio:.1f} times"
    assert Path(warehouse).exists()
