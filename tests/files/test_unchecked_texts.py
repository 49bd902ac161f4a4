"""Files with a text that is not UTF-8 are refused with row and column, behind the rows before it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

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


@pytest.mark.parametrize(("form", "at"), [(DataFormat.PARQUET, "row group 0"), (DataFormat.ORC, "stripe 0")])
def test_a_map_with_one_key_twice(tmp_path: Path, form: DataFormat, at: str) -> None:
    pairs = pa.array([[("a", "1")], [("a", "1"), ("a", "2")]], pa.map_(pa.string(), pa.string()))
    write = pq.write_table if form is DataFormat.PARQUET else orc.write_table
    write(pa.table({"m": pairs}), tmp_path / "a")
    records, problem = read(tmp_path / "a", form)
    assert records == [{"m": {"a": "1"}}] if form is DataFormat.PARQUET else True
    assert (problem.position, problem.at) == (1, f", row 2 ({at})")
    assert problem.reason == "column 'm' has a map with one key twice. Give each key of a map one value"


def test_an_avro_file(tmp_path: Path) -> None:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "t", "type": "string"}]}
    fastavro.writer(sink, schema, [{"t": "a"}, {"t": "cafX"}])
    (tmp_path / "a.avro").write_bytes(sink.getvalue().replace(b"cafX", LATIN1))
    _, problem = read(tmp_path / "a.avro", DataFormat.AVRO)
    assert (problem.position, problem.at) == (1, ", row 2 (block 0)")
    # Bytes of a damaged file can look like this, too.
    assert problem.reason == f"cannot be read as Avro, is it damaged or cut off? A text {WORDS.partition(' that ')[2]}"
