"""Connectors, upkeep, pushes, backfills and backups of a server's home, as `hybrid.operations` has them locally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.retention_json import RETENTION_TASK
from hybrid.config.task_schedules import OPTIMIZE_TASK, VACUUM_TASK
from hybrid.errors import ConflictError, NotFoundError, UsageError
from hybrid.ingest.reset import ResetReport
from hybrid.lake.plans import DesiredState
from hybrid.move.merging.report import MergeReport
from hybrid.move.optimize import OptimizeReport
from hybrid.move.retention.report import RetentionReport
from hybrid.move.vacuum.report import VacuumReport
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.backfill_status import BackfillStatus
from hybrid.operations.backfills import Backfills
from hybrid.operations.backups.backup_create import BackupReport
from hybrid.operations.backups.backup_delete import DeletionReport
from hybrid.operations.backups.backup_verify import BackupDamage, DamageKind, VerifyReport
from hybrid.operations.backups.backups import Backups, BackupSummary
from hybrid.operations.connectors.run import TableConnectors
from hybrid.operations.connectors.status import ConnectorStatus
from hybrid.operations.maintenance import Upkeep
from hybrid.operations.segment_replacement import Replacing
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.replace.backfill.plan_run import RunReport
from hybrid.replace.report import JobReport
from hybrid.rpc.local_only import LocalOnly, RemoteObject
from hybrid.rpc.remote_values import Document, job_report, merge_report, plain_arguments, retention_report, value_of
from hybrid.runtime.json_values import epoch_ms
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket

if TYPE_CHECKING:
    from hybrid.rpc.client import Client
    from hybrid.sql.redaction import Redaction


@shown_as("{0._name}")
class RemoteConnectors(RemoteObject, TableConnectors):
    """The connectors of a table of a server."""

    def __init__(self, client: Client, table: str) -> None:
        self._client, self._name = client, table

    def statuses(self, *, ask_kafka: bool = True) -> list[ConnectorStatus]:
        """The status of every connector. The server asks Kafka in any case."""
        return self._call("connectors")

    def status(self, name: str) -> ConnectorStatus:
        """The status of a connector; NotFoundError, with a suggestion, for an unknown name."""
        found = {status.name: status for status in self.statuses()}
        if name not in found:
            raise NotFoundError.named("Connector", name, found)
        return found[name]

    def pause(self, name: str | None) -> list[ConnectorStatus]:
        """Pauses a connector, or all."""
        return self._call("connector_pause", name=name)

    def start(self, name: str | None) -> list[ConnectorStatus]:
        """Starts a connector, or all."""
        return self._call("connector_start", name=name)

    def reset(
        self, to: str, name: str | None = None, *, dry_run: bool = False, accept: bool | ResetReport = False
    ) -> ResetReport:
        """Resets a topic of the stream, as `TableConnectors.reset` does."""
        place = {"table": self._name, "to": to, "name": name}
        if isinstance(accept, ResetReport) and not dry_run:
            return ResetReport.from_json(self._client.call("connector_reset", {**place, "accepted": accept.to_json()}))
        plan = self._client.call("connector_reset_plan", place)
        report = ResetReport.from_json(plan)
        if dry_run or not report.partitions:
            return replace(report, dry_run=dry_run)
        if accept is False:
            raise ConflictError(
                f"{report.sentence} That has to be accepted; nothing was changed.", hint="accept=True accepts it."
            )
        return ResetReport.from_json(self._client.call("connector_reset", {**place, "accepted": plan}))

    def _call(self, verb: str, **arguments: Any) -> list[ConnectorStatus]:
        found = self._client.call(verb, {"table": self._name, **arguments})
        return [value_of(ConnectorStatus, status) for status in found]


@shown_as("{0._name}")
class RemoteUpkeep(RemoteObject, Upkeep):
    """The upkeep of a table of a server."""

    def __init__(self, client: Client, table: str) -> None:
        self._client, self._name = client, table

    def drop_expired(self, *, dry_run: bool = False) -> RetentionReport:
        """Drops expired segments."""
        return retention_report(self._run(RETENTION_TASK, dry_run))

    def merge_segments(self, *, dry_run: bool = False) -> MergeReport:
        """Merges offline segments."""
        return merge_report(self._run(MERGE_TASK, dry_run))

    def compact(self, *, dry_run: bool = False) -> MergeReport:
        """Removes superseded rows."""
        return merge_report(self._run(COMPACTION_TASK, dry_run))

    def optimize(self, *, dry_run: bool = False) -> OptimizeReport:
        """Combines small files."""
        return value_of(OptimizeReport, self._run(OPTIMIZE_TASK, dry_run))

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        """Deletes obsolete files."""
        return value_of(VacuumReport, self._run(VACUUM_TASK, dry_run))

    def _run(self, task: str, dry_run: bool) -> Document:
        found: Document = self._client.call("task_run", {"table": self._name, "type": task, "dry_run": dry_run})
        return found


@shown_as("{0._name}")
class RemoteReplacing(RemoteObject, Replacing):
    """Replacements in several requests, of a table of a server."""

    def __init__(self, client: Client, table: str) -> None:
        self._client, self._name = client, table

    start: Any = LocalOnly("POST /segments/TABLE/startReplaceSegments, and jobs by hy.run_job.")
    take_back: Any = LocalOnly("table.revert(id) discards a replacement that has not ended.")
    started: Any = LocalOnly("hybrid replacement list TABLE, with --server, has those in progress.")

    def end(self, entry: str, segments_to: Sequence[str] = (), *, user: str | None = None) -> JobReport:
        """Makes the pushed segments visible."""
        arguments = {"table": self._name, "entry": entry, "segments_to": list(segments_to), "user": user}
        return job_report(self._client.call("replacement_end", arguments))


@dataclass(frozen=True, repr=False)
class ServerPlan(Plan):
    """A plan on a server. `document` is the content of PLAN.json; what only the server uses is empty here."""

    document: Document = field(default_factory=dict)

    @property
    def did_something(self) -> bool:
        """Whether there is something to correct."""
        return any(bucket.unit is not None for bucket in self.buckets)

    @property
    def rows(self) -> int:
        """The number of rows that a run writes."""
        return int(self.document["rows"])

    @property
    def bytes(self) -> int:
        """The size of the staged rows in bytes."""
        return int(self.document["bytes"])


def server_plan(document: Document) -> ServerPlan:
    """A plan from the content of PLAN.json."""
    server_only = {"request": {}, "table_id": "", "offline_version": -1, "realtime_version": None, "fresh_topic": ""}
    buckets = tuple(map(_bucket, document["buckets"]))
    return value_of(ServerPlan, document, **server_only, buckets=buckets, units=(), document=document)


def _bucket(document: Document) -> PlannedBucket:
    start, end = (None if document[name] is None else epoch_ms(document[name]) for name in ("start", "end"))
    state, counts = BucketState(document["state"]), value_of(Counts, document)
    return PlannedBucket(start, end, state, counts, document["swap"], tuple(document["samples"]))


@shown_as("{0._client.url}")
class RemoteBackfills(RemoteObject, Backfills):
    """The backfills of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def plan(
        self, table: str, change: BackfillChange, redaction: Redaction | None = None, erasure: str | None = None
    ) -> Plan:
        """Plans a correction and stages its rows on the server, which also reads the files of `change.input`.

        Only the server itself plans for an erasure.
        """
        if redaction is not None or erasure is not None:
            raise UsageError("A server plans the corrections of its erasures itself.", hint="hybrid erase --server URL")
        arguments = {"table": table, **plain_arguments(change, BackfillChange)}
        if "input" in arguments and "://" not in arguments["input"]:
            arguments["input"] = str(Path(arguments["input"]).expanduser().absolute())
        return server_plan(self._client.call("backfill_plan", arguments))

    def run(self, plan_id: str, options: BackfillOptions, document: Mapping[str, Any] | None = None) -> RunReport:
        """Swaps in the remaining buckets of a plan."""
        arguments = {"backfill": plan_id, "document": document, **plain_arguments(options, BackfillOptions)}
        report = self._client.call("backfill_run", arguments)
        stopped = None if report["stopped"] is None else DesiredState(report["stopped"])
        return value_of(RunReport, report, stopped=stopped)

    def statuses(self, table: str | None = None) -> list[BackfillStatus]:
        """The status of backfills, newest first."""
        return [value_of(BackfillStatus, found) for found in self._client.call("backfills", {"table": table})]

    def status(self, plan_id: str) -> BackfillStatus:
        """The status of a backfill."""
        return value_of(BackfillStatus, self._client.call("backfill", {"backfill": plan_id}))

    def show(self, plan_id: str) -> Plan:
        """The plan of a backfill."""
        return server_plan(self._client.call("backfill", {"backfill": plan_id})["plan"])

    def pause(self, plan_id: str) -> BackfillStatus:
        """Pauses a run after the commit in progress."""
        return value_of(BackfillStatus, self._client.call("backfill_pause", {"backfill": plan_id}))

    def cancel(self, plan_id: str) -> BackfillStatus:
        """Cancels a run for good."""
        return value_of(BackfillStatus, self._client.call("backfill_cancel", {"backfill": plan_id}))

    def release(self, plan_id: str) -> str:
        """Releases the rejected rows that a cancelled backfill has claimed; a sentence."""
        return str(self._client.call("backfill_release", {"backfill": plan_id})["sentence"])

    def revert(self, plan_id: str, *, reason: str | None = None, user: str | None = None) -> JobReport:
        """Reverts all corrections of a backfill."""
        return job_report(self._client.call("backfill_revert", {"backfill": plan_id, "reason": reason, "user": user}))


