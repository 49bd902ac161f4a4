"""By which columns rows are divided, as Pinot's OFFLINE config says it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hybrid.config.table_config import PartitionedColumn, PartitionFunction, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from tests.config.test_bucket_json import OFFLINE, REALTIME, SCHEMA


def parsed(**columns: Any) -> TableSpec:
    schema, realtime, offline = copy.deepcopy([SCHEMA, REALTIME, OFFLINE])
    offline["tableIndexConfig"]["segmentPartitionConfig"] = {"columnPartitionMap": columns}
    return parse_table(schema, "s.json", [(realtime, "r.json"), (offline, "o.json")])


def by(function: str, count: Any = 4, **more: Any) -> dict[str, Any]:
    return {"functionName": function, "numPartitions": count, **more}


def test_columns_with_their_functions() -> None:
    spec = parsed(customer_id=by("Modulo", "3"), order_status=by("murmur", functionConfig={"useRawBytes": "false"}))
    assert spec.partitions == (
        PartitionedColumn("customer_id", PartitionFunction.MODULO, 3, "-2147483648"),
        PartitionedColumn("order_status", PartitionFunction.MURMUR, 4, "null"),
    )
    assert spec.warnings == ()
    assert parsed().partitions == ()
    full = parsed(customer_id=by("Murmur", 200), order_status=by("Murmur", 50), amount=by("HashCode", 9))
    assert [one.count for one in full.partitions] == [200, 50], "what divides nothing does not count"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"order_status": by("Murmur3")}, "the partition function 'Murmur3' is not built"),
        ({"order_status": by("BoundedColumnValue", functionConfig={"columnValues": "a"})}, "is not built"),
        ({"order_status": by("Murmur", functionConfig={"useRawBytes": "true"})}, "'Murmur' with a functionConfig"),
        ({"order_status": by("Modulo")}, "'Modulo' is not built for STRING"),
        ({"amount": by("HashCode")}, "'HashCode' is not built for FLOAT"),
    ],
)
def test_what_divides_nothing_is_said(columns: dict[str, Any], words: str) -> None:
    spec = parsed(**columns)
    (warning,) = spec.warnings
    (name,) = columns
    place = f"o.json: tableIndexConfig.segmentPartitionConfig.columnPartitionMap.{name}: "
    assert warning.startswith(place) and words in warning and warning.endswith("segments are not divided by it.")
    assert spec.partitions == ()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"customer": by("Murmur")}, "'customer' is not a column of the schema 'orders'. Did you mean 'customer_id'?"),
        ({"customer_id": by("Murmur", 0)}, "numPartitions: 0 is not a whole number from 1 on"),
        ({"customer_id": {"functionName": "Murmur"}}, "numPartitions: null is not from 1 to 10000"),
        ({"customer_id": by("Murmur", 10_001)}, "numPartitions: 10001 is not from 1 to 10000"),
        (
            {"customer_id": by("Murmur", 200), "order_status": by("Murmur", 51)},
            "order_status.numPartitions: 51 makes 10200 partitions of all columns together; 10000 are the most.",
        ),
        ({"customer_id": {"numPartitions": 4}}, "functionName: is missing"),
        ({"customer_id": 4}, "customer_id: 4 is not an object"),
    ],
)
def test_what_cannot_be_read_is_refused(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        parsed(**columns)
    assert words in str(caught.value)
