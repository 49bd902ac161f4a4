"""Files that are small and unpack to very much, or have lines without an end: refused before memory is full."""

from __future__ import annotations

import gc
import gzip
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hybrid.errors import DataError
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.limits import FileLimits
from hybrid.files.orc_layout import StripeFile
from hybrid.files.reading import read_slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.schema.problem import Problem
from tests.unit_run import keep_what_exists

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


@pytest.mark.slow
@pytest.mark.parametrize(("form", "line"), [(DataFormat.JSON, b'{"a": 1}\n'), (DataFormat.CSV, b"a\n")])
def test_bytes_that_stand_for_far_too_many_are_refused(tmp_path: Path, form: DataFormat, line: bytes) -> None:
    lines = (line[:-1] + b" " * 500_000 + b"\n") * 20
    with pytest.raises((DataError, Problem), match="unpacks to more than 300 times"):
        read(packed(tmp_path / "a.gz", lines), form)


@pytest.mark.slow
def test_one_json_text_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[\n" + '{"a": 1},\n' * 400_000 + '{"a": 1}]')
    with pytest.raises((DataError, Problem), match="one JSON text of more than"):
        read(tmp_path / "a.json", DataFormat.JSON)


@pytest.mark.slow
def test_a_parquet_row_group_that_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"a": ["x" * 100_000] * 100})
    pq.write_table(rows, tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(DataError, match="unpacks to more than 300 times"):
        inspect(tmp_path / "a.parquet", DataFormat.PARQUET, SMALL)


@pytest.mark.slow
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


# How ORC writes a repeated text: once in a dictionary, or each time and compressed.
ORC_WAYS: dict[str, dict[str, Any]] = {
    "dictionary": {"dictionary_key_size_threshold": 1.0},
    "dictionary, zlib": {"dictionary_key_size_threshold": 1.0, "compression": "zlib"},
    "dictionary, version 0.11": {"dictionary_key_size_threshold": 1.0, "file_version": "0.11"},
    "zstd": {"compression": "zstd"},
    "zlib": {"compression": "zlib", "compression_strategy": "compression"},
}


def one_value(column: str, text: str) -> Any:
    """A value of such a column, ten times the text where it can repeat it."""
    return {"text": text, "list": [text] * 10, "struct": {"a": 1, "b": text}, "map": [("k", text)]}[column]


@pytest.mark.slow
@pytest.mark.parametrize("way", ORC_WAYS)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_text_that_an_orc_file_repeats_is_refused_before_it_is_unpacked(
    tmp_path: Path, column: str, way: str
) -> None:
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"a": COLUMNS[column]("x" * 10_000)}), path, **ORC_WAYS[way])
    assert path.stat().st_size < 80_000
    with pytest.raises(Problem, match="unpacks to more than 300 times"):
        read(path, DataFormat.ORC)


READ_ORC = """
import resource, sys
from pathlib import Path
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.limits import FileLimits
from hybrid.files.orc_layout import StripeFile
from hybrid.files.reading import read_slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.schema.problem import Problem
from tests.unit_run import keep_what_exists

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

limits = FileLimits(ratio_from=int(sys.argv[2]))

def read(path):
    try:
        for piece in inspect(Path(path), DataFormat.ORC, limits).slices:
            for _ in read_slice(piece, CsvFormat(), limits):
                pass
    except Problem as problem:
        return problem.reason
    return "was read"

read(sys.argv[1])
before = peak()
for path in sys.argv[3:]:
    print(read(path), peak() - before, sep=":")
"""


def memory_of_reading(tmp_path: Path, paths: Sequence[Path], limits: FileLimits) -> list[tuple[str, int]]:
    """What the reader says to each file, and by how many MiB its process has grown since the first one, at its peak."""
    ordinary = tmp_path / "ordinary.orc"
    orc.write_table(pa.table({"a": ["x"]}), ordinary)
    child = [sys.executable, "-c", READ_ORC, str(ordinary), str(limits.ratio_from), *map(str, paths)]
    ended = subprocess.run(child, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found = [line.split(":") for line in ended.stdout.splitlines()]
    assert len(found) == len(paths)
    return [(said, int(grown)) for said, grown in found]


def test_no_thread_of_arrow_holds_an_orc_file_that_was_read(tmp_path: Path) -> None:
    """A thread that lets go of it while the process ends would abort the process."""
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"a": ["x" * 100] * 2_000}), path)
    keep_what_exists()  # a million objects, which it would look at forty times
    for limits in (FileLimits(), SMALL):
        for _ in range(20):
            (piece,) = inspect(path, DataFormat.ORC, limits).slices
            assert sum(1 for _ in read_slice(piece, CsvFormat(), limits)) == 2_000
            assert not any(isinstance(held, StripeFile) for held in gc.get_objects())


@pytest.mark.process
def test_what_an_orc_file_repeats_takes_no_memory(tmp_path: Path) -> None:
    """1.9 GB were taken for a file of 629 bytes."""
    rows, paths = pa.table({"a": ["x" * 1_000_000] * 200}), dict[str, Path]()
    for way, options in ORC_WAYS.items():
        paths[way] = tmp_path / f"{way}.orc"
        orc.write_table(rows, paths[way], **options)
    read_files = memory_of_reading(tmp_path, list(paths.values()), FileLimits())
    for (way, path), (said, grown) in zip(paths.items(), read_files, strict=True):
        is_small = path.stat().st_size < 600_000
        assert said.startswith("unpacks to more than 300 times" if is_small else "was read"), way
        assert grown < 100, f"{way}: 200 MB would be unpacked"


@pytest.mark.process
def test_one_text_or_list_of_an_orc_file_that_takes_too_much_is_not_unpacked(tmp_path: Path) -> None:
    paths = []
    for name, value in (("text", "x" * 40_000_000), ("list", [7] * 4_000_000)):
        for dictionary in (0.0, 1.0):
            paths.append(tmp_path / f"{name} {dictionary}.orc")
            options = {"compression": "zstd", "dictionary_key_size_threshold": dictionary}
            orc.write_table(pa.table({"a": [value]}), paths[-1], **options)
    for path, (said, grown) in zip(paths, memory_of_reading(tmp_path, paths, SMALL), strict=True):
        assert said.startswith("unpacks to more than 300 times") and grown < 15, (path.stem, said, grown)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("way", ORC_WAYS)
def test_long_texts_of_orc_are_unpacked_a_few_at_once_and_stay_what_they_are(
    tmp_path: Path, column: str, way: str
) -> None:
    path = tmp_path / "a.orc"
    values = [one_value(column, str(number) * 500) for number in range(200)]
    rows = pa.table({"a": pa.array(values, pa.map_(pa.string(), pa.string()) if column == "map" else None)})
    rows = rows.append_column("n", pa.array(range(200)))
    orc.write_table(rows, path, stripe_size=100_000, batch_size=64, **ORC_WAYS[way])
    generous = FileLimits(ratio_from=100_000, ratio_max=1_000_000)
    pieces = inspect(path, DataFormat.ORC, generous).slices
    records = [record for piece in pieces for record in read_slice(piece, CsvFormat(), generous)]
    assert [record.values for record in records] == rows.to_pylist(maps_as_pydicts="strict")
    assert [record.position for record in records] == list(range(200))


@pytest.mark.slow
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
