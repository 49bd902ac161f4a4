"""A text that is not UTF-8 is named by row and column, wherever in a column it stands; rows before it are read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hybrid.runtime.arrow_rows import NotUtf8Error, first_bad_text, rows_of
from tests.unchecked_texts import LATIN1, nested_texts

WORDS = "has a text that is not UTF-8: byte 0xe9 at place 4, near 'caf\N{REPLACEMENT CHARACTER}'"
COLUMNS = nested_texts([b"a", LATIN1, b"\xc3\xa9"])


@pytest.mark.parametrize("name", COLUMNS)
def test_the_row_and_the_column(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), COLUMNS[name]], names=["id", name])
    assert first_bad_text(batch) == (1, name, WORDS)
    assert first_bad_text(batch.select([name])) is not None and first_bad_text(batch.select(["id"])) is None
    assert first_bad_text(batch.slice(2)) is None and first_bad_text(batch.slice(0, 1)) is None
    found = []
    with pytest.raises(NotUtf8Error, match=f"column '{name}' has a text that is not UTF-8"):
        for row in rows_of(batch):
            found.append(row["id"])
    assert found == [1]
    assert [row["id"] for row in rows_of(batch.slice(2))] == [3]


def test_the_first_row_of_several_columns() -> None:
    columns = [nested_texts([b"a", b"b", LATIN1])["text"], COLUMNS["list"]]
    assert first_bad_text(pa.RecordBatch.from_arrays(columns, names=["late", "early"])) == (1, "early", WORDS)


def test_little_of_a_long_text_is_shown() -> None:
    batch = pa.RecordBatch.from_arrays([nested_texts([b"x" * 5000 + b"\xff" + b"y" * 5000])["text"]], names=["t"])
    found = first_bad_text(batch)
    assert found is not None and "byte 0xff at place 5001, near 'xxxxx" in found.reason and len(found.reason) < 120