@shown_as("{0._client.url}")
class RemoteBackups(RemoteObject, Backups):
    """The backups of a server's home. Directories are those of the server's machine."""

    def __init__(self, client: Client) -> None:
        self._client = client

    restore: Any = LocalOnly("hybrid.connect(new_home).backups.restore(directory) on the server's machine.")
    delete_surplus: Any = LocalOnly("hybrid backup delete DIRECTORY --surplus on the server's machine.")

    def create(self, directory: str | Path, tables: Sequence[str] | None = None) -> BackupReport:
        """Backs up all tables, or the named ones."""
        names = None if tables is None else list(tables)
        return value_of(BackupReport, self._call("backup_create", directory, tables=names))

    def list(self, directory: str | Path) -> list[BackupSummary]:
        """The backups in a directory, newest first."""
        return [value_of(BackupSummary, found) for found in self._call("backup_list", directory)]

    def verify(self, directory: str | Path, backup: str | None = None) -> VerifyReport:
        """Compares every byte of one backup, or of all, with its checksum."""
        report = self._call("backup_verify", directory, backup=backup)
        findings = tuple(value_of(BackupDamage, found, kind=DamageKind(found["kind"])) for found in report["findings"])
        return value_of(VerifyReport, report, findings=findings)

    def delete(self, directory: str | Path, backup: str) -> DeletionReport:
        """Deletes a backup, and the files that no other backup needs."""
        return value_of(DeletionReport, self._call("backup_delete", directory, backup=backup))

    def _call(self, verb: str, directory: str | Path, **arguments: Any) -> Any:
        return self._client.call(verb, {"directory": str(directory), **arguments})
