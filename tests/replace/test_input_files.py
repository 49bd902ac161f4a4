"""Reading input files: each record with its exact place, or the exact place of the first that is none. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.errors import DataError, SpecError
from hybrid.files import inputs as files
from hybrid.files.csvfile import CsvFormat
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.records import Problem
from hybrid.replace.inputs import list_inputs
from hybrid.replace.stage import read_slice
from hybrid.spec.job_spec import JobSpec


def _read(path: Path, data_format: str = "json", form: CsvFormat | None = None) -> list[tuple[str, object]]:
    pieces = inspect(path, DataFormat(data_format)).slices
    found = [record for piece in pieces for record in read_slice(piece, form or CsvFormat())]
    assert [record.position for record in found] == sorted({record.position for record in found})
    return [(record.at, dict(record.values)) for record in found]


def _file(folder: Path, content: str | bytes, name: str = "a.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _problem(path: Path, data_format: str = "json", form: CsvFormat | None = None) -> str:
    with pytest.raises((Problem, DataError)) as caught:
        _read(path, data_format, form)
    error = caught.value
    return f"{error.at}: {error.reason}" if isinstance(error, Problem) else str(error)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('{"a": 1}\n\n{"a": 2}\n', [", line 1", ", line 3"]),
        ('\ufeff{"a": 1}\r\n{"a": 2}', [", line 1", ", line 2"]),
        ('[{"a": 1},\n {"a": 2}]\n', [", line 1", ", line 2"]),
        ('{\n  "a": 1\n}\n{\n  "a": 2\n}\n', [", line 1", ", line 4"]),
        ('{"a": 1} {"a": 2}', [", line 1", ", line 1"]),
        ("[]", []),
        ("", []),
        (" \n", []),
    ],
)
def test_json_in_every_layout(tmp_path: Path, text: str, places: list[str]) -> None:
    found = _read(_file(tmp_path, text))
    assert found == [(place, {"a": number}) for number, place in enumerate(places, 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": \n', ", line 2: is not JSON"),
        (b'{"a": \n{"a": 1}\n', ", line 1: is not JSON"),
        (b'{"a": 1}\n7\n', ", line 2: is not a JSON object: 7"),
        (b'{"a": 1}\n{"a": "\xe9"}\n', ", line 2: is not UTF-8: byte 0xe9 at place 8"),
        (b'{"a": "\xe9"}\n', ", line 1: is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "is UTF-16"),
        (b"\x1f\x8b\x08", "is compressed with gzip"),
        (b"PAR1....", "is a Parquet file"),
        (b'[{"a": 1}, {"a": 2}\n', ", line 2: is not JSON: the array goes on without"),
        (b'[{"a": 1}]\nx', "something follows the end of the array"),
        (b'{"a": 1}\n{"a": NaN}\n', ", line 2: is not JSON: NaN"),
    ],
)
def test_json_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in _problem(_file(tmp_path, content))


def test_large_files_are_cut_at_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SLICE_BYTES", 25)
    path = _file(tmp_path, "".join(f'{{"a": {number}}}\n' for number in range(1, 101)))
    assert len(inspect(path, DataFormat.JSON).slices) > 20
    assert _read(path) == [(f", line {number}", {"a": number}) for number in range(1, 101)]


def test_csv(tmp_path: Path) -> None:
    form = CsvFormat.of({"delimiter": "|", "nullStringValue": "-"}, frozenset({"tags"}), "job.yml")
    path = _file(tmp_path, 'id|tags|note\n1|a;b|"two\nlines"\n\n2|-|\n', "a.csv")
    assert _read(path, "csv", form) == [
        (", line 2", {"id": "1", "tags": ["a", "b"], "note": "two\nlines"}),
        (", line 5", {"id": "2", "tags": None, "note": None}),
    ]


def test_csv_with_a_header_of_its_own(tmp_path: Path) -> None:
    path = _file(tmp_path, "x,y\n1,2\n", "a.csv")
    skipping = CsvFormat.of({"header": "a,b", "skipHeader": "true"}, frozenset(), "job.yml")
    assert _read(path, "csv", skipping) == [(", line 2", {"a": "1", "b": "2"})]
    keeping = CsvFormat.of({"header": "a,b"}, frozenset(), "job.yml")
    assert len(_read(path, "csv", keeping)) == 2
    with pytest.raises(SpecError, match="fileFormat: 'LOTUS' is not one of"):
        CsvFormat.of({"fileFormat": "lotus"}, frozenset(), "job.yml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3\n", ", line 3: has 1 cells where the header has 2"),
        (b"a,a\n1,2\n", "names column 'a' twice"),
        (b'a,b\n1,"x\n', ", line 2: is not CSV"),
        (b"a,b\n1,\xff\n", ", line 2: is not UTF-8"),
        (b"", "is empty (0 bytes)"),
    ],
)
def test_csv_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in _problem(_file(tmp_path, content, "a.csv"), "csv")


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3]}), path, row_group_size=2)
    places = [", row 1 (row group 0)", ", row 2 (row group 0)", ", row 3 (row group 1)"]
    assert _read(path, "parquet") == [(place, {"a": number}) for number, place in enumerate(places, 1)]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "cannot be read as Parquet, is it damaged or cut off?" in _problem(path, "parquet")
    path.write_bytes(b"")
    assert "is empty (0 bytes)" in _problem(path, "parquet")


def test_parquet_with_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [str(number) * 50 for number in range(100)]}), path, compression="zstd")
    raw = bytearray(path.read_bytes())
    raw[10:60] = b"\xff" * 50
    path.write_bytes(raw)
    assert ", from row 1 on (row group 0): cannot be read as Parquet" in _problem(path, "parquet")


def test_a_file_written_to_meanwhile(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"a": 1}\n')
    file = inspect(path, DataFormat.JSON)
    file.check_unchanged()
    path.write_text('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(DataError, match="was written to while it was read"):
        file.check_unchanged()


def _job(folder: Path, include: str | None = None) -> JobSpec:
    return JobSpec("job.yml", "SegmentCreationAndTarPush", folder, "orders", "json", include=include)


def test_files_come_sorted_and_without_markers(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "_SUCCESS", ".a.json.crc"):
        _file(tmp_path, "", name)
    assert [path.name for path in list_inputs(_job(tmp_path))] == ["a.json", "b.json"]
    assert [path.name for path in list_inputs(_job(tmp_path, "glob:**/_*"))] == ["_SUCCESS"]


def test_no_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no files"):
        list_inputs(_job(tmp_path))
    _file(tmp_path, "", "order.json")
    with pytest.raises(DataError, match=r"matches 'glob:\*\*/orders.json'; there are 'order.json'. Did you mean"):
        list_inputs(_job(tmp_path, "glob:**/orders.json"))
