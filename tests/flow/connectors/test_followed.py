"""Following a Delta table of ours whose log has been cleaned. No JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.errors import DataError, NotFoundError, SpecError
from hybrid.flow.connectors.delta_source import open_delta, open_delta_after
from hybrid.lake.cleanup import expired_log, remove_expired
from hybrid.lake.log import open_half
from hybrid.spec.connectors import ChangeFeed, Connector, DeltaInput, DeltaMode
from hybrid.spec.table_config import Half
from tests.lake.aged import age
from tests.query.halves import Halves, Row, orders_spec


def test_a_version_that_has_left_the_log_is_named(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec(halves=[Half.OFFLINE]))
    for number in range(14):
        halves.commit_offline([Row({"order_id": number}, number, None, segment=f"o{number}")])
    path = halves.layout.half(Half.OFFLINE)
    age(path, 40)
    DeltaTable(str(path), version=12).create_checkpoint()
    config = DeltaInput(uri=str(path), mode=DeltaMode.FOLLOW, version=3)
    pinned = open_delta(config, None).pinned
    assert open_delta_after(config, pinned) is not None
    half = open_half(path)
    now = round((path / "_delta_log" / f"{14:020d}.json").stat().st_mtime * 1000)
    found = expired_log(half, now)
    assert found.cut == 12
    remove_expired(half, found)
    with pytest.raises(DataError, match="does not reach back to version 4 any more"):
        open_delta_after(config, pinned)
    assert open_delta_after(config, {**pinned, "version": 12}) is not None
    with pytest.raises(NotFoundError, match="There is no Delta table"):
        open_delta(DeltaInput(uri=str(tmp_path / "none"), mode=DeltaMode.FOLLOW, version=3), None)


def test_change_data_that_is_required(tmp_path: Path) -> None:
    config = DeltaInput(uri=str(tmp_path / "lake"), mode=DeltaMode.FOLLOW, change_feed=ChangeFeed.REQUIRE)
    write_deltalake(config.uri, pa.table({"id": [1]}))
    with pytest.raises(SpecError, match="keeps no change data"):
        open_delta(config, None)
    DeltaTable(config.uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert open_delta(config, None).pieces == []


def test_columns_that_change_where_rows_are_counted(tmp_path: Path) -> None:
    """A row that was loaded without a column is not equal to what the source says of it later."""
    config = DeltaInput(uri=str(tmp_path / "lake"), mode=DeltaMode.SNAPSHOT_AND_FOLLOW, change_feed=ChangeFeed.AUTO)
    write_deltalake(config.uri, pa.table({"order_id": [1]}))
    pinned = open_delta(config, None).pinned
    more = pa.table({"order_id": [2], "customer": ["a"], "other": [5]})
    write_deltalake(config.uri, more, mode="append", schema_mode="merge")
    source = open_delta_after(config, pinned)
    assert source is not None
    spec = orders_spec(time_column=None)
    source.check(spec, "lake")
    fields = tuple(field for field in spec.schema.fields if field.name in {"order_id", "customer"})
    lake = Connector("lake", config)
    netted = replace(spec, schema=replace(spec.schema, fields=fields), connectors=(lake,))
    assert netted.nets_deletes
    with pytest.raises(DataError, match=r"Version 1 .* changes its columns \(customer\)"):
        source.check(netted, "lake")
    write_deltalake(config.uri, more, mode="append")
    source = open_delta_after(config, source.pinned)
    assert source is not None
    source.check(netted, "lake")
