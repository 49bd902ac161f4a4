"""What is acknowledged is there after a power failure: a model drops everything that was not synced (ADR 24)."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.lake.create import create_half
from hybrid.lake.log import open_half
from hybrid.lake.log_sync import TORN, set_torn_aside, sync_log
from hybrid.replace.purge.log_statistics import forget_values, logged_files
from hybrid.runtime import durable
from hybrid.table.state import Act, OfflineState
from tests.lake.power_failure import compile_shim
from tests.replace.tables import ROOT, recipe_spec
from tests.soak.harness import JVM_OPTIONS

LATER_MS = 1 << 60
ORDERS = ROOT / "data" / "orders"


def run_worker(
    tmp_path: Path, commands: Sequence[object], worker: str = "tests.lake.power_worker", **settings: str
) -> list[dict[str, object]]:
    shim = compile_shim(tmp_path)
    if shim is None:
        pytest.skip("no C compiler (cc) to build the shim that records fsync")
    env = {
        **os.environ,
        **JVM_OPTIONS,
        "HYBRID_DURABLE": "true",
        **settings,
        "LD_PRELOAD": str(shim),
        "SYNC_RECORD": str(tmp_path / "syncs"),
    }
    done = subprocess.run(
        [sys.executable, "-m", worker, str(tmp_path / "home"), json.dumps(commands)],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def create_words(topic: str, broker: str) -> tuple[str, ...]:
    return (
        *("table", "create", "--schema", str(ORDERS / "orders_schema.json"), "--kafka", broker),
        *("--config", str(ORDERS / "orders_table.json"), "--config", str(ORDERS / "orders_offline_table.json")),
        *("--set", f"stream.kafka.topic.name={topic}"),
    )


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rows_offsets_and_boundary_outlast_a_power_failure_after_each_commit(
    tmp_path: Path, broker: str, topic: str
) -> None:
    job = (
        *("job", "run", "job_specs/orders/job-spec.yml", "--input", "data/orders/corrected"),
        *("--var", "segmentName=orders_1632463351000_1632467070000_0"),
    )
    stretch = ("orders", "--from", "2021-09-24", "--to", "2021-09-25", "--reason", "erasure")
    commands = [
        create_words(topic, broker),
        ("kafka", "produce", topic, str(ORDERS / "events.jsonl"), "--kafka", broker),
        ("ingest", "orders", "--until-caught-up"),
        ("move", "orders"),
        (*job, "--yes"),
        ("replacement", "revert", "orders", "{made}", "--yes"),
        ("backfill", "plan", *stretch, "--delete", "--where", "customer_id = 103"),
        ("backfill", "run", "{made}", "--yes"),
        ("purge", "orders", "--where", "customer_id = 103", "--yes"),
        ("access", "add", "grafana", "--right", "read"),
    ]
    found = run_worker(tmp_path, commands)
    assert [one["command"] for one in found if not one["same"] or one["lost"]] == [], found
    assert len(found) == len(commands) - 1
    rows = [one["rows"] for one in found]
    assert rows[1]["REALTIME"] == 14 and rows[2]["OFFLINE"] > 0  # type: ignore[index]
    assert rows[6]["OFFLINE"] < rows[5]["OFFLINE"]  # type: ignore[index]


@pytest.mark.kafka
def test_without_syncs_the_model_loses_a_table_that_was_acknowledged(tmp_path: Path, broker: str, topic: str) -> None:
    (found,) = run_worker(tmp_path, [create_words(topic, broker)], HYBRID_DURABLE="false")
    assert not found["same"] and "warehouse/orders/definition.json" in found["lost"]  # type: ignore[operator]


def lay_half(tmp_path: Path) -> Path:
    path = tmp_path / "warehouse" / "orders" / "OFFLINE"
    path.parent.mkdir(parents=True)
    act = Act("create-0", 0, "create", "2021-11-21T00:00:00.000+00:00")
    create_half(path, recipe_spec("orders"), Half.OFFLINE, OfflineState(act))
    return path


@pytest.mark.parametrize("left", [b"", b"\0" * 900, b'{"commitInfo":{"timest'])
def test_an_entry_that_a_power_failure_cut_short_is_set_aside(tmp_path: Path, left: bytes) -> None:
    path = lay_half(tmp_path)
    entry = path / "_delta_log" / f"{1:020d}.json"
    entry.write_bytes(left)
    (path / "_delta_log" / f".{entry.name}.crc").write_bytes(b"old")
    summary = path / "_delta_log" / f"{1:020d}.crc"
    summary.write_bytes(b"{}")
    aside, other = set_torn_aside(path, booted_ms=LATER_MS)
    assert aside.read_bytes() == left and aside.name.endswith(TORN) and not entry.exists()
    assert other.read_bytes() == b"{}" and not summary.exists()
    assert open_half(path).version == 0
    assert set_torn_aside(path, booted_ms=LATER_MS) == []


def test_the_summary_of_a_version_that_was_lost_whole_is_set_aside(tmp_path: Path) -> None:
    """Delta does not overwrite a version's summary: it would say of the next commit what the lost one did."""
    log = lay_half(tmp_path) / "_delta_log"
    (log / f"{0:020d}.crc").write_bytes(b"{}")
    (log / f"{1:020d}.crc").write_bytes(b"{}")
    assert set_torn_aside(log.parent) == [], "written since the machine started"
    (aside,) = set_torn_aside(log.parent, booted_ms=LATER_MS)
    assert aside.name.startswith(f".{1:020d}.crc.") and (log / f"{0:020d}.crc").exists()


