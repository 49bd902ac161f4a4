"""Replacements in several requests: what the check-up and the command line say of those that never ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from hybrid.cli.main import run
from hybrid.doctor.findings import Severity
from hybrid.lake import pushes
from hybrid.lake.pushes import OpenReplacement, Push, PushedSegment, PushState
from hybrid.replace.opening import open_replacement
from hybrid.store.plan_files import ROWS
from tests.doctor.conftest import Patient

LONG_AGO = "2021-11-21T10:38:00.000+00:00"


def start(patient: Patient, *segments: str, since: str = LONG_AGO) -> OpenReplacement:
    spec = patient.hybrid().spec("orders")
    return open_replacement(spec, patient.layout, ((), segments), created_at=since, user="ada", notes={"why": "late"})


def push(patient: Patient, entry: OpenReplacement, segment: str, rows: int) -> None:
    """What a job brings, without Spark."""
    folder = patient.layout.staging(f"push-{segment}")
    (folder / ROWS / f"_hy_segment={segment}").mkdir(parents=True)
    (folder / ROWS / f"_hy_segment={segment}" / "part-0.parquet").write_bytes(b"x" * 100)
    number = pushes.next_number(patient.layout, entry.id)
    segments = (PushedSegment(segment, rows, 0, None, None),)
    pushes.add_push(patient.layout, entry.id, folder, Push(number, "job.yml", (), segments))


@pytest.fixture
def opened(patient: Patient) -> OpenReplacement:
    """A table with a replacement that waits for `b`; `a` was pushed to it, 3 rows."""
    patient.create()
    entry = start(patient, "a", "b")
    push(patient, entry, "a", 3)
    return entry


def test_one_that_never_ended_is_found(patient: Patient, opened: OpenReplacement) -> None:
    size = pushes.staged_bytes(patient.layout, opened.id)
    assert size > 100
    (found,) = patient.examine()
    assert (found.check, found.table, found.severity) == ("replacement", "orders", Severity.WARNING)
    assert found.message == (
        f"Replacement '{opened.id}', started at {LONG_AGO} by ada, is IN_PROGRESS. Waits for segment 'b'; "
        f"segment 'a' with 3 rows ({size} bytes) was pushed, which no query shows."
    )
    assert found.hint is not None and found.hint.startswith(f"hybrid replacement revert orders {opened.id} (throws")
    assert f"endReplaceSegments?segmentLineageEntryId={opened.id}" in found.hint


def test_one_at_work_is_none(patient: Patient) -> None:
    patient.create()
    start(patient, "a", since=datetime.now(UTC).isoformat())
    assert patient.examine() == []


def test_what_one_left_that_ended_is_found_and_removed(patient: Patient, opened: OpenReplacement) -> None:
    """A process may die after it has noted the end, before the staged rows are removed."""
    (patient.layout.plan(opened.id) / "closed.json").write_text(json.dumps({"state": PushState.REVERTED}))
    (found,) = patient.examine()
    assert found.message.startswith(f"Replacement '{opened.id}' is REVERTED, and ") and "still staged" in found.message
    (mended,) = patient.examine(repair=True)
    assert mended.repair == f"Removed what was pushed to '{opened.id}'."
    assert patient.examine() == [] and pushes.staged_bytes(patient.layout, opened.id) == 0
    assert pushes.state_of(patient.layout, opened.id) is PushState.REVERTED


@pytest.mark.slow
def test_the_command_line_shows_it_and_takes_it_back(
    patient: Patient, opened: OpenReplacement, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*args: str, code: int = 0) -> str:
        assert run(["--home", str(patient.path), "--json", "replacement", *args]) == code
        caught = capsys.readouterr()
        return caught.err if code else caught.out

    (listed,) = json.loads(command("list", "orders"))
    assert (listed["id"], listed["state"], listed["version"]) == (opened.id, "IN_PROGRESS", None)
    assert (listed["segments_to"], listed["rows_after"], listed["added"]) == (["a", "b"], 3, None)
    assert (listed["reason"], listed["user"]) == ("why=late", "ada") and listed["result"].startswith("Waits for")
    assert json.loads(command("show", "orders", opened.id)) == listed

    would = json.loads(command("revert", "orders", opened.id, "--dry-run"))
    assert would["sentence"].startswith(f"Would throw away what waits for '{opened.id}': segment 'a' with 3 rows")
    assert "no terminal to ask on" in command("revert", "orders", opened.id, code=2)
    assert json.loads(command("list", "orders")) == [listed]

    done = json.loads(command("revert", "orders", opened.id, "--yes", "--reason", "wrong day"))
    assert done["version"] is None and done["sentence"].startswith(f"Reverted '{opened.id}': segment 'a' with 3 rows")
    assert len(done["warnings"]) == 1
    assert json.loads(command("list", "orders")) == [] and patient.examine() == []
    assert json.loads(command("show", "orders", opened.id))["state"] == "REVERTED"
    assert "is REVERTED, not IN_PROGRESS" in command("revert", "orders", opened.id, "--yes", code=4)
