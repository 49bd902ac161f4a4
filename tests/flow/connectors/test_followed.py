"""Following a Delta table of ours whose log has been cleaned. No JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.config.connectors import ChangeFeed, Connector, DeltaInput, DeltaMode
from hybrid.config.table_config import Half, MessageFormat, Partial, UpsertConfig
from hybrid.errors import DataError, NotFoundError, SpecError
from hybrid.flow.connectors.delta_changes import actions_of
from hybrid.flow.connectors.delta_files import DeltaFile, file_reader, files_of, stored_names
from hybrid.flow.connectors.delta_source import open_delta, open_delta_after
from hybrid.flow.connectors.history import HistoryProgress, _load_chunk
from hybrid.flow.connectors.source import SourcePiece
from hybrid.lake.cleanup import expired_log, remove_expired
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from tests.lake.aged import age
from tests.query.halves import Halves, Row, orders_spec


@pytest.mark.slow
def test_a_version_that_has_left_the_log_is_named(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec(halves=[Half.OFFLINE]))
    for number in range(14):
        halves.commit_offline([Row({"order_id": number}, number, None, segment=f"o{number}")])
    path = halves.layout.half(Half.OFFLINE)
    age(path, 40)
    DeltaTable(str(path), version=12).create_checkpoint()
    config = DeltaInput(uri=str(path), mode=DeltaMode.FOLLOW, version=3)
    pinned = open_delta(config, None).pinned
    assert open_delta_after(config, pinned, False) is not None
    half = open_half(path)
    now = round((path / "_delta_log" / f"{14:020d}.json").stat().st_mtime * 1000)
    found = expired_log(half, now)
    assert found.cut == 12
    remove_expired(half, found)
    with pytest.raises(DataError, match="does not reach back to version 4 any more"):
        open_delta_after(config, pinned, False)
    assert open_delta_after(config, {**pinned, "version": 12}, False) is not None
    with pytest.raises(NotFoundError, match="There is no Delta table"):
        open_delta(DeltaInput(uri=str(tmp_path / "none"), mode=DeltaMode.FOLLOW, version=3), None)


def test_a_relative_address_of_an_older_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors and the pinned version have the full path, so that a load goes on after the path is made absolute."""
    monkeypatch.chdir(tmp_path)
    relative = DeltaInput(uri="lake", mode=DeltaMode.SNAPSHOT)
    with pytest.raises(NotFoundError, match=f"There is no Delta table at {tmp_path}/lake."):
        open_delta(relative, None)
    write_deltalake("lake", pa.table({"id": [1]}))
    pinned = open_delta(relative, None).pinned
    assert pinned["uri"] == f"{tmp_path}/lake"
    for given in (pinned, {**pinned, "uri": "lake"}):
        assert open_delta(relative, given).pinned == open_delta(replace(relative, uri=pinned["uri"]), given).pinned
    with pytest.raises(DataError, match=f"not what the load began with .uri: {tmp_path}/other -> {tmp_path}/lake"):
        open_delta(relative, {**pinned, "uri": "other"})


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
    source = open_delta_after(config, pinned, True)
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
    source = open_delta_after(config, source.pinned, True)
    assert source is not None
    source.check(netted, "lake")


@pytest.mark.slow
def test_a_table_that_folds_takes_only_new_rows(tmp_path: Path) -> None:
    """A changed row would be summed up with the row that it is to replace."""
    config = DeltaInput(uri=str(tmp_path / "lake"), mode=DeltaMode.SNAPSHOT_AND_FOLLOW)
    write_deltalake(config.uri, pa.table({"order_id": [1, 2], "ts": [5, 5], "amount": [1.0, 1.0]}))
    keyed = orders_spec(upsert=True)
    folding = replace(keyed, upsert=UpsertConfig("ts", partial=Partial()))
    by_several = replace(keyed, upsert=UpsertConfig("ts", further_comparison_columns=("amount",)))
    first = open_delta(config, None)
    first.check(folding, "lake")
    write_deltalake(config.uri, pa.table({"order_id": [1], "ts": [6], "amount": [2.0]}), mode="append")
    added = open_delta_after(config, first.pinned, False)
    assert added is not None
    added.check(folding, "lake")
    for act in (
        lambda lake: lake.update({"amount": "9"}, predicate="order_id = 2"),
        lambda lake: lake.delete("ts = 6"),
    ):
        act(DeltaTable(config.uri))
        added = open_delta_after(config, added.pinned, False)
        assert added is not None
        added.check(keyed, "lake")
        added.check(by_several, "lake")  # its last row is shown as it is
        with pytest.raises(DataError, match=r"changes or deletes rows, and table 'orders' folds its rows") as refused:
            added.check(folding, "lake")
        assert refused.value.hint == "Load into a table of mode FULL."


