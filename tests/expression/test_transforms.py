"""The decoder with transforms and a filter: what it makes of messages and of records of files."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from hybrid.config.table_config import Half, TableSpec
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Filtered, Outcome, Rejected
from hybrid.schema.ingestion import IngestionConfig, Transform
from tests.records.test_decode import table

COLUMNS = {"id": "INT", "name": "STRING", "price": "DOUBLE", "cents": "INT"}
NOW = 1_700_000_000_000


def spec(
    columns: dict[str, str] | None = None,
    *,
    where: str | None = None,
    lenient: bool = False,
    half: Half = Half.REALTIME,
    table_options: dict[str, Any] | None = None,
    **transforms: str,
) -> TableSpec:
    config = IngestionConfig(tuple(Transform(*one) for one in transforms.items()), where, lenient)
    return replace(table(columns or COLUMNS, **(table_options or {})), ingestion={half: config})


def decode(made: TableSpec, now_ms: int | None = NOW, **record: object) -> Outcome:
    return Decoder(made).decode(json.dumps({"id": 1, "ts": 5, **record}).encode(), now_ms)


def row(outcome: Outcome) -> dict[str, object]:
    assert isinstance(outcome, Decoded), outcome
    return dict(zip([*COLUMNS, "ts"], outcome.values, strict=True))


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome, Rejected), outcome
    assert outcome.reason.endswith(".") and outcome.reason.encode()
    return outcome.reason


def test_a_column_is_filled_from_fields_outside_the_schema() -> None:
    made = spec(name="concat(first, last, ' ')", price="cents / 100", ts="fromEpochSeconds(user.seconds)")
    found = decode(made, first="Ada", last="L", cents=250, user={"seconds": 7}, ts=None)
    assert row(found) == {"id": 1, "name": "Ada L", "price": 2.5, "cents": 250, "ts": 7000}
    assert isinstance(found, Decoded) and found.time_ms == 7000


def test_what_the_record_has_stays() -> None:
    made = spec(name="upper(other)", ts="fromEpochSeconds(seconds)")
    assert row(decode(made, name="kept", other="x", seconds=9)) | {"cents": 0} == {
        "id": 1, "name": "kept", "price": float("-inf"), "cents": 0, "ts": 5,
    }  # fmt: skip
    assert row(decode(made, name="", other="x"))["name"] == "", "an empty text is a value"
    assert row(decode(made, name=None, other="x"))["name"] == "X"


def test_an_object_or_list_is_replaced_by_another_kind_of_value() -> None:
    made = spec(name="jsonPathString(raw, '$.n')")
    assert row(decode(made, name={"n": 1}, raw='{"n": "x"}'))["name"] == "x"
    assert row(decode(made, name={"n": 1}))["name"] == "null", "also by a null, as in Pinot"
    assert row(decode(made, name={"n": 1}, raw="{"))["name"] == '{"n":1}', "but not by an error"
    lists = spec(name="split(raw, ',')")
    assert row(decode(lists, name=["a"], raw="b,c"))["name"] == '["a"]', "a list is a list already"


def test_a_whole_number_column_cuts_what_is_computed() -> None:
    made = spec(cents="price * 100 + 0.9")
    assert row(decode(made, price=1.0))["cents"] == 100
    assert row(decode(made, price=-1.0))["cents"] == -99
    assert "1.5 does not fit" in reason(decode(made, cents=1.5)), "what was sent is not cut"
    assert row(decode(spec(cents="price"), price=1.9))["cents"] == 1
    exact = spec(cents="CAST(raw AS BIG_DECIMAL) * 100")
    assert row(decode(exact, raw="1.005"))["cents"] == 100 and row(decode(exact, raw="-1.009"))["cents"] == -100
    assert "does not fit" in reason(decode(exact, raw="99999999999999999"))
    assert "does not fit" in reason(decode(spec(cents="1 / 0"))), "an infinity is no INT"
    assert row(decode(spec(price="1 / 0")))["price"] == float("inf")


def test_transforms_build_on_one_another() -> None:
    made = spec(name="doc.kind", doc="jsonStringToMap(raw)")
    steps = IngestionConfig(made.ingestion[Half.REALTIME].transforms[::-1])
    found = decode(replace(made, ingestion={Half.REALTIME: steps}), raw='{"kind": "k"}')
    assert row(found)["name"] == "k"


def test_nulls_become_the_default_or_stay() -> None:
    assert row(decode(spec(name="upper(missing)")))["name"] == "null"
    kept = spec(name="upper(missing)", table_options={"nulls": True})
    assert row(decode(kept))["name"] is None


def test_a_failing_transform_rejects_the_row_with_column_and_expression() -> None:
    made = spec(ts="fromDateTime(day, 'yyyy-MM-dd')")
    assert reason(decode(made, ts=None, day="soon")) == (
        "Column 'ts': the transform 'fromDateTime(day, 'yyyy-MM-dd')' failed: \"soon\" does not fit the date pattern."
    )
    assert "Column 'ts' is missing or null" in reason(decode(made, ts=None))
    assert "\\ud800" in reason(decode(made, ts=None, day="\ud800"))
    long = spec(name="x + " * 90 + "1")
    assert len(reason(decode(long, x="soon"))) < 400


def test_with_continue_on_error_what_fails_is_null() -> None:
    made = spec(name="toEpochDays(x)", price="s + 1", lenient=True)
    assert row(decode(made, x="soon", s="text", cents="no number")) == {
        "id": 1, "name": "null", "price": float("-inf"), "cents": -(2**31), "ts": 5,
    }  # fmt: skip
    assert "'ts'" in reason(decode(made, ts="soon")), "a row needs its time all the same"
    upsert = {"mode": "FULL", "comparisonColumn": "cents"}
    keyed = spec(lenient=True, table_options={"key": ("id",), "upsert": upsert})
    assert "'id'" in reason(decode(keyed, id="x", cents=1)) and "'cents'" in reason(decode(keyed, cents="x"))
    assert "not one JSON object" in reason(Decoder(made).decode(b"{"))


def test_keys_and_comparison_columns_can_be_computed() -> None:
    upsert = {"mode": "FULL", "comparisonColumn": "cents", "deleteRecordColumn": "gone"}
    made = spec({**COLUMNS, "gone": "BOOLEAN"}, id="jsonPathLong(doc, '$.id')", cents="version", gone="op = 'd'",
                table_options={"key": ("id",), "upsert": upsert})  # fmt: skip
    found = decode(made, id=None, doc={"id": 7}, version=3, op="d")
    assert isinstance(found, Decoded) and found.values[0] == 7 and found.values[3] == 3 and found.is_delete
    assert "part of the primary key" in reason(decode(made, id=None, doc=None, version=3))


def test_a_filter_drops_what_is_true_for_it_and_only_that() -> None:
    made = spec(where="cents < 0 OR name = 'test'")
    assert isinstance(decode(made, cents=-1), Filtered) and isinstance(decode(made, name="test"), Filtered)
    assert isinstance(decode(made, cents=5, name="x"), Decoded)
    assert isinstance(decode(made), Decoded), "null is not true"
    assert isinstance(decode(spec(where="cents"), cents=1), Decoded), "neither is 1"
    assert isinstance(decode(spec(where="flag"), flag=True), Filtered)


def test_a_filter_sees_what_transforms_made_but_not_what_conversion_makes() -> None:
    made = spec(where="price > 2 AND cents = '250'", price="cents / 100")
    assert isinstance(decode(made, cents="250"), Filtered)
    assert isinstance(decode(spec(where="id IS NULL AND ts IS NULL"), id=None, ts=None), Filtered), (
        "before it is rejected"
    )
    failing = spec(where="cents < 0", price="s + 1")
    assert "Column 'price'" in reason(decode(failing, s="x", cents=-1)), "transforms come first"


def test_a_failing_filter_rejects_the_row_or_keeps_it() -> None:
    assert reason(decode(spec(where="name > 5"), name="Ada")) == (
        "The filter 'name > 5' failed: \"Ada\", which is compared with 5, is not a number."
    )
    assert row(decode(spec(where="name > 5", lenient=True), name="Ada"))["name"] == "Ada"


def test_now_is_the_messages_time() -> None:
    made = spec(ts="now()", where="at < ago('PT1H')")
    found = decode(made, NOW, ts=None, at=NOW)
    assert isinstance(found, Decoded) and found.time_ms == NOW
    assert isinstance(decode(made, NOW, at=NOW - 3_600_001), Filtered)
    assert "it is not known what counts as now" in reason(decode(made, None, ts=None))


def test_a_half_without_a_config_takes_records_as_they_are() -> None:
    made = spec(where="TRUE", half=Half.OFFLINE)
    assert isinstance(decode(made), Decoded)
    assert isinstance(Decoder(made, Half.OFFLINE).convert({"id": 1, "ts": 5}), Filtered)


def test_batches_and_pickles() -> None:
    made = spec(name="upper(raw)", where="id < 0", ts="now()")
    decoder = pickle.loads(pickle.dumps(Decoder(made)))
    payloads = [
        json.dumps(one).encode() for one in ({"id": 1, "raw": "a"}, {"id": -1}, {"id": "x"}, {"id": 2, "raw": 1.50})
    ]
    batch = decoder.decode_batch(payloads, [10, 20, 30, 40])
    assert batch.rows == [0, 3] and batch.filtered == [False, True, False, False]
    assert [batch.columns[1][place] for place in batch.rows] == ["A", "1.5"]
    assert batch.times_ms[0] == 10 and batch.reasons[1] is None and "is not a number" in (batch.reasons[2] or "")
    assert decoder.reads == {"raw", "id"}
    assert Decoder(spec(name="a.b + c")).reads == {"a.b", "a", "c"}
    assert Decoder(table(COLUMNS)).reads == frozenset()


@pytest.mark.parametrize("form", ["1:SECONDS:EPOCH", "SIMPLE_DATE_FORMAT|yyyy-MM-dd", "TIMESTAMP"])
def test_a_time_column_of_any_format(form: str) -> None:
    data_type = {"1": "LONG", "S": "STRING", "T": "TIMESTAMP"}[form[0]]
    time = {"name": "ts", "dataType": data_type, "format": form}
    function = {"1": "toEpochSeconds(ms)", "S": "toDateTime(ms, 'yyyy-MM-dd')", "T": "toTimestamp(ms)"}[form[0]]
    found = decode(spec(ts=function, table_options={"time": time}), ts=None, ms=86_400_000)
    assert isinstance(found, Decoded) and found.time_ms == 86_400_000


def test_what_keeps_the_sum_and_the_count_of_an_average() -> None:
    """As the docs of rollups write it: a missing value is not counted."""
    columns = {"price": "DOUBLE", "price_sum": "DOUBLE", "price_count": "LONG"}
    made = spec(columns, price_sum="price", price_count="CASE WHEN price IS NULL THEN 0 ELSE 1 END")
    for record, expected in (
        ({"price": 2.5}, (2.5, 2.5, 1)),
        ({}, (None, None, 0)),
        ({"price": None}, (None, None, 0)),
    ):
        found = decode(replace(made, null_handling=True), **record)
        assert isinstance(found, Decoded), found
        assert tuple(found.values)[:3] == expected
