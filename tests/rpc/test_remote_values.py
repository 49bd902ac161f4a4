"""Reports cross to a client and back without loss: the JSON form of a server's run, made into the report's class."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from hybrid.config.table_config import BoundaryMode, Half
from hybrid.errors import MachineError
from hybrid.ingest.loop import IngestReport
from hybrid.ingest.replay import ReplayReport
from hybrid.ingest.reset import ResetPartition
from hybrid.ingest.seal import SealReport
from hybrid.lake.plans import DesiredState
from hybrid.move.merging.report import Merged, MergeReport
from hybrid.move.move import MoveReport
from hybrid.move.optimize import OptimizeReport
from hybrid.move.retention.report import KeptSegments, RetentionReport
from hybrid.move.vacuum.report import VacuumReport
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.backfill_documents import plan_document
from hybrid.operations.backups.backup_create import BackupReport
from hybrid.operations.backups.backup_verify import BackupDamage, DamageKind, VerifyReport
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.replace.backfill.plan_run import RunReport
from hybrid.replace.check_result import CheckResult, CheckState
from hybrid.replace.diff import Sample
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import EntryState, ReplacementEntry
from hybrid.replace.purge.report import PurgeReading, PurgeReport, RemovedFile
from hybrid.replace.report import JobReport
from hybrid.rpc import json_views as views
from hybrid.rpc import remote_values as values
from hybrid.rpc.remote_operations import RemoteBackfills, RemoteBackups, RemoteConnectors, RemoteUpkeep, server_plan
from hybrid.runtime.json_values import json_document, json_value
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.lineage import Lineage
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket, Unit, WrittenSegment

KEY = PartitionKey("kafka", "orders", 0, 0)


def sent(document: object) -> Any:
    """As a client receives it."""
    return json.loads(json.dumps(document))


@pytest.mark.parametrize(
    "report",
    [
        IngestReport(5, 1, 2, "s.", 3),
        SealReport(("a", "b"), 4, "s."),
        ReplayReport("t", 3, 2, 2, 0, 1, ({"reason": "r", "rows": 1},), ("a",), 7, "s.", True),
        VacuumReport({"OFFLINE": 1}, {"OFFLINE": 2}, {}, {}, {"OFFLINE": "why"}, "s."),
        OptimizeReport(("a",), 5, 1, 100, 0, (3, 4), "s."),
    ],
)
def test_flat_reports(report: Any) -> None:
    assert values.value_of(type(report), sent(json_value(vars(report)))) == report


@pytest.mark.parametrize(
    ("boundary", "has_time"),
    [(Boundary(5, {KEY: 3}, BoundaryMode.PINOT, 4, 1, 60), True), (Boundary(INFINITE, {KEY: 3}), False)],
)
def test_a_move(boundary: Boundary, has_time: bool) -> None:
    report = MoveReport(4, 3, 1, ("a",), boundary, 9, "s.")
    assert values.move_report(sent(views.move_view(report)), has_time=has_time) == report


def test_reports_of_upkeep() -> None:
    merge = MergeReport((Merged("m", 86_400_000, ("a", "b"), ("c",), 5, 4, "act", 3),), {"why": ["x"]}, 5, 4, "s.")
    assert values.merge_report(sent(views.merge_view(merge))) == merge
    kept = (KeptSegments(Half.OFFLINE, ("a",), "why"),)
    retention = RetentionReport({"OFFLINE": ["a"]}, {"OFFLINE": 3}, 10, 0, kept, 5, {"OFFLINE": 2}, "s.")
    assert values.retention_report(sent(views.retention_view(retention))) == retention


def test_a_job_and_a_purge() -> None:
    check = CheckResult("n", "range", "warn", CheckState.WARNED, 1, ({"a": 1},), "s.")
    samples = (Sample("changed", {"a": 1}, {"a": 2}), Sample("added", None, {"a": 3}))
    job = JobReport("t", "act", 3, ("a",), ("b",), 1, 2, 1, 0, 1, "s.", {"a": 1}, samples, ("w",), False, (check,))
    assert values.job_report(sent(json_document(job.to_json()))) == job
    readings = (PurgeReading("OFFLINE", True, 1, 2, 3, 0, 1),)
    files = (RemovedFile("OFFLINE", "x.parquet", 1, 2, 3),)
    purge = PurgeReport(
        "p", "t", "2026-11-26T00:00:00Z", ("a",), "ff", None, "me", False, {"OFFLINE": 1}, files, readings, readings,
        0, 0, {"plan": 2}, ({"offset": 3},), (), ("o",), "s.",
    )  # fmt: skip
    assert values.purge_report(sent(json_document(purge.to_json()))) == purge


def test_an_entry_of_the_lineage() -> None:
    lineage = Lineage(
        segments_from=("a",), segments_to=("b",), version_before=3, rows_before=1, rows_after=2, added=1, removed=0,
        changed=0, result="s.", previous=None, reason="why",
    )  # fmt: skip
    entry = ReplacementEntry("i", "replace", "2026-11-26T00:00:00Z", 4, EntryState.ACTIVE, lineage)
    assert values.replacement_entry(sent(json_document(entry.to_json()))) == entry


def plan() -> Plan:
    written = WrittenSegment("b", 7, 70, 0, 1, ("f",), True)
    buckets = (
        PlannedBucket(0, 86_400_000, BucketState.PRESENT, Counts(5, 4, 0, 1, 0), 0, ({"change": "removed"},)),
        PlannedBucket(None, None, BucketState.PRESENT, Counts()),
    )
    units = (Unit(0, (0,), {"a": ("f",)}, (written,)),)
    return Plan(
        "p", "t", "2026-11-26T00:00:00Z", "delete", {}, "id", 3, None, "t[OFFLINE=3]", "", buckets, units,
        sentence="1 row goes.", warnings=("w",),
    )  # fmt: skip


def test_a_plan() -> None:
    local, remote = plan(), server_plan(sent(plan_document(plan())))
    for name in ("id", "table", "created_at", "change", "base_revision", "buckets", "warnings", "sentence", "rows"):
        assert getattr(remote, name) == getattr(local, name), name
    assert remote.bytes == 70 and remote.did_something
    assert repr(remote) == "<ServerPlan: 1 row goes.>" and remote._repr_html_() == local._repr_html_()


def test_an_answer_of_another_version_is_an_error() -> None:
    with pytest.raises(MachineError, match="no 'sentence' for a SealReport"):
        values.value_of(SealReport, {"segments": [], "version": None})
    assert values.value_of(SealReport, {"segments": [], "version": None, "sentence": "s.", "later": 1}).segments == ()


class Recorder:
    """A client that answers from a list, and keeps what it was called with."""

    def __init__(self, *answers: object) -> None:
        self.answers, self.calls = list(answers), list[tuple[str, dict[str, Any]]]()

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        self.calls.append((verb, sent(arguments)))
        return sent(self.answers.pop(0))


def test_backfills() -> None:
    run = RunReport("p", "t", 1, 1, 2, 7, ("act",), DesiredState.PAUSE, "s.")
    client = Recorder(plan_document(plan()), json_value(vars(run)), {"sentence": "s."})
    backfills = RemoteBackfills(client)  # type: ignore[arg-type]
    backfills.plan("t", BackfillChange(start="a", delete=True, input="s3://b/c", expect=("x",)))
    assert backfills.run("p", BackfillOptions(atomic=True)) == run
    assert backfills.release("p") == "s."
    assert client.calls == [
        ("backfill_plan", {"table": "t", "start": "a", "delete": True, "input": "s3://b/c", "expect": ["x"]}),
        ("backfill_run", {"backfill": "p", "document": None, "atomic": True}),
        ("backfill_release", {"backfill": "p"}),
    ]


def test_backups() -> None:
    made = BackupReport("b", "/d", "2026-11-26T00:00:00Z", {"t": "r"}, 1, 2, 1, 2, ("x",), "s.")
    damage = BackupDamage(next(iter(DamageKind)), "p", None, ("b",))
    verified = VerifyReport("/d", ("b",), 1, 2, False, (damage,), "s.")
    client = Recorder(json_document(made.to_json()), json_document(verified.to_json()))
    backups = RemoteBackups(client)  # type: ignore[arg-type]
    assert backups.create("/d", ["t"]) == made and backups.verify("/d") == verified


def test_upkeep_runs_tasks_by_their_types() -> None:
    report = VacuumReport({}, {}, {}, {}, {}, "s.")
    client = Recorder(views.vacuum_view(report))
    assert RemoteUpkeep(client, "t").vacuum(dry_run=True) == report  # type: ignore[arg-type]
    assert client.calls[0][1]["dry_run"] is True and "acuum" in client.calls[0][1]["type"]


def test_a_reset_is_carried_out_as_it_was_planned() -> None:
    planned = {
        "table": "t", "topic": "o", "topic_id": "i", "recreated": False, "lost": 1, "skipped": 0, "again": 0,
        "partitions": [dict.fromkeys((field.name for field in fields(ResetPartition)), 1)],
        "version": None, "sentence": "s.", "dry_run": True,
    }  # fmt: skip
    client = Recorder(planned, planned, {**planned, "dry_run": False, "version": 3})
    connectors = RemoteConnectors(client, "t")  # type: ignore[arg-type]
    found = connectors.reset("earliest", dry_run=True)
    assert connectors.reset("earliest", accept=True).version == 3
    assert client.calls[-1] == ("connector_reset", {"table": "t", "to": "earliest", "name": None, "accepted": planned})
    client.answers.append({**planned, "version": 4})
    assert connectors.reset("earliest", accept=found).version == 4


def test_options_are_sent_without_their_defaults() -> None:
    assert values.plain_arguments(JobOptions(expect=("a",), reason="r"), JobOptions) == {"expect": ["a"], "reason": "r"}
