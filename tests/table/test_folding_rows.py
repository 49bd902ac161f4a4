"""What the decoder lets through to tables that fold: one comparison value in a row, one row of a key in a message."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from hybrid.config.table_config import (
    Half,
    MessageFormat,
    Partial,
    Records,
    Strategy,
    StreamConfig,
    TableSpec,
    UpsertConfig,
)
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Rejected
from hybrid.schema.ingestion import IngestionConfig
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.query.halves import orders_spec


def several(**stream: Any) -> TableSpec:
    """Compared by v1 and v2."""
    extra = [FieldSpec(name, DataType.LONG, FieldKind.METRIC) for name in ("v1", "v2")]
    spec = orders_spec(upsert=True, deletes=True, extra=extra)
    upsert = UpsertConfig("v1", "gone", further_comparison_columns=("v2",))
    return replace(spec, upsert=upsert, null_handling=True, stream=StreamConfig(("orders",), "", **stream))


def message(**values: Any) -> bytes:
    return json.dumps({"order_id": 1, "ts": 5, **values}).encode()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"v1": 1}, None),
        ({"v1": None, "v2": 0}, None),
        ({"v2": 1, "gone": True}, None),
        ({}, "Columns 'v1' and 'v2' are missing or null"),
        ({"v1": None, "gone": True}, "Columns 'v1' and 'v2' are missing or null"),
        ({"v1": 1, "v2": 2}, "Columns 'v1' and 'v2' have a value"),
    ],
)
def test_a_row_has_a_value_in_just_one_of_the_comparison_columns(values: dict[str, Any], reason: str | None) -> None:
    """One message or many at once: Spark's workers and the tail take either way."""
    decoder = pickle.loads(pickle.dumps(Decoder(several())))
    found = decoder.decode(message(**values))
    batch = decoder.decode_batch([message(**values)] * 2000)
    if reason is None:
        assert isinstance(found, Decoded) and len(batch.rows) == 2000
        return
    assert (
        isinstance(found, Rejected)
        and found.reason == f"{reason}: a row has a value in just one of the comparison columns."
    )
    assert not batch.rows and set(batch.reasons) == {found.reason}


def test_a_delete_by_key_has_a_comparison_value_too() -> None:
    decoder = Decoder(several(message=MessageFormat.CHANGE))
    deleted = decoder.decode(json.dumps({"delete": {"order_id": 1, "v2": 7}}).encode(), 9)
    assert isinstance(deleted, Decoded) and deleted.is_delete and deleted.time_ms == 9
    refused = decoder.decode(json.dumps({"delete": {"order_id": 1}}).encode(), 9)
    assert isinstance(refused, Rejected) and "are missing or null" in refused.reason


def test_a_delete_by_key_of_a_table_that_folds_has_the_version_that_it_is_compared_by() -> None:
    spec = replace(several(message=MessageFormat.CHANGE), upsert=UpsertConfig("v1", "gone", partial=Partial()))
    reasons = [
        Decoder(spec).decode(json.dumps({"delete": {"order_id": 1, **more}}).encode(), 9) for more in ({}, {"v1": 2})
    ]
    assert isinstance(reasons[0], Rejected) and "Column 'v1' is missing or null" in reasons[0].reason
    assert isinstance(reasons[1], Decoded) and reasons[1].is_delete


def test_of_one_message_each_key_has_one_row() -> None:
    """Rows of a key are folded by their offsets, and those of a message share one: none is lost silently."""
    spec = replace(several(records=Records.ARRAY), upsert=UpsertConfig("ts", "gone", partial=Partial()))
    rows = [{"order_id": key, "ts": ts} for key, ts in ((1, 5), (2, 5), (1, 6), (1, 7))]
    first, other, *again = Decoder(spec).decode_all(json.dumps(rows).encode())
    assert isinstance(first, Decoded) and isinstance(other, Decoded)
    reasons = [one.reason for one in again if isinstance(one, Rejected)]
    assert [reason.partition(":")[0] for reason in reasons] == ["Record 3 of 4", "Record 4 of 4"]
    assert "An earlier record of the message has the same key" in reasons[0]


