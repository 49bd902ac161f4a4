"""A text that is not UTF-8, and a map with a key twice, are named by row and column; rows before them are read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hybrid.runtime.arrow_rows import UnreadableValueError, first_bad_value, rows_of, values_of
from tests.unchecked_texts import LATIN1, nested_texts

WORDS = "has a text that is not UTF-8: byte 0xe9 at place 4, near 'caf\N{REPLACEMENT CHARACTER}'"
REMEDY = "Convert the file to UTF-8 first"
COLUMNS = nested_texts([b"a", LATIN1, b"\xc3\xa9"])


@pytest.mark.parametrize("name", COLUMNS)
def test_the_row_and_the_column(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), COLUMNS[name]], names=["id", name])
    assert first_bad_value(batch) == (1, name, WORDS, REMEDY)
    assert first_bad_value(batch.select([name])) is not None and first_bad_value(batch.select(["id"])) is None
    assert first_bad_value(batch.slice(2)) is None and first_bad_value(batch.slice(0, 1)) is None
    found = []
    with pytest.raises(UnreadableValueError, match=f"column '{name}' has a text that is not UTF-8"):
        for row in rows_of(batch):
            found.append(row["id"])
    assert found == [1]
    assert [row["id"] for row in rows_of(batch.slice(2))] == [3]


def test_the_first_row_of_several_columns() -> None:
    columns = [nested_texts([b"a", b"b", LATIN1])["text"], COLUMNS["list"]]
    assert first_bad_value(pa.RecordBatch.from_arrays(columns, names=["late", "early"])) == (1, "early", WORDS, REMEDY)


def test_little_of_a_long_text_is_shown() -> None:
    batch = pa.RecordBatch.from_arrays([nested_texts([b"x" * 5000 + b"\xff" + b"y" * 5000])["text"]], names=["t"])
    found = first_bad_value(batch)
    assert found is not None and "byte 0xff at place 5001, near 'xxxxx" in found.reason and len(found.reason) < 120


MAP = pa.map_(pa.string(), pa.int64())
REPEATED = {
    "map": pa.array([[("a", 1)], [("a", 1), ("b", 2), ("a", 3)], None], MAP),
    "list": pa.array([[[("a", 1)]], [[], [("a", 1), ("a", 1)]], []], pa.list_(MAP)),
    "record": pa.array([{"m": []}, {"m": [("a", 1), ("a", 3)]}, None], pa.struct([("m", MAP)])),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_map_with_one_key_twice(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), REPEATED[name]], names=["id", name])
    found = first_bad_value(batch)
    assert found == (1, name, "has a map with one key twice", "Give each key of a map one value")
    rows = rows_of(batch)
    assert next(rows)["id"] == 1
    with pytest.raises(UnreadableValueError, match=f"column '{name}' has a map with one key twice. Give each"):
        next(rows)


def test_maps_become_dicts() -> None:
    assert values_of(REPEATED["list"].slice(0, 1)) == [[{"a": 1}]]
    assert values_of(pa.array([[(1, "x"), (2, None)]], pa.map_(pa.int32(), pa.string()))) == [{1: "x", 2: None}]
