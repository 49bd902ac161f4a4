"""Following a Delta table of ours whose log has been cleaned. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.errors import DataError, NotFoundError, SpecError
from hybrid.flow.connectors.delta_source import open_delta, open_delta_after
from hybrid.lake.cleanup import expired_log, remove_expired
from hybrid.lake.log import open_half
from hybrid.spec.connectors import ChangeFeed, DeltaInput, DeltaMode
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