def test_an_update_that_changes_a_key_is_taken_whole_or_not_at_all() -> None:
    """Its second row alone would be rejected, for the key that the record before it brought, and the first deleted."""
    of = StreamConfig(("orders",), "", message=MessageFormat.DEBEZIUM, records=Records.ARRAY)
    spec = replace(several(), upsert=UpsertConfig("ts", partial=Partial()), stream=of)

    def told(*envelopes: tuple[str, int | None, int | None]) -> list[Any]:
        message = [
            {"op": op, **{name: {"order_id": key, "ts": 5} for name, key in (("before", old), ("after", new)) if key}}
            for op, old, new in envelopes
        ]
        found = Decoder(spec).decode_all(json.dumps(message).encode(), 9)
        return [(one.values[0], one.is_delete) if isinstance(one, Decoded) else one.reason[:16] for one in found]

    assert told(("c", None, 2), ("u", 1, 2), ("c", None, 3)) == [(2, False), "Record 2 of 3: A", (3, False)]
    assert told(("u", 1, 2), ("c", None, 2), ("d", 1, None)) == [
        (1, True), (2, False), "Record 2 of 3: A", "Record 3 of 3: A"
    ]  # fmt: skip
    assert told(("c", None, 2), ("u", 1, 2), ("c", None, 1)) == [(2, False), "Record 2 of 3: A", "Record 3 of 3: A"]


def updating(strategies: dict[str, Strategy] | None = None, **more: Any) -> Decoder:
    spec = replace(several(message=MessageFormat.CHANGE), upsert=UpsertConfig("ts", partial=Partial(strategies or {})))
    names = {"v1": replace(spec.schema.find("v1"), not_null=True, missing=(7,))}  # type: ignore[type-var]
    fields = tuple(names.get(field.name, field) for field in spec.schema.fields)
    return Decoder(replace(spec, schema=replace(spec.schema, fields=fields)), **more)


def updated(decoder: Decoder, **values: Any) -> Any:
    found = decoder.decode(json.dumps({"update": values}).encode(), 9)
    if isinstance(found, Rejected):
        return found.reason
    assert isinstance(found, Decoded) and not found.is_delete
    return dict(zip(decoder._spec.schema.column_names, found.values, strict=True))


@pytest.mark.parametrize("half", list(Half))
def test_an_update_is_the_row_with_the_columns_that_it_names(half: Half) -> None:
    """Neither defaults nor NOT NULL fill in what it does not name; from a stream and from files alike."""
    decoder = pickle.loads(pickle.dumps(updating(half=half, message=MessageFormat.CHANGE)))
    found = updated(decoder, order_id=1, ts=5, v2=3)
    assert found == {name: None for name in found} | {"order_id": 1, "ts": 5, "v2": 3}
    inserted = decoder.decode(b'{"insert": {"order_id": 1, "ts": 5, "v2": 3}}', 9)
    assert isinstance(inserted, Decoded) and 7 in inserted.values
    assert "part of the primary key" in updated(decoder, ts=5, v2=3)
    assert "Column 'ts' is missing or null" in updated(decoder, order_id=1, v2=3)
    assert "Column 'v2'" in updated(decoder, order_id=1, ts=5, v2="x")


def test_a_column_of_an_update_that_is_stored_as_null() -> None:
    """An empty list, and with continueOnError what does not fit: it would change nothing, without a word."""
    spec = several(message=MessageFormat.CHANGE)
    tags = FieldSpec("tags", DataType.STRING, FieldKind.DIMENSION, single_value=False)
    spec = replace(spec, schema=replace(spec.schema, fields=(*spec.schema.fields, tags)))
    lenient = {Half.REALTIME: IngestionConfig(continue_on_error=True)}

    def decoder(strategy: Strategy, **more: Any) -> Decoder:
        return Decoder(replace(spec, upsert=UpsertConfig("ts", partial=Partial({"tags": strategy})), **more))

    for strategy in (Strategy.OVERWRITE, Strategy.UNION):
        reason = updated(decoder(strategy), order_id=1, ts=5, tags=[])
        assert reason.startswith("Column 'tags': an update to null would leave the value as it is")
        assert updated(decoder(strategy), order_id=1, ts=5, tags=["a"])["tags"] == ["a"]
    assert updated(decoder(Strategy.FORCE_OVERWRITE), order_id=1, ts=5, tags=[])["tags"] is None
    reason = updated(decoder(Strategy.OVERWRITE, ingestion=lenient), order_id=1, ts=5, v2="x")
    assert reason.startswith("Column 'v2': an update to null")


def test_an_update_that_folding_would_read_otherwise_is_rejected() -> None:
    assert updated(updating(), order_id=1, ts=5, v2=None) == (
        "Column 'v2': an update to null would leave the value as it is, by its strategy OVERWRITE; FORCE_OVERWRITE "
        "takes nulls."
    )
    forced = updating({"v2": Strategy.FORCE_OVERWRITE})
    assert updated(forced, order_id=1, ts=5, v2=None)["v2"] is None
    assert updated(forced, order_id=1, ts=5, v1=2).startswith("Column 'v2' is missing in an update")
    several_columns = Decoder(several(message=MessageFormat.CHANGE))
    assert "needs upsertConfig mode PARTIAL" in updated(several_columns, order_id=1, ts=5, v1=2)
