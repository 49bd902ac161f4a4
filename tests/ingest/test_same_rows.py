"""What a Spark worker makes of messages and what the tail makes of them is the same, transforms and filter included."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config.table_config import Half, StreamConfig, TableSpec
from hybrid.formats.csv_format import CsvFormat
from hybrid.ingest.read import _convert_batch, assigners_for
from hybrid.query.tail import TailMessage
from hybrid.query.tailrows import tail_decoder, tail_rows
from hybrid.records.decode import Decoder
from hybrid.schema.ingestion import ComplexTypes, IngestionConfig, Transform
from hybrid.table.boundary import PartitionKey
from hybrid.table.ranges import OffsetRange
from hybrid.table.segments import Thresholds
from hybrid.table.state import Act, RealtimeState
from tests.examples import examples
from tests.records.test_codecs import AVRO
from tests.records.test_decode import table

KEY = PartitionKey("kafka", "topic", 0, 0)
STATE = RealtimeState(Act("create-1", 0, "create", "2021-11-21T00:00:00.000+00:00"))
TRANSFORMS = {
    "name": "concat(upper(first), coalesce(last, 'none'), ' ')",
    "price": "cents / 100 + CAST(extra AS DOUBLE)",
    "day": "toDateTime(ts, 'yyyy-MM-dd HH:mm', 'America/New_York')",
    "kind": "CASE WHEN jsonPathLong(doc, '$.a[0]', -1) > 5 THEN 'big' WHEN doc.flag THEN 'flag' "
            "ELSE regexpExtract(first, '[a-c]+') END",
    "ts": "coalesce(fromEpochSeconds(seconds), now())",
}  # fmt: skip
COLUMNS = {"name": "STRING", "price": "DOUBLE", "day": "STRING", "kind": "STRING", "whole": "INT"}


def spec(lenient: bool) -> TableSpec:
    steps = tuple(Transform(column, TRANSFORMS[column]) for column in ("ts", "name", "price", "day", "kind"))
    config = IngestionConfig((*steps, Transform("whole", "price * 1.5")), "cents < 0 OR first LIKE 't%'", lenient)
    return replace(table(COLUMNS), ingestion={Half.REALTIME: config})


def rows_of_worker(made: TableSpec, messages: list[tuple[bytes | None, int]]) -> tuple[list[Any], int]:
    """Offset, op, time and values of each good row, and how many messages were filtered."""
    values, times = [value for value, _ in messages], [time for _, time in messages]
    arrays = {
        "value": pa.array(values, pa.binary()),
        "partition": pa.array([0] * len(values), pa.int32()),
        "offset": pa.array(range(len(values)), pa.int64()),
        "timestamp": pa.array(times, pa.int64()),
    }
    if made.stream is not None and made.stream.metadata:
        header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        arrays["key"] = pa.array(values, pa.binary())
        arrays["headers"] = pa.array([[{"key": "v", "value": value}] for value in values], header)
    batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    ranges = [OffsetRange(KEY, 0, len(values))]
    assigners = assigners_for(made, STATE, ranges, Thresholds(10**9, 10**9, 10**9), 0)
    found = _convert_batch(batch, made, Decoder(made), assigners)[0].to_pylist()
    names = ["_hy_offset", "_hy_op", "_hy_time", *made.schema.column_names]
    good = [tuple(row[name] for name in names) for row in found if row["_hy_segment"] and not row["_hy_reason"]]
    return good, sum(row["_hy_segment"] is None for row in found)


def rows_of_tail(made: TableSpec, messages: list[tuple[bytes | None, int]]) -> list[Any]:
    sent = [TailMessage(KEY, n, time, value, value, (("v", value),)) for n, (value, time) in enumerate(messages)]
    found = tail_rows(tail_decoder(made), made, STATE, sent, 0)
    if found is None:
        return []
    names = ["_hy_offset", "_hy_op", "_hy_time", *made.schema.column_names]
    return list(zip(*(found.values[name] for name in names), strict=True))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5) | st.sampled_from(["5", "test", "abc", "1632463351"]),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(["a", "flag"]), below, max_size=2),
    max_leaves=4,
)  # fmt: skip
fields = st.sampled_from(["first", "last", "cents", "extra", "seconds", "doc", "ts", "name", "price", "whole"])
records = st.dictionaries(fields, values).map(lambda record: json.dumps(record).encode())
messages = st.lists(st.tuples(st.none() | st.binary(max_size=4) | records, st.integers(0, 10**13)), max_size=8)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(messages, st.booleans())
def test_worker_and_tail_agree(given_messages: list[tuple[bytes | None, int]], lenient: bool) -> None:
    made = spec(lenient)
    good, filtered = rows_of_worker(made, given_messages)
    assert repr(good) == repr(rows_of_tail(made, given_messages))
    assert len(good) + filtered <= len(given_messages)


NESTED = ComplexTypes(("doc", "doc.a"), renames={"ts.": ""})
FORMS = [
    StreamConfig(("t",), "b", metadata=True),
    StreamConfig(("t",), "b", codec=CsvFormat(), metadata=True),
    StreamConfig(("t",), "b", codec=CsvFormat(columns=("first", "seconds"))),
    StreamConfig(("t",), "b", codec=AVRO),
]


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(messages, st.sampled_from(FORMS), st.sampled_from([None, NESTED]), st.booleans())
def test_they_agree_on_every_form(
    given_messages: list[tuple[bytes | None, int]], stream: StreamConfig, nested: ComplexTypes | None, lenient: bool
) -> None:
    made = spec(lenient)
    config = replace(made.ingestion[Half.REALTIME], complex_types=nested)
    beside = {"__key": "STRING", "__header$v": "STRING", "__metadata$offset": "LONG"}
    made = replace(table({**COLUMNS, **beside}), ingestion={Half.REALTIME: config}, stream=stream)
    good, _ = rows_of_worker(made, given_messages)
    assert repr(good) == repr(rows_of_tail(made, given_messages))


def test_what_they_agree_on() -> None:
    record = {"first": "ada", "cents": 250, "extra": "1", "seconds": 7, "doc": {"flag": True}}
    sent = [json.dumps(one).encode() for one in (record, {**record, "cents": -1}, {"first": "b", "seconds": None})]
    good, filtered = rows_of_worker(spec(lenient=False), [(value, 60_000) for value in sent])
    assert filtered == 1 and good[0] == (0, "row", 7000, "ADA none", 3.5, "1969-12-31 19:00", "flag", 5, 7000)
    assert good[1][:3] == (2, "row", 60_000) and good[1][4] == -math.inf
