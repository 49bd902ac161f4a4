"""A text that is not UTF-8 is named by row and column, wherever in a column it stands; rows before it are read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hybrid.files.arrow_rows import NotUtf8Error, are_utf8, first_bad_text, rows_of
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.reading import read_slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.schema.problem import Problem
from tests.unchecked_texts import LATIN1, nested_texts

WORDS = "has a text that is not UTF-8: byte 0xe9 at place 4, near 'caf\N{REPLACEMENT CHARACTER}'"
COLUMNS = nested_texts([b"a", LATIN1, b"\xc3\xa9"])


def read(path: Path, form: DataFormat) -> tuple[list[Any], Problem]:
    """The records before the problem, and the problem."""
    records: list[Any] = []
    with pytest.raises(Problem) as caught:
        for piece in inspect(path, form).slices:
            records += (record.values for record in read_slice(piece, CsvFormat()))
    return records, caught.value


@pytest.mark.parametrize("name", COLUMNS)
def test_the_row_and_the_column(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), COLUMNS[name]], names=["id", name])
    assert first_bad_text(batch) == (1, name, WORDS)
    assert not are_utf8(batch.column(name)) and are_utf8(batch.column("id"))
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


@pytest.mark.parametrize("name", COLUMNS)
def test_a_parquet_file(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], name: COLUMNS[name]}), tmp_path / "a.parquet")
    records, problem = read(tmp_path / "a.parquet", DataFormat.PARQUET)
    assert [record["id"] for record in records] == [1]
    assert (problem.position, problem.at) == (1, ", row 2 (row group 0)")
    assert problem.reason == f"column '{name}' {WORDS}. Convert the file to UTF-8 first"


def test_an_orc_file(tmp_path: Path) -> None:
    orc.write_table(pa.table({"id": [1, 2, 3], "text": COLUMNS["text"]}), tmp_path / "a.orc")
    _, problem = read(tmp_path / "a.orc", DataFormat.ORC)
    assert (problem.position, problem.at) == (1, ", row 2 (stripe 0)")
    assert problem.reason == f"column 'text' {WORDS}. Convert the file to UTF-8 first"


def test_an_avro_file(tmp_path: Path) -> None:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "t", "type": "string"}]}
    fastavro.writer(sink, schema, [{"t": "a"}, {"t": "cafX"}])
    (tmp_path / "a.avro").write_bytes(sink.getvalue().replace(b"cafX", LATIN1))
    _, problem = read(tmp_path / "a.avro", DataFormat.AVRO)
    assert (problem.position, problem.at) == (1, ", row 2 (block 0)")
    assert problem.reason == f"{WORDS}. Convert the file to UTF-8 first"
