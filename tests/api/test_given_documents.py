"""Tables from Python: from dictionaries, files and the columns of data frames."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.config.table_config import Half
from hybrid.errors import SpecError, UsageError
from tests.serve.app import OFFLINE, REALTIME, SCHEMA


@pytest.fixture
def hy(home: Path) -> Iterator[Hybrid]:
    with hybrid.connect(home) as opened:
        yield opened


def types(hy: Hybrid, given: Any) -> dict[str, str]:
    fields = hy.validate(given).schema.fields
    return {field.name: f"{field.data_type}{'' if field.single_value else '[]'}" for field in fields}


def test_a_table_from_dictionaries_or_files(hy: Hybrid, tmp_path: Path) -> None:
    from_dictionaries = hy.validate(SCHEMA, REALTIME, OFFLINE, kafka="127.0.0.1:2")
    for name, document in (("schema", SCHEMA), ("offline", OFFLINE), ("realtime", REALTIME)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    files = [tmp_path / "realtime.json", str(tmp_path / "offline.json")]
    from_files = hy.validate(tmp_path / "schema.json", *files, kafka="127.0.0.1:2")
    assert from_dictionaries.schema == from_files.schema
    assert from_dictionaries.stream is not None and from_dictionaries.stream.brokers == "127.0.0.1:2"
    assert hy.create_table(SCHEMA, OFFLINE).table == "orders"
    assert hy.apply_table(tmp_path / "schema.json", OFFLINE, dry_run=True).changes == ()
    assert hy.query("select count(*) from orders").rows == [(0,)]


def test_given_documents_are_not_changed(hy: Hybrid) -> None:
    before = json.dumps([SCHEMA, OFFLINE])
    hy.validate(
        SCHEMA, OFFLINE, overrides=["/segmentsConfig/retentionTimeValue=3", "/segmentsConfig/retentionTimeUnit=DAYS"]
    )
    assert json.dumps([SCHEMA, OFFLINE]) == before


def test_wrong_documents_are_refused(hy: Hybrid) -> None:
    with pytest.raises(UsageError, match="one or two table configs"):
        hy.create_table(SCHEMA)
    with pytest.raises(UsageError, match="already hold"):
        hy.create_table(hybrid.frame_documents(pa.schema([("a", pa.int32())]), "t"), OFFLINE)
    with pytest.raises(SpecError, match="config 1"):
        hy.create_table(SCHEMA, {**OFFLINE, "tableType": "SIDEWAYS"})


def test_the_columns_of_an_arrow_schema(hy: Hybrid) -> None:
    kinds = {
        "flag": (pa.bool_(), "BOOLEAN"),
        "tiny": (pa.int8(), "INT"),
        "big": (pa.uint32(), "LONG"),
        "huge": (pa.uint64(), "BIG_DECIMAL"),
        "single": (pa.float32(), "FLOAT"),
        "double": (pa.float64(), "DOUBLE"),
        "price": (pa.decimal128(10, 2), "BIG_DECIMAL"),
        "at": (pa.timestamp("ns", "UTC"), "TIMESTAMP"),
        "day": (pa.date32(), "STRING"),
        "name": (pa.large_string(), "STRING"),
        "category": (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        "raw": (pa.binary(), "BYTES"),
        "tags": (pa.list_(pa.string()), "STRING[]"),
        "nested": (pa.list_(pa.list_(pa.int32())), "JSON"),
        "fields": (pa.struct([("a", pa.int32())]), "JSON"),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in kinds.items()])
    assert types(hy, hybrid.frame_documents(schema, "t")) == {name: expected for name, (_, expected) in kinds.items()}


def test_a_table_from_a_pandas_frame(hy: Hybrid) -> None:
    frame = pd.DataFrame({"ride": [1], "fare": [1.5], "city": ["Ulm"], "ts": pd.to_datetime(["2026-11-26"])})
    given = hybrid.frame_documents(frame, "rides", time_column="ts", primary_key=["ride"])
    assert hy.create_table(given).table == "rides"
    spec = hy.spec("rides")
    assert spec.time_column == "ts" and set(spec.halves) == {Half.OFFLINE}
    assert given.schema[0]["primaryKeyColumns"] == ["ride"]
    assert types(hy, given) == {"ride": "LONG", "fare": "DOUBLE", "city": "STRING", "ts": "TIMESTAMP"}


def test_a_topic_gives_both_halves_and_a_move(hy: Hybrid) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    given = hybrid.frame_documents(
        schema, "t", time_column="ts", primary_key=["id"], topic="events", kafka="127.0.0.1:1", bucket="2h"
    )
    spec = hy.validate(given)
    assert set(spec.halves) == set(Half) and spec.move is not None and spec.move.bucket_ms == 7_200_000
    assert spec.move.schedule is not None, "a server would move nothing"
    assert spec.stream is not None and list(spec.stream.topics) == ["events"]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pa.schema([("a", pa.int32())]), {"time_column": "ts"}, "no column 'ts'. It has 'a'"),
        (pa.schema([("a", pa.int32())]), {"primary_key": ["b"]}, "no column 'b'"),
        (pa.schema([("a", pa.string())]), {"time_column": "a"}, "it has to be a timestamp"),
        (pa.schema([("a", pa.duration("s"))]), {}, "Column 'a' is of type duration"),
        (pa.schema([("a", pa.null())]), {}, "Column 'a' is of type null"),
        (pa.schema([("a", pa.int32())]), {"kafka": "k:1"}, "give both, or neither"),
        ([1, 2], {}, "A list is no pandas"),
        (pd.DataFrame({"a": [1, "x"]}), {}, "several types"),
    ],
)
def test_a_frame_that_makes_no_table(frame: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hybrid.frame_documents(frame, "t", **options)
