"""Definitions, halves, states, files, leftovers and streams: each finding provoked, each repair looked at."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from errno import EACCES
from typing import Any

import pytest

from hybrid.catalog.definitions import Definition
from hybrid.config.table_config import Half
from hybrid.doctor.findings import Severity
from hybrid.errors import DataError, NotFoundError, StreamError
from hybrid.jvm.process import Process
from hybrid.kafka.streams import StreamView
from hybrid.lake.log import open_half
from hybrid.operations.tables.creation_lock import creation_lock
from hybrid.progress import Silent
from hybrid.table.boundary import Boundary
from hybrid.table.state import Consuming
from tests.doctor.conftest import KEY, SEGMENT, Kafka, Patient, row
from tests.fake_streams import seen

OLD = 1_600_000_000
STAGER = """
import os, sys
from pathlib import Path
from hybrid.lake.staging import staging_folder
from tests.fake_streams import seen
with staging_folder(Path(sys.argv[1])) as path:
    path.mkdir()
    print("staged", flush=True)
    sys.stdin.read()
"""


def error(found: Any, check: str) -> str:
    assert (found.check, found.table, found.severity, found.repair) == (check, "orders", Severity.ERROR, None)
    return str(found.message)


# The definition


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{", "", "[]", "{}", "\0" * 50, '{"name": "orders"}', None])
def test_a_definition_is_written_anew(orders: Patient, text: str | None) -> None:
    before = orders.hybrid().context.definitions.find("orders")
    assert before is not None
    if text is None:
        orders.definition.unlink()
    else:
        orders.definition.write_text(text)
        with pytest.raises(DataError, match=r"definition\.json is damaged"):
            orders.hybrid().spec("orders")
    found = orders.only()
    says = "is missing, and its data is there" if text is None else "cannot be read"
    assert says in error(found, "definition") and found.hint == "hybrid doctor --repair"
    mended = orders.only(repair=True)
    assert mended.repair is not None and mended.repair.startswith("Wrote the definition again")
    after = orders.hybrid().context.definitions.find("orders")
    assert after is not None
    assert vars(after) == {**vars(before), "created_at": after.created_at}
    kept = [one.read_text() for one in orders.layout.root.glob("definition.json.damaged-*")]
    assert kept == ([] if text is None else [text])
    assert orders.examine() == []


@pytest.mark.slow
def test_a_definition_whose_documents_make_no_sense(orders: Patient) -> None:
    doc = json.loads(orders.definition.read_text())
    for change in ({"schema_doc": []}, {"realtime_doc": {"tableType": 5}}, {"schema_doc": {"schemaName": "x"}}):
        orders.definition.write_text(json.dumps({**doc, **change}))
        error(orders.only(), "definition")
    assert orders.only(repair=True).repair
    assert orders.examine() == []


def test_a_definition_that_this_user_may_not_read(orders: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is whole, and what `table apply` changed would be undone."""
    before = orders.definition.read_text()

    def refused(*_: object) -> None:
        raise PermissionError(EACCES, "Permission denied", str(orders.definition))

    monkeypatch.setattr("hybrid.catalog.definitions.Definitions.find", refused)
    found = orders.only(repair=True)
    assert error(found, "definition").endswith("definition.json: Permission denied.")
    assert f"ls -l {orders.definition}" in str(found.hint)
    assert orders.definition.read_text() == before and not list(orders.layout.root.glob("*.damaged-*"))


@pytest.mark.slow
def test_the_newest_documents_are_taken(patient: Patient) -> None:
    """`table apply` added the OFFLINE half: the older act 0 knows nothing of it."""
    patient.create("orders_table.json")
    patient.hybrid().apply_table(patient.documents("orders_table.json", "orders_offline_table.json"))
    patient.fill()
    before = patient.hybrid().context.definitions.find("orders")
    patient.definition.unlink()
    assert patient.only(repair=True).repair
    after = patient.hybrid().context.definitions.find("orders")
    assert before is not None and after is not None
    assert after.offline_doc == before.offline_doc is not None and patient.examine() == []


def test_a_definition_that_cannot_be_written_anew(orders: Patient) -> None:
    orders.definition.write_text("{")
    for half in Half:
        log = orders.log(half, 0)
        log.write_text(log.read_text().replace('\\"schema\\"', '\\"schemas\\"'))
    found = orders.only(repair=True)
    error(found, "definition")
    assert found.hint == f"Restore {orders.definition} from a backup."


def test_what_a_creation_left(patient: Patient) -> None:
    patient.create()
    patient.definition.unlink()
    with creation_lock(patient.layout, 1, Silent()):
        assert patient.examine() == [], "it goes on"
    found = patient.only(repair=True)
    assert (found.check, found.severity, found.repair) == ("leftover", Severity.WARNING, None)
    patient.create()
    assert patient.examine() == []


def test_what_a_table_of_another_server_left_goes_by_itself(orders: Patient) -> None:
    """A query server lists it as remote, removes its definition, and its folder an hour later."""
    definition = json.loads(orders.definition.read_text())
    orders.definition.unlink()
    orders.hybrid().context.remote.put("orders", definition)
    assert orders.examine(repair=True) == [] and not orders.definition.exists()
    with pytest.raises(NotFoundError, match="Table 'orders' is not in this home yet"):
        orders.examine(table="orders")
    orders.hybrid().context.remote.remove("orders")
    assert "is missing, and its data is there" in orders.only().message