def test_deletes_are_counted_only_where_the_connector_says_so(tmp_path: Path) -> None:
    """Also where the stream's are: what it follows may hold rows that it has not loaded."""
    config = DeltaInput(uri=str(tmp_path / "lake"), mode=DeltaMode.FOLLOW)
    write_deltalake(config.uri, pa.table({"order_id": [1, 2]}))
    pinned = open_delta(config, None).pinned
    DeltaTable(config.uri).delete("order_id = 1")
    source = open_delta_after(config, pinned, False)
    assert source is not None
    spec = orders_spec(time_column=None)
    assert spec.stream is not None
    netted = replace(spec, stream=replace(spec.stream, message=MessageFormat.CHANGE))
    assert netted.nets_deletes
    with pytest.raises(DataError, match="has no PRIMARY KEY that says which"):
        source.check(netted, "lake")


def test_a_merge_that_only_inserts_needs_no_way_to_delete(tmp_path: Path) -> None:
    """Its change data says nothing else than its files."""
    config = DeltaInput(uri=str(tmp_path / "lake"), mode=DeltaMode.SNAPSHOT_AND_FOLLOW)
    fed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(config.uri, pa.table({"order_id": [1, 2]}), configuration=fed)
    pinned = open_delta(config, None).pinned
    more = pa.table({"order_id": [2, 3]})
    merge = DeltaTable(config.uri).merge(more, "s.order_id = t.order_id", source_alias="s", target_alias="t")
    merge.when_not_matched_insert_all().execute()
    assert '"cdc"' in (tmp_path / "lake" / "_delta_log" / f"{1:020d}.json").read_text()
    source = open_delta_after(config, pinned, False)
    assert source is not None and [piece.rows for piece in source.pieces] == [1]
    source.check(orders_spec(time_column=None), "lake")


def test_another_filter_where_rows_are_counted(tmp_path: Path) -> None:
    config = DeltaInput(uri=str(tmp_path / "lake"), mode=DeltaMode.SNAPSHOT_AND_FOLLOW, change_feed=ChangeFeed.AUTO)
    write_deltalake(config.uri, pa.table({"order_id": [1, 2]}))
    for given in (None, "order_id > 1"):
        before = replace(config, filter=given)
        pinned = open_delta(before, None).pinned
        assert open_delta_after(before, pinned, True) is None
        other = replace(config, filter="order_id > 0")
        with pytest.raises(DataError, match=r"The filter of the Delta table at .* is another one than before"):
            open_delta_after(other, pinned, True)
        assert open_delta_after(other, pinned, False) is None


def test_parts_that_are_others_than_the_load_began_with() -> None:
    """Else nothing would be left to load, and the load would never be complete."""

    class Other:
        pieces = (SourcePiece("version 4", None, 1),)

    before: Any = HistoryProgress({"version": 4}, pieces=1, pieces_all=3)
    nothing: Any = None
    source: Any = Other()
    with pytest.raises(DataError, match=r"'lake' has 1 parts .* where 3 were to be loaded, of which 1 are"):
        _load_chunk(TableContext(nothing, orders_spec(), nothing), "lake", source, nothing, before, 10)


def mapped(name: str, kind: str, stored: str) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {
        "delta.columnMapping.id": ord(stored[-1]), "delta.columnMapping.physicalName": stored}}  # fmt: skip


def test_columns_of_paths_by_one_name(tmp_path: Path) -> None:
    """Two that were renamed to each other's names, and an instant, by the table's actions and by its log."""
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    fields = [mapped("id", "long", "id"), mapped("a", "string", "b"), mapped("b", "string", "a")]
    fields.append(mapped("t", "timestamp", "t"))
    schema = {"type": "struct", "fields": fields}
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    values = {"b": "A", "a": "B", "t": "2024-01-01 00:00:00"}
    add = {"path": "x.parquet", "partitionValues": values, "size": (tmp_path / "x.parquet").stat().st_size,
           "modificationTime": 1, "dataChange": True}  # fmt: skip
    about = {"id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema),
             "partitionColumns": ["a", "b", "t"], "configuration": {"delta.columnMapping.mode": "name"},
             "createdTime": 1}  # fmt: skip
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    log.parent.mkdir()
    lines = ({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": about}, {"add": add})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    stored = stored_names(schema)
    (by_table,), _ = files_of(DeltaTable(str(tmp_path)))
    by_log = actions_of(log.read_text(), stored=stored).added["x.parquet"]
    read = StructType(
        [StructField("a", StringType()), StructField("b", StringType()), StructField("t", TimestampType())]
    )

    def rows(file: DeltaFile) -> list[dict[str, Any]]:
        reader = file_reader(str(tmp_path), {}, {0: file}, read, stored)
        return [row for batch in reader([pa.record_batch({"number": [0]})]) for row in batch.to_pylist()]

    assert rows(by_table) == rows(by_log) == [{"a": "A", "b": "B", "t": datetime(2024, 1, 1, tzinfo=UTC)}]
