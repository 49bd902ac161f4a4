"""Reading a half without a JVM: own and foreign commits, versions, what is no table."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, DataError, NotFoundError
from hybrid.lake.create import arrow_schema, create_half
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import newest_version, own_states, state_at
from hybrid.operations.tables.create import check_free, create_halves
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.table.boundary import INFINITE, Boundary
from hybrid.table.columns import SEGMENT
from hybrid.table.state import OfflineState, next_act, to_user_metadata

TIME = TimeFormat.parse("1:MILLISECONDS:EPOCH", "test", "ts", DataType.LONG)
FIELDS = (
    FieldSpec("order-id", DataType.INT, FieldKind.DIMENSION),
    FieldSpec("ts", DataType.LONG, FieldKind.DATE_TIME, time_format=TIME),
)
OFFLINE_ONLY = TableSpec("orders", Schema("orders", FIELDS), frozenset({Half.OFFLINE}), "ts", None, None, None)


@pytest.fixture
def layout(tmp_path: Path) -> TableLayout:
    return TableLayout(tmp_path / "wäre house" / "orders")


@pytest.fixture
def half(layout: TableLayout) -> Path:
    create_halves(layout, OFFLINE_ONLY, 0)
    return layout.half(Half.OFFLINE)


def append(half: Path, metadata: str | None = None, segment: str = "orders_1_1_0") -> None:
    """A commit by another tool, or with our state one as ours."""
    schema = arrow_schema(OFFLINE_ONLY, Half.OFFLINE)
    rows = {name: [None] for name in schema.names} | {SEGMENT: [segment], "ts": [5]}
    told = {"userMetadata": metadata} if metadata is not None else {"note": "a\u2028b\x85c"}
    properties = CommitProperties(custom_metadata=told)
    write_deltalake(str(half), pa.table(rows, schema=schema), mode="append", commit_properties=properties)


def test_a_new_half_covers_nothing(half, layout):
    snapshot = open_half(half)
    assert (snapshot.version, snapshot.files, snapshot.offline.act.number) == (0, (), 0)
    assert snapshot.offline.boundary == Boundary()
    timeless = replace(OFFLINE_ONLY, name="timeless", time_column=None)
    create_halves(TableLayout(layout.root.parent / "timeless"), timeless, 0)
    assert open_half(layout.root.parent / "timeless" / "OFFLINE").offline.boundary == Boundary(INFINITE)


@pytest.mark.slow
def test_foreign_commits_are_stepped_over(half):
    first = open_half(half).offline
    act = next_act(first, "move-1", "move", "", {})
    append(half, to_user_metadata(replace(first, act=act, boundary=Boundary(7))))
    append(half)
    append(half, "somebody's own words")
    DeltaTable(str(half)).optimize.compact()
    DeltaTable(str(half)).create_checkpoint()
    snapshot = open_half(half)
    assert snapshot.version == 4
    assert snapshot.offline.boundary == Boundary(7)
    assert sum(file.rows for file in snapshot.files) == 3
    assert open_half(half, 0).offline.boundary == Boundary()
    assert [version for version, _ in own_states(half, 4)] == [1, 0]
    assert state_at(half, 2) is None and state_at(half, 99) is None
    assert newest_version(half, 0) == newest_version(half, 4) == 4


def test_what_is_no_table_of_ours(tmp_path):
    with pytest.raises(NotFoundError):
        open_half(tmp_path / "nothing")
    write_deltalake(str(tmp_path / "other"), pa.table({"a": [1]}))
    with pytest.raises(DataError, match="not one of our tables"):
        _ = open_half(tmp_path / "other").state


def test_files_tell_segment_rows_and_statistics(half):
    append(half, segment="orders_5_5_0")
    (file,) = open_half(half).files
    assert (file.segment, file.rows, file.low["ts"], file.high["ts"]) == ("orders_5_5_0", 1, 5, 5)
    assert Path(file.path).exists()


def test_a_creation_that_died_is_laid_anew(half, layout):
    check_free(layout, OFFLINE_ONLY)
    create_halves(layout, OFFLINE_ONLY, 0)
    for entry in (half / "_delta_log").iterdir():  # as if it had died before its log entry
        entry.unlink()
    check_free(layout, OFFLINE_ONLY)
    create_halves(layout, OFFLINE_ONLY, 0)
    assert open_half(half).version == 0


def test_no_creation_removes_rows(half, layout):
    first = open_half(half).offline
    append(half, to_user_metadata(replace(first, act=next_act(first, "move-1", "move", "", {}))))
    for create in (lambda: check_free(layout, OFFLINE_ONLY), lambda: create_halves(layout, OFFLINE_ONLY, 0)):
        with pytest.raises(ConflictError, match="holds data of an earlier table 'orders'"):
            create()
    assert sum(file.rows for file in open_half(half).files) == 1


def test_statistics_columns_are_named_as_delta_parses_them(half):
    configuration = DeltaTable(str(half)).metadata().configuration
    assert configuration["delta.dataSkippingStatsColumns"].endswith(",_hy_time,ts")
    keyed = replace(OFFLINE_ONLY, schema=Schema("orders", FIELDS, ("order-id",)))
    create_half(half.parent / "keyed", keyed, Half.OFFLINE, OfflineState(open_half(half).state.act))
    configuration = DeltaTable(str(half.parent / "keyed")).metadata().configuration
    assert configuration["delta.dataSkippingStatsColumns"].endswith(",`order-id`,ts")
    assert configuration["delta.enableExpiredLogCleanup"] == "false"
