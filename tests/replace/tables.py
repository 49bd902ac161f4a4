"""Tables for the tests of replacement jobs: the recipes' events as rows of both halves, and jobs over files."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import CommitProperties, write_deltalake

from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.jvm.jars import spark_jars
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.create import arrow_schema, create_half, record_batch
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.spark import SparkSettings
from hybrid.lake.table_context import TableContext
from hybrid.progress import Silent
from hybrid.records.decode import Decoded, Decoder
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.state import Act, OfflineState, RealtimeState, next_act, to_user_metadata
from tests.shared_jvm import session_of_dying

ROOT = Path(__file__).parents[2]
SEGMENT = "orders_1632463351000_1632467070000_0"
BOUNDARY_MS = 1632470400000
NOW_MS = 1_700_000_000_000
KAFKA = PartitionKey("kafka", "orders", 0, 0)


def new_workbench(folder: Path) -> CommitContext:
    """A workbench for processes that are to die."""
    settings = SparkSettings(jars=spark_jars(), log_dir=folder, driver_memory="1g")
    return CommitContext(session_of_dying(settings), lambda: NOW_MS, Silent())


def recipe(name: str, file: str) -> Path:
    """A file of a recipe."""
    folder = "job_specs" if file == "job-spec.yml" else "data"
    return ROOT / folder / name / file


def recipe_spec(name: str) -> TableSpec:
    docs = [recipe(name, f"orders_{part}.json") for part in ("schema", "table", "offline_table")]
    schema, *configs = [(json.loads(path.read_text()), str(path)) for path in docs]
    return parse_table(*schema, configs)


@dataclass(frozen=True)
class Table:
    """A table in a folder. Rows are put in through commits as ingestion and the move make them."""

    bench: CommitContext
    spec: TableSpec
    layout: TableLayout
    folder: Path

    @property
    def context(self) -> TableContext:
        return TableContext(self.bench, self.spec, self.layout)

    @classmethod
    def create(cls, bench: CommitContext, folder: Path, spec: TableSpec) -> Table:
        table = cls(bench, spec, TableLayout(folder / "warehouse" / spec.name), folder)
        act = Act("create-0", 0, "create", "2021-11-21T00:00:00.000+00:00")
        create_half(table.path(Half.OFFLINE), spec, Half.OFFLINE, OfflineState(act))
        if Half.REALTIME in spec.halves:
            create_half(table.path(Half.REALTIME), spec, Half.REALTIME, RealtimeState(act))
        return table

    @classmethod
    def of_recipe(
        cls, bench: CommitContext, folder: Path, name: str, moved: int, kept: tuple[int, ...] | None = None
    ) -> Table:
        """The recipe's events in REALTIME; of the first `moved` those at places `kept` (1 = first) offline as well."""
        table = cls.create(bench, folder, recipe_spec(name))
        events = [json.loads(line) for line in recipe(name, "events.jsonl").read_text().splitlines()]
        table.ingest(events)
        places = kept or range(1, moved + 1)
        rows = [(events[place - 1], place - 1) for place in places]
        boundary = Boundary(BOUNDARY_MS, {KAFKA: len(events)})
        table.add_offline(SEGMENT, rows, boundary)
        return table

    def path(self, half: Half) -> Path:
        return self.layout.half(half)

    def ingest(self, events: Iterable[Mapping[str, object]], start: int = 0) -> None:
        """Commits events as realtime rows from offset `start` on; the Kafka timestamp is 1000 times the offset."""
        half = open_half(self.path(Half.REALTIME))
        rows = [self._row("orders__0__0__20211121T1038Z", event, start + n) for n, event in enumerate(events)]
        act = next_act(half.state, new_act_id("ingest"), "ingest", "2021-11-21T00:00:00.000+00:00", {})
        end = start + len(rows)
        deletes = half.realtime.deletes + sum(row[7] == "delete" for row in rows)
        state = replace(half.realtime, act=act, offsets={KAFKA: end}, timestamp_max=1000 * (end - 1), deletes=deletes)
        stored = [(*row[:9], None, None, *row[9:]) for row in rows]
        self._commit(Half.REALTIME, stored, state)

    def add_offline(
        self, segment: str, rows: Iterable[tuple[Mapping[str, object], int]], boundary: Boundary | None = None
    ) -> None:
        """Commits (event, offset) pairs as an offline segment, with a new boundary when one is given."""
        half = open_half(self.path(Half.OFFLINE))
        act = next_act(half.state, new_act_id("move"), "move", "2021-11-21T00:00:00.000+00:00", {})
        state = replace(half.offline, act=act, boundary=boundary or half.offline.boundary)
        stored = [self._row(segment, event, offset) for event, offset in rows]
        self._commit(Half.OFFLINE, stored, state)

    def _row(self, segment: str, event: Mapping[str, object], offset: int) -> tuple[object, ...]:
        found = Decoder(self.spec).convert(event)
        assert isinstance(found, Decoded), found
        op = "delete" if found.is_delete else "row"
        return (segment, *KAFKA, offset, 1000 * offset, op, found.time_ms, *found.values)

    def _commit(self, half: Half, rows: list[tuple[object, ...]], state: OfflineState | RealtimeState) -> None:
        """By delta-rs, without a job of Spark's."""
        noted = CommitProperties(custom_metadata={"userMetadata": to_user_metadata(state)})
        batch = record_batch(arrow_schema(self.spec, half), rows)
        write_deltalake(str(self.path(half)), batch, mode="append", commit_properties=noted)

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in the table's input folder."""
        path = self.folder / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def write_rows(self, rows: Iterable[Mapping[str, object]], name: str = "orders.json") -> Path:
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def job(self, segment: str | None = SEGMENT, **fields: object) -> JobSpec:
        """A job over the input folder; without a segment's name, of simple names."""
        named = {"segment_name_type": "fixed", "segment_name": segment} if segment else {}
        doc = {
            "source": "job-spec.yml",
            "job_type": "SegmentCreationAndTarPush",
            "input_dir": self.folder / "input",
            "table_name": self.spec.name,
            "data_format": "json",
            **named,
            **fields,
        }
        return JobSpec(**doc)  # type: ignore[arg-type]

    def rows(self, half: Half = Half.OFFLINE, *, hidden: bool = False) -> list[dict[str, object]]:
        """All stored rows; without hidden columns only those that are no delete markers."""
        import pyarrow.parquet as pq

        found: list[dict[str, object]] = []
        for file in open_half(self.path(half)).files:
            rows = pq.ParquetFile(file.path).read().to_pylist()
            found += [{"_hy_segment": file.segment, **row} for row in rows]
        if not hidden:
            keep = self.spec.schema.column_names
            found = [{name: row[name] for name in keep} for row in found if row["_hy_op"] == "row"]
        return sorted(found, key=lambda row: json.dumps(row, default=str, sort_keys=True))

    def segments(self) -> set[str]:
        return {file.segment for file in open_half(self.path(Half.OFFLINE)).files if file.rows}

    def visible(self) -> dict[object, dict[str, object]]:
        """What a query of an upsert table sees: the winning row of each key over both halves."""
        assert self.spec.upsert is not None
        boundary = open_half(self.path(Half.OFFLINE)).offline.boundary
        rows = self.rows(hidden=True)
        for row in self.rows(Half.REALTIME, hidden=True):
            key = PartitionKey(*(row[f"_hy_{part}"] for part in PartitionKey._fields))  # type: ignore[arg-type]
            if not boundary.covers(row["_hy_time"], key, row["_hy_offset"]):  # type: ignore[arg-type]
                rows.append(row)
        arrival = ("timestamp", "connector", "topic", "epoch", "partition", "offset")
        column = self.spec.upsert.comparison_column
        rows.sort(key=lambda row: (row[column], *(row[f"_hy_{part}"] for part in arrival)))
        winners = {row[self.spec.primary_key[0]]: row for row in rows}
        return {key: row for key, row in winners.items() if row["_hy_op"] == "row"}

    def staged(self) -> list[Path]:
        """What acts have left in the staging folder."""
        return [path for path in (self.layout.root / "staging").glob("*/*") if path.is_file()]

    def fingerprint(self) -> dict[str, str]:
        """Every file of both halves with its sha256."""
        files = [path for half in self.spec.halves for path in self.path(half).rglob("*") if path.is_file()]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def copied(template: Table, folder: Path) -> Table:
    """A table like this one in a folder of its own."""
    root = folder / "warehouse" / template.spec.name
    shutil.copytree(template.layout.root, root)
    return replace(template, layout=TableLayout(root), folder=folder)
