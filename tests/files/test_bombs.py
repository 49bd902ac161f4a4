"""Files that are small and unpack to very much, or have lines without an end: refused before memory is full."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.errors import DataError
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.limits import FileLimits
from hybrid.files.reading import read_slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.schema.problem import Problem

SMALL = FileLimits(line_bytes_max=1_000_000, ratio_from=2_000_000, text_bytes_max=3_000_000)


def packed(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data))
    return path


def read(path: Path, form: DataFormat) -> None:
    for piece in inspect(path, form, SMALL).slices:
        for _ in read_slice(piece, CsvFormat(), SMALL):
            pass


@pytest.mark.parametrize("form", [DataFormat.JSON, DataFormat.CSV])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_line_without_end_is_refused(tmp_path: Path, form: DataFormat, compressed: bool) -> None:
    data = b'{"a": 1}\n{"a": "' + b"x" * 5_000_000 if form is DataFormat.JSON else b"a\n" + b"x" * 5_000_000
    path = tmp_path / "a"
    _ = packed(path, data) if compressed else path.write_bytes(data)
    with pytest.raises((DataError, Problem), match="is longer than 1000000 bytes"):
        read(path, form)


@pytest.mark.parametrize(("form", "line"), [(DataFormat.JSON, b'{"a": 1}\n'), (DataFormat.CSV, b"a\n")])
def test_bytes_that_stand_for_far_too_many_are_refused(tmp_path: Path, form: DataFormat, line: bytes) -> None:
    lines = (line[:-1] + b" " * 500_000 + b"\n") * 20
    with pytest.raises((DataError, Problem), match="unpacks to more than 300 times"):
        read(packed(tmp_path / "a.gz", lines), form)


def test_one_json_text_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[\n" + '{"a": 1},\n' * 400_000 + '{"a": 1}]')
    with pytest.raises((DataError, Problem), match="one JSON text of more than"):
        read(tmp_path / "a.json", DataFormat.JSON)


def test_a_parquet_row_group_that_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"a": ["x" * 100_000] * 100})
    pq.write_table(rows, tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(DataError, match="unpacks to more than 300 times"):
        inspect(tmp_path / "a.parquet", DataFormat.PARQUET, SMALL)


def test_ordinary_packed_files_are_read(tmp_path: Path) -> None:
    data = b"".join(b'{"a": %d}\n' % number for number in range(200_000))
    read(packed(tmp_path / "a.gz", data), DataFormat.JSON)


COLUMNS = {
    "text": lambda text: [text] * 3000,
    "list": lambda text: [[text] * 300] * 10,
    "struct": lambda text: [{"a": 1, "b": text}] * 3000,
    "map": lambda text: pa.array([[("k", text)]] * 3000, type=pa.map_(pa.string(), pa.string())),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_text_that_a_parquet_dictionary_repeats_is_refused_before_it_is_unpacked(tmp_path: Path, column: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": COLUMNS[column]("x" * 10_000)}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    with pytest.raises(Problem, match="unpacks to more than 300 times"):
        read(path, DataFormat.PARQUET)


def test_what_is_refused_has_not_been_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    indices = pa.array([0] * 4_000, pa.int32())
    pq.write_table(pa.table({"a": pa.DictionaryArray.from_arrays(indices, ["x" * 1_000_000])}), path)
    with pytest.raises(Problem, match="unpacks to more than 300 times"):
        read(path, DataFormat.PARQUET)
    assert pa.default_memory_pool().max_memory() < 1_000_000_000, "4 GB would be unpacked"


@pytest.mark.parametrize("column", COLUMNS)
def test_long_texts_are_unpacked_a_few_at_once_and_stay_what_they_are(tmp_path: Path, column: str) -> None:
    """One batch of the file, in parts of at most 2 MB."""
    path = tmp_path / "a.parquet"
    values = [value for number in range(5) for value in list(COLUMNS[column](str(number) * 5_000))[:10]]
    rows = pa.table({"a": pa.array(values, COLUMNS[column]("x").type if column == "map" else None), "n": range(50)})
    pq.write_table(rows, path)
    (piece,) = inspect(path, DataFormat.PARQUET, SMALL).slices
    generous = FileLimits(ratio_from=2_000_000, ratio_max=1_000_000)
    found = [record.values for record in read_slice(piece, CsvFormat(), generous)]
    assert found == rows.to_pylist(maps_as_pydicts="strict")


def test_a_long_text_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x" * 1_900_000, None, ""], "b": [b"\0\xff", b"", None]}), path)
    (piece,) = inspect(path, DataFormat.PARQUET, SMALL).slices
    texts = [record.values for record in read_slice(piece, CsvFormat(), SMALL)]
    assert [(len(one["a"] or ""), one["b"]) for one in texts] == [(1_900_000, b"\0\xff"), (0, b""), (0, None)]
