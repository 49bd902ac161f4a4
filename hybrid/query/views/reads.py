"""The input of a view: a table's files, boundary and rules at one revision, for code in any engine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.evolution import is_wider
from hybrid.config.table_config import TableSpec
from hybrid.errors import TIMEOUT, QueryError
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.query.plan import PinnedTable, plan_query
from hybrid.query.query_table import QueryTable
from hybrid.query.scan import Scan, shown_default
from hybrid.query.tail import KafkaTail, NoTail, TailSource
from hybrid.query.time_travel import refuse_missing
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType
from hybrid.sql.statement import parse_statement
from hybrid.table.boundary import Offsets
from hybrid.table.columns import ARRIVAL, OP

if TYPE_CHECKING:
    import pyarrow as pa

_DAY_MS = 86_400_000


@dataclass(frozen=True)
class ViewPart:
    """The files of some rows of one half, and the columns that at least one of these files has."""

    name: str
    files: Sequence[str]
    columns: frozenset[str]


@dataclass(frozen=True)
class ViewReads:
    """A table at one revision. `parts` are OFFLINE, REALTIME and LATER (the tail's rows that are committed by now).

    `evolved`: some file lacks a column of the table. `added`: columns that rows may lack; `widened`: columns that some
    file holds in a narrower type. `now_ms` is the present time.
    """

    pinned: PinnedTable
    scan: Scan
    revision: str
    parts: Mapping[str, ViewPart]
    evolved: bool
    added: frozenset[str]
    widened: frozenset[str]
    now_ms: int

    @property
    def spec(self) -> TableSpec:
        """The table's definition."""
        return self.scan.spec

    @property
    def fields(self) -> list[FieldSpec]:
        """The user's columns as `select *` lists them."""
        return sorted(self.spec.schema.fields, key=lambda field: field.name)

    @property
    def is_append(self) -> bool:
        """Whether every row that the boundary shows is visible: no keys, and no deletes of equal rows."""
        return self.spec.upsert is None and not self.scan.nets

    @property
    def hidden(self) -> tuple[str, ...]:
        """The hidden columns that decide which rows of a key, or of equal rows, are visible."""
        return () if self.is_append else (OP, *ARRIVAL)

    @property
    def starts(self) -> Offsets:
        """The offsets that the pinned REALTIME version had reached, for the partitions of the tail."""
        realtime = self.pinned.halves.realtime
        reached = realtime.realtime.offsets if realtime is not None else {}
        return {key: reached.get(key, 0) for key in self.scan.ends}

    def default_of(self, field: FieldSpec) -> str | None:
        """The default shown for a null of the column, as text; of a list, its one element. None: nulls are shown."""
        return shown_default(field) if field.name in self.added and not self.spec.null_handling else None

    @cached_property
    def header(self) -> list[str]:
        """The comment at the head of the code, in lines: the revision, and how long its files are kept."""
        days = self.spec.revert_window_ms / _DAY_MS
        return [
            f"Table '{self.spec.name}' at one revision, as hybrid's queries show it:",
            f"  {self.revision}",
            "Rows that arrive later are not in it, nor rows that were not committed yet. Its files are kept for",
            f"{days:g} days after they are replaced, unless a purge or a VACUUM with another retention removes them.",
        ]


class ViewTime:
    """The time limit for making a view: `timeout_ms` from now on; None: no limit."""

    def __init__(self, timeout_ms: int | None = None) -> None:
        self._timeout_ms, self._began = timeout_ms, time.monotonic()

    def check(self) -> None:
        """QueryError when the time is over."""
        if self._timeout_ms is not None and time.monotonic() > self._began + self._timeout_ms / 1000:
            raise QueryError(f"The view took longer than {self._timeout_ms} ms.", pinot_code=TIMEOUT)

    def tail(self) -> TailSource:
        """The tail, read for at most half of the time: the other half is for the files."""
        if self._timeout_ms is None:
            return KafkaTail()
        return KafkaTail().ending_by(self._began + self._timeout_ms / 2000)


def view_reads(table: QueryTable, now_ms: int, as_of: str | None = None, bound: ViewTime | None = None) -> ViewReads:
    """Collects what a view reads: the newest commits, or a revision or time.

    QueryError when files do not hold all of its rows, or when it takes longer than `bound` allows.
    """
    name, bound = table.spec.name, bound or ViewTime()
    # Only a revision that names a tail has one, because views read files and not Kafka.
    tail = NoTail() if as_of is None else bound.tail()
    plan = plan_query(parse_statement(f'select * from "{name}"'), _One(table), tail, now_ms, as_of=as_of)
    bound.check()
    ref = plan.refs[0]
    if ref.pinned.tail_rows is not None:
        raise QueryError(
            f"The revision has {ref.pinned.tail_rows.count} rows of '{name}' that are not committed yet: no file "
            "holds them.",
            hint=f"hybrid ingest {name} --until-caught-up",
        )
    scan = ref.scan
    files = {"OFFLINE": scan.offline, "REALTIME": scan.realtime, "LATER": scan.later}
    refuse_missing(name, [file for group in files.values() for file in group])
    stored = {half: [_columns(file.path, bound) for file in group] for half, group in files.items() if group}
    there = {half: [frozenset(file_columns) for file_columns in columns] for half, columns in stored.items()}
    table_columns = frozenset(table.spec.schema.column_names)
    parts = {
        half: ViewPart(half, [str(Path(file.path).absolute()) for file in files[half]], frozenset().union(*columns))
        for half, columns in there.items()
    }
    kinds = [file_columns for columns in stored.values() for file_columns in columns]
    widened = frozenset(
        field.name
        for field in table.spec.schema.fields
        if any(_is_narrower(file_columns, field) for file_columns in kinds)
    )
    lacked = frozenset().union(
        *(table_columns - file_columns for columns in there.values() for file_columns in columns)
    )
    added = lacked | (ref.pinned.grown or frozenset())
    return ViewReads(ref.pinned, scan, str(plan.revision), parts, bool(lacked), added, widened, now_ms)


def stored_columns(half: HalfSnapshot) -> frozenset[str]:
    """The columns of a half at its version."""
    return frozenset(str(field["name"]) for field in json.loads(half.columns)["fields"])


def version_with(reads: ViewReads, later: ViewPart) -> HalfSnapshot:
    """The REALTIME version that holds the rows of the tail. QueryError when their files have been rewritten since."""
    realtime, version = reads.pinned.halves.realtime, reads.pinned.later.version
    assert realtime is not None
    snapshot = open_half(realtime.path, version)
    there = {str(Path(file.path).absolute()) for file in snapshot.files}
    if not there.issuperset(later.files):
        raise QueryError(
            f"No version of REALTIME of '{reads.spec.name}' holds the tail of the revision as it came: its files were "
            "laid anew meanwhile.",
            hint="Ask for the versions alone, or for DuckDB or Polars, which read the files.",
        )
    return snapshot


class _One:
    """A table source with one table."""

    def __init__(self, table: QueryTable) -> None:
        self._table = table

    def names(self) -> list[str]:
        return [self._table.spec.name]

    def open(self, name: str) -> QueryTable:
        return self._table


def _columns(path: str, bound: ViewTime) -> Mapping[str, pa.DataType]:
    import pyarrow.parquet as pq

    bound.check()
    return {field.name: field.type for field in pq.read_schema(path)}


def _is_narrower(stored: Mapping[str, pa.DataType], field: FieldSpec) -> bool:
    """Whether a file holds a column in a narrower type than the table's."""
    kind = stored.get(field.name)
    if kind is None:
        return False
    stored_type = kind.value_type if not field.single_value else kind
    return any(is_wider(narrow, field.data_type) and stored_type == narrow.arrow_type() for narrow in DataType)