def test_an_entry_that_was_damaged_since_the_machine_started_stays_for_doctor(tmp_path: Path) -> None:
    path = lay_half(tmp_path)
    entry = path / "_delta_log" / f"{1:020d}.json"
    entry.write_bytes(b"{")
    assert set_torn_aside(path) == [] and entry.exists()


def test_a_checkpoint_that_was_cut_short_is_set_aside_and_the_entries_stay(tmp_path: Path) -> None:
    path = lay_half(tmp_path)
    log = path / "_delta_log"
    (log / f"{0:020d}.checkpoint.parquet").write_bytes(b"PAR1" + b"\0" * 100)
    (log / "_last_checkpoint").write_bytes(b"")
    assert {one.name.split(".")[1] for one in set_torn_aside(path, booted_ms=LATER_MS)} == {
        f"{0:020d}",
        "_last_checkpoint",
    }
    assert open_half(path).version == 0


def test_a_purge_takes_what_a_power_failure_cut_short(tmp_path: Path) -> None:
    path = lay_half(tmp_path)
    (path / "_delta_log" / f"{1:020d}.json").write_bytes(b'{"add":{"stats":"ada@example.org')
    (aside,) = set_torn_aside(path, booted_ms=LATER_MS)
    forget_values(open_half(path), set(), logged_files(path))
    assert not aside.exists()


def test_a_foreign_commit_is_stored_with_the_next_one_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durable.configure(tmp_path, True)
    path = lay_half(tmp_path)
    log = path / "_delta_log"
    (path / "_hy_segment=a b").mkdir()
    (path / "_hy_segment=a b" / "x.parquet").touch()
    add = {"path": "_hy_segment=a%20b/x.parquet", "size": 1}
    (log / f"{1:020d}.json").write_text(json.dumps({"commitInfo": {}}) + "\n" + json.dumps({"add": add}))
    own = (log / f"{0:020d}.json").read_text()
    for version in (2, 3):
        (log / f"{version:020d}.json").write_text(own)
    stored: list[str] = []
    monkeypatch.setattr(durable, "sync", lambda path: stored.append(path.name))
    sync_log(path, 2)
    ours = {f"{2:020d}.json", "_delta_log"}
    foreign = {f"{1:020d}.json", "x.parquet", "_hy_segment=a b", "OFFLINE"}
    assert set(stored) == {*ours, *foreign, f"{0:020d}.json"}  # the own one below: its process may have been killed
    stored.clear()
    sync_log(path, 3)
    assert set(stored) == {f"{3:020d}.json", "_delta_log"}


def test_folders_that_cannot_be_synced_are_skipped_and_files_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    durable.configure(tmp_path, True)
    durable.sync(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Invalid argument"):
        durable.sync(tmp_path / "file")


def test_the_switch_syncs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    durable.configure(tmp_path, True)
    durable.write_text(tmp_path / "on", "x")
    assert len(calls) == 2  # the file and its folder
    durable.configure(tmp_path, False)
    durable.write_text(tmp_path / "off", "x")
    assert len(calls) == 2 and (tmp_path / "off").read_text() == "x"