def test_a_folder_without_a_table(patient: Patient) -> None:
    (patient.path / "warehouse" / "stray").mkdir(parents=True)
    (patient.path / "warehouse" / ".dropped").mkdir()
    found = patient.only()
    assert (found.check, found.table, found.severity) == ("leftover", "stray", Severity.NOTE)


# Halves


def test_a_half_that_is_gone(orders: Patient) -> None:
    shutil.rmtree(orders.layout.half(Half.OFFLINE))
    assert "OFFLINE half cannot be read: There is no Delta table" in error(orders.only(), "half")


def test_a_half_that_the_definition_does_not_name(patient: Patient) -> None:
    patient.create("orders_table.json")
    shutil.copytree(patient.layout.half(Half.REALTIME), patient.layout.half(Half.OFFLINE))
    found = patient.only()
    assert (found.check, found.severity) == ("leftover", Severity.WARNING) and "does not name it" in found.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "content", "says"),
    [
        (1, None, "00000000000000000001.json is missing"),
        (1, b"", "00000000000000000001.json is empty"),
        (2, b"", "00000000000000000002.json is empty"),
        (2, b'{"commitInfo": {"times', "00000000000000000002.json cannot be read"),
        (1, b"\0" * 100, "00000000000000000001.json cannot be read"),
        (0, b"\xff\xfe", "00000000000000000000.json cannot be read"),
    ],
)
def test_a_damaged_log(orders: Patient, version: int, content: bytes | None, says: str) -> None:
    orders.halves().commit_realtime([], offsets={KEY: 2})
    log = orders.log(Half.REALTIME, version)
    log.unlink() if content is None else log.write_bytes(content)
    assert says in error(orders.examine()[0], "log")
    log.with_name(f"{1:020d}.json").write_bytes(b"")
    assert sum(one.check == "log" for one in orders.examine()) == 1, "one finding for one log"


@pytest.mark.slow
def test_a_state_that_cannot_be_read(orders: Patient) -> None:
    log = orders.log(Half.REALTIME, 1)
    log.write_text(log.read_text().replace('\\"offsets\\"', '\\"ofsets\\"'))
    assert "KeyError('offsets')" in error(orders.only(), "half")


@pytest.mark.slow
def test_halves_that_changed_places(orders: Patient) -> None:
    realtime, offline = orders.layout.half(Half.REALTIME), orders.layout.half(Half.OFFLINE)
    realtime.rename(orders.layout.root / "x")
    offline.rename(realtime)
    (orders.layout.root / "x").rename(offline)
    found = orders.examine()
    assert len(found) == 2
    assert "is not one of the OFFLINE half" in error(found[0], "state")
    assert "is not one of the REALTIME half" in error(found[1], "state")


@pytest.mark.slow
def test_data_files(orders: Patient) -> None:
    (realtime,), (offline,) = orders.files(Half.REALTIME), orders.files(Half.OFFLINE)
    realtime.unlink()
    offline.write_bytes(offline.read_bytes()[:-1])
    found = orders.examine()
    assert error(found[0], "data") == (
        f"1 of 1 data files of the OFFLINE half are not as long as the log says, e.g. {offline}."
    )
    assert error(found[1], "data") == f"1 of 1 data files of the REALTIME half are not there, e.g. {realtime}."
    assert len(found) == 2


@pytest.mark.slow
def test_data_files_with_names_that_are_encoded(orders: Patient) -> None:
    orders.halves().commit_offline([row(0, 5, segment="orders_a b%_0")])
    assert orders.examine() == []


# States that contradict each other


@pytest.mark.slow
def test_a_boundary_past_what_was_committed(orders: Patient) -> None:
    orders.halves().commit_offline([], Boundary(1500, {KEY: 3}))
    assert error(orders.only(), "state") == (
        "The boundary's frontier of kafka/orders/0/0 is 3, past what was committed, 2."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"offsets": {KEY: 1}, "consuming": {}}, f"Segment {SEGMENT} holds offset 1 of kafka/orders/0/0, and 1 is the"),
        ({"consuming": {KEY: Consuming(SEGMENT, 0, 0, 3, 9, 1)}}, "has 3 rows by its state and 2 by its files"),
        ({"consuming": {KEY: Consuming(SEGMENT, 0, 5, 2, 9, 1)}}, "begins at offset 5, past the committed 2"),
        ({"consuming": {KEY: Consuming(SEGMENT, 1, 0, 2, 9, 1)}}, "a sequence number that is free: the next one is 1"),
    ],
)
def test_a_realtime_state_that_does_not_fit(orders: Patient, changes: dict[str, Any], says: str) -> None:
    orders.halves().commit_realtime([], **changes)
    assert any(says in error(one, "state") for one in orders.examine())


# Leftovers


