"""A table on disk, backfills of it on the shared Spark session, and what queries see of both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hybrid.config.table_config import BoundaryMode, Half, MoveConfig, TableSpec
from hybrid.ingest.replay import ReplayReport, replay_rejected
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.operations.rejected_rows import read_rejected
from hybrid.query.engine import QueryOptions, run
from hybrid.query.result import QueryResult
from hybrid.replace.backfill.claims import settle
from hybrid.replace.backfill.inputs import inspect_input
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.replace.backfill.plan_run import RunReport, run_plan
from hybrid.replace.backfill.planning import plan_backfill
from hybrid.replace.backfill.request import ChangeKind, Request, window_of
from hybrid.sql.row_sql import row_assignments, row_condition
from hybrid.table.boundary import Boundary
from hybrid.table.plans import Plan
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec

BUCKET = 1000
COLUMNS = "order_id, customer, amount, ts"


def lab_spec(**kind: Any) -> TableSpec:
    """The orders table in buckets of a second."""
    return replace(orders_spec(**kind), move=MoveConfig(bucket_ms=BUCKET, buffer_ms=0))


def row(order_id: int, ts: int | None, amount: float = 1.0, customer: str = "a", **more: Any) -> Row:
    """A row of the table; `more` as a Row takes it, `gone` as a column."""
    gone = {"gone": more.pop("gone")} if "gone" in more else {}
    values = {"order_id": order_id, "customer": customer, "amount": amount, "ts": ts or 0, **gone}
    return Row(values, ts, **{"offset": order_id, **more})


@dataclass
class Lab:
    """`halves` is the table; rows are laid without Spark, corrections run with it."""

    bench: CommitContext
    halves: Halves
    folder: Path

    @classmethod
    def create(cls, bench: CommitContext, folder: Path, spec: TableSpec, mode: BoundaryMode | None = None) -> Lab:
        return cls(bench, Halves.create(folder, spec, mode), folder)

    def copied(self, folder: Path) -> Lab:
        """A table like this one in a folder of its own: the log and plans name files by their paths below the table."""
        layout = TableLayout(folder / self.spec.name)
        shutil.copytree(self.halves.layout.root, layout.root)
        return Lab(self.bench, replace(self.halves, layout=layout), folder)

    @property
    def spec(self) -> TableSpec:
        return self.halves.spec

    @property
    def context(self) -> TableContext:
        return TableContext(self.bench, self.spec, self.halves.layout)

    def lay(self, segment: str, *rows: Row, until: int | None = None) -> None:
        """Offline rows of one segment, moved with a boundary at `until`."""
        boundary = Boundary(until, {KEY: 1_000_000}) if until is not None else None
        self.halves.commit_offline([replace(one, segment=segment) for one in rows], boundary)

    def reject(self, *messages: Mapping[str, object] | bytes) -> None:
        """Rejected rows at offsets from 1000 on, of messages that convert unless they are bytes."""
        raws = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        bad = [
            Row({}, None, 1000 + number, segment="orders__rejected", reason="of then", raw=raw, timestamp_ms=5)
            for number, raw in enumerate(raws)
        ]
        done = {"offsets": {KEY: 1000 + len(bad)}, "topic_ids": {"kafka/orders": "an id"}, "rejected": len(bad)}
        self.halves.commit_realtime(bad, **done)

    def marks(self) -> dict[int, str]:
        """What became of each rejected row, by offset."""
        files = [file.path for file in self.realtime.files if file.segment == "orders__rejected"]
        return {one["offset"]: one["state"] for one in read_rejected(files, 1000, everything=True)}

    def replay(self) -> ReplayReport:
        return replay_rejected(self.context)

    def settle(self, plan: Plan, *, ended: bool = True) -> int:
        return settle(self.context, plan, ended=ended)

    @property
    def offline(self) -> Any:
        return open_half(self.halves.layout.half(Half.OFFLINE))

    @property
    def realtime(self) -> Any:
        return open_half(self.halves.layout.half(Half.REALTIME)) if Half.REALTIME in self.spec.halves else None

    def plan(
        self,
        start: int | None,
        end: int | None,
        *,
        update: str | None = None,
        delete: bool = False,
        where: str | None = None,
        rows: Iterable[Mapping[str, object]] | None = None,
        rejected: bool = False,
    ) -> Plan:
        """A plan of one change on the newest versions."""
        if rejected:
            request = Request(ChangeKind.REJECTED, window_of(self.spec, self.offline.offline.boundary, start, end))
        else:
            request = self._request(start, end, update, delete, where, rows)
        return self.plan_of(request)

    def plan_of(self, request: Request) -> Plan:
        """A plan of a request on the newest versions."""
        offline, realtime = self.offline, self.realtime
        blank = Plan(
            id=new_act_id("backfill"),
            table=self.spec.name,
            created_at=self.bench.now_iso(),
            change="a test",
            request={},
            table_id=offline.table_id,
            offline_version=offline.version,
            realtime_version=realtime.version if realtime is not None else None,
            base_revision="",
            fresh_topic="",
            buckets=(),
            units=(),
            inputs=tuple(file.to_json() for file in request.files),
        )
        return plan_backfill(self.context, (offline, realtime), request, blank)

    def _request(
        self,
        start: int | None,
        end: int | None,
        update: str | None,
        delete: bool,
        where: str | None,
        rows: Iterable[Mapping[str, object]] | None,
    ) -> Request:
        window = window_of(self.spec, self.offline.offline.boundary, start, end)
        condition = row_condition(where, self.spec, "--where") if where else None
        if rows is not None:
            path = self.folder / "input.jsonl"
            path.write_text("".join(json.dumps(one) + "\n" for one in rows))
            files, csv_format = inspect_input(self.spec, path)
            return Request(ChangeKind.ROWS, window, files=files, csv_format=csv_format)
        if delete:
            return Request(ChangeKind.DELETE, window, condition)
        assert update is not None
        return Request(ChangeKind.UPDATE, window, condition, row_assignments(update, self.spec, "--update"))

    def run(self, plan: Plan, **how: Any) -> RunReport:
        return run_plan(self.context, plan, BackfillOptions(**how))

    def query(self, sql: str, plan: Plan | None = None) -> QueryResult:
        prefix = f"SET plan='{plan.id}'; " if plan is not None else ""
        return run(prefix + sql, self.halves, QueryOptions(tail=ListTail()))

    def rows(self, plan: Plan | None = None) -> list[tuple[Any, ...]]:
        """All that a query sees, sorted."""
        found = self.query(f"SELECT {COLUMNS} FROM orders LIMIT 100000", plan).rows
        return sorted(tuple(one) for one in found)

    def segments(self) -> Sequence[str]:
        return sorted({file.segment for file in self.offline.files})