@pytest.mark.process
def test_staged_rows_of_acts_that_died(orders: Patient) -> None:
    staging = orders.layout.root / "staging"
    command = [sys.executable, "-c", STAGER]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([*command, str(staging / "move-dead")], **pipes) as dead,
        subprocess.Popen([*command, str(staging / "move-alive")], **pipes) as alive,
    ):
        assert dead.stdout.readline() == alive.stdout.readline() == "staged\n"  # type: ignore[union-attr]
        os.kill(dead.pid, signal.SIGKILL)
        dead.wait()
        (staging / "orphaned").mkdir()
        found = orders.only()
        assert (found.check, found.severity) == ("staging", Severity.WARNING) and "2 folders" in found.message
        assert orders.only(repair=True).repair == "Removed move-dead, orphaned."
        assert orders.examine() == [] and (staging / "move-alive").is_dir()
        alive.communicate()


@pytest.mark.slow
def test_definitions_that_were_not_written_to_their_end(orders: Patient) -> None:
    part = orders.layout.root / "definition.0a1b2c3d.part"
    part.touch()
    assert orders.examine() == [], "it may be under way"
    os.utime(part, (OLD, OLD))
    found = orders.only()
    assert (found.check, found.severity) == ("part", Severity.WARNING)
    assert orders.only(repair=True).repair == f"Removed {part.name}." and not part.exists()


@pytest.mark.process
def test_a_jvm_that_outlived_its_process(orders: Patient) -> None:
    lock = orders.layout.lock(Half.OFFLINE)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as jvm:
        orphan, me = Process.of(jvm.pid), Process.of(os.getpid())
        assert orphan is not None and me is not None
        lock.touch()
        file = [lock.stat().st_dev, lock.stat().st_ino]  # what tells it from a copy
        lock.write_text(json.dumps({"python": vars(me), "jvm": vars(orphan), "file": file}))
        assert orders.examine() == [], "it acts"
        dead = {"pid": me.pid, "started": "another"}
        lock.write_text(json.dumps({"python": dead, "jvm": vars(orphan), "file": file}))
        found = orders.only(repair=True)
        assert (found.check, found.severity) == ("lock", Severity.WARNING) and f"pid {jvm.pid}" in found.message
        assert orphan.is_alive() and found.repair is None
        jvm.communicate()
    assert orders.examine() == []


# Kafka


@pytest.mark.parametrize(
    ("view", "severity", "says"),
    [
        (StreamView({}, {}, {}), Severity.ERROR, "was read before and does not exist any more"),
        (seen("orders", "id-2", {0: 0}, {0: 10}), Severity.ERROR, "was recreated"),
        (seen("orders", "id-1", {0: 5}, {0: 10}), Severity.ERROR, "3 offsets are gone"),
        (seen("orders", "id-1", {0: 0}, {0: 1}), Severity.ERROR, "truncated or refilled"),
    ],
)
def test_streams(orders: Patient, kafka: Kafka, view: StreamView, severity: Severity, says: str) -> None:
    kafka.view = view
    found = orders.only(table="orders")
    assert (found.check, found.severity) == ("stream", severity) and says in found.message and found.hint


@pytest.mark.slow
def test_brokers_that_do_not_answer_are_asked_once(orders: Patient, kafka: Kafka) -> None:
    orders.create(name="others")
    kafka.error, kafka.asked = StreamError("Kafka does not answer.", hint="hybrid kafka start"), 0
    found = orders.examine()
    assert [(one.check, one.table, one.severity) for one in found] == [
        ("stream", "orders", Severity.WARNING), ("stream", "others", Severity.WARNING),
    ]  # fmt: skip
    assert kafka.asked == 1


def test_rejected_rows_are_a_note(orders: Patient) -> None:
    orders.halves().commit_realtime([], rejected=3)
    found = orders.only()
    assert (found.check, found.severity, found.is_left) == ("rejected", Severity.NOTE, False)
    assert found.message.startswith("3 messages") and found.hint == "hybrid rejected list orders"


# What nobody thought of


@pytest.mark.slow
def test_a_check_that_fails_is_a_finding_and_the_others_go_on(orders: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("hybrid.doctor.leftovers.abandoned", bug)
    part = orders.layout.root / "definition.0a1b2c3d.part"
    part.touch()
    os.utime(part, (OLD, OLD))
    found = orders.examine()
    assert [one.check for one in found] == ["staging", "part"]
    assert "This could not be checked: ZeroDivisionError: oh" in error(found[0], "staging")


@pytest.mark.slow
def test_no_repair_touches_data(orders: Patient) -> None:
    def data() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for half in Half for path in orders.layout.half(half).rglob("*.*")
                if path.is_file()}  # fmt: skip

    orders.definition.write_text("{")
    (orders.path / "catalog.db").write_text("x" * 5000)
    (orders.layout.root / "staging" / "orphaned").mkdir(parents=True)
    before = data()
    assert all(one.repair for one in orders.examine(repair=True))
    assert data() == before and orders.examine() == []
    assert open_half(orders.layout.half(Half.OFFLINE)).offline.boundary == Boundary(1500, {KEY: 2})
    assert isinstance(orders.hybrid().context.definitions.find("orders"), Definition)
