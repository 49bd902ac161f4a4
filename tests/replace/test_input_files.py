"""Reading input files: each record with its exact place, or the exact place of the first that is none. No JVM."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from hybrid.config.job_spec import JobSpec
from hybrid.errors import DataError, SpecError
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.records import Shape
from hybrid.flow.connectors.delta_files import DeltaFile, _read_file
from hybrid.formats.avro_messages import AvroMessages
from hybrid.formats.csv_format import CsvFormat
from hybrid.replace.backfill.inputs import inspect_input
from hybrid.replace.inputs import list_inputs
from hybrid.replace.stage import read_slice
from hybrid.schema.problem import Problem
from tests.query.halves import orders_spec


def _read(
    path: Path, data_format: str = "json", form: CsvFormat | None = None, limits: FileLimits = DEFAULT_LIMITS
) -> list[tuple[str, object]]:
    pieces = inspect(path, DataFormat(data_format), limits).slices
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


def _avro(rows: Sequence[dict[str, object]], codec: str = "null", block_bytes: int = 16_000) -> bytes:
    """Rows of texts as an Avro file."""
    fields = [{"name": name, "type": ["null", "string"]} for name in rows[0]]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows, codec, sync_interval=block_bytes)
    return out.getvalue()


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
        (b"\x1f\x8b\x08", "the gzip data cannot be read"),
        (gzip.compress(b'{"a": 1}\n' * 50, mtime=0)[:-12], "the gzip data cannot be read"),
        (b"Obj\x01....", "is an Avro file"),
        (b"ORC....", "is an ORC file"),
        (b"PAR1....", "is a Parquet file"),
        (b'[{"a": 1}, {"a": 2}\n', ", line 2: is not JSON: the array goes on without"),
        (b'[{"a": 1}]\nx', "something follows the end of the array"),
        (b'{"a": 1}\n{"a": NaN}\n', ", line 2: is not JSON: NaN"),
    ],
)
def test_json_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in _problem(_file(tmp_path, content))


def test_large_files_are_cut_at_line_ends(tmp_path: Path) -> None:
    limits = FileLimits(slice_bytes=25)
    path = _file(tmp_path, "".join(f'{{"a": {number}}}\n' for number in range(1, 101)))
    assert len(inspect(path, DataFormat.JSON, limits).slices) > 20
    assert _read(path, limits=limits) == [(f", line {number}", {"a": number}) for number in range(1, 101)]


@pytest.mark.parametrize("data_format", ["json", "csv", "avro"])
def test_gzip_is_unpacked(tmp_path: Path, data_format: str) -> None:
    plain = {"json": b'{"a": "1"}\n{"a": "2"}\n', "csv": b"a\n1\n2\n", "avro": _avro([{"a": "1"}, {"a": "2"}])}
    path = _file(tmp_path, gzip.compress(plain[data_format]), f"a.{data_format}.gz")
    assert [values for _, values in _read(path, data_format)] == [{"a": "1"}, {"a": "2"}]
    path.write_bytes(path.read_bytes()[:-9])
    assert "damaged or cut off?" in _problem(path, data_format)


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
    ("configs", "text", "rows"),
    [
        ({}, 'a,b\n x , "y " \n', [("x", "y ")]),
        ({"ignoreSurroundingSpaces": "false"}, 'a,b\n x ,"y "\n', [(" x ", "y ")]),
        ({}, 'a,b\n"x""y",z"z\n', [('x"y', 'z"z')]),
        ({"quoteCharacter": "'"}, "a,b\n'x,y',\"z\"\n", [("x,y", '"z"')]),
        ({"commentMarker": "#"}, "#c\na,b\n# d\n1,'\n#3,4\n5,#6\n", [("1", "'"), ("5", "#6")]),
        ({"escapeCharacter": "\\"}, 'a,b\nx\\,y,"q\\"r"\n', [("x,y", 'q"r')]),
        ({"escapeCharacter": "\\"}, "a,b\nx\\ny,\\N\n", [("x\ny", "\\N")]),
        ({"fileFormat": "MySQL"}, 'a\tb\nx\\\ny\t\\N\n"q"\tz\n', [("x\ny", None), ('"q"', "z")]),
        ({"fileFormat": "PostgreSQL_Text"}, "a\tb\n\\N\tz\n", [(None, "z")]),
        ({"fileFormat": "TDF"}, 'a\tb\n"x\ty"\tz\n', [("x\ty", "z")]),
        ({"fileFormat": "INFORMIX_UNLOAD"}, "a|b\nx|y\n", [("x", "y")]),
        ({"delimiter": " "}, "a b\nx y\n", [("x", "y")]),
        ({"header": '"a",b'}, "x,y\n", [("x", "y")]),
        ({}, 'a,b\r\n\r\nx,"y\r\nz"\r\n', [("x", "y\r\nz")]),
        ({"multiValueDelimiterEnabled": "false"}, "a,b\nx;y,z\n", [("x;y", "z")]),
    ],
)
def test_csv_options(tmp_path: Path, configs: dict[str, str], text: str, rows: list[tuple[str | None, ...]]) -> None:
    form = CsvFormat.of(
        configs, frozenset({"a"}) if "multiValueDelimiterEnabled" in configs else frozenset(), "job.yml"
    )
    found = _read(_file(tmp_path, text, "a.csv"), "csv", form)
    assert [(values["a"], values["b"]) for _, values in found] == rows  # type: ignore[index]


def test_blank_lines_are_rows_when_they_count(tmp_path: Path) -> None:
    form = CsvFormat.of({"ignoreEmptyLines": "false"}, frozenset(), "job.yml")
    path = _file(tmp_path, "a\nx\n\ny\n", "a.csv")
    assert [values for _, values in _read(path, "csv", form)] == [{"a": "x"}, {"a": None}, {"a": "y"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3\n", ", line 3: has 1 cells where the header has 2"),
        (b"a,a\n1,2\n", "names column 'a' twice"),
        (b'a,b\n1,"x\n', ", line 2: is not CSV: a cell that begins here has no end"),
        (b'a,b\n1,"x"y\n', ", line 2: is not CSV: 'y' follows the end of a quoted cell"),
        (b"a,b\r1,2\r", ", line 1: is not CSV: a line ends in a carriage return alone"),
        (b"a,b\n1,\xff\n", ", line 2: is not UTF-8"),
    ],
)
def test_csv_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in _problem(_file(tmp_path, content, "a.csv"), "csv")


def test_csv_of_no_bytes_has_no_rows(tmp_path: Path) -> None:
    assert _read(_file(tmp_path, b"", "a.csv"), "csv") == []


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


@pytest.mark.slow
def test_orc(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    texts = [f"{number * 7919 % 104729}-{number * 31}" for number in range(20_000)]
    rows = pa.table({"a": list(range(20_000)), "b": [{"k": number} for number in range(20_000)], "c": texts})
    orc.write_table(rows, path, stripe_size=1024, compression="zstd")
    found = _read(path, "orc")
    assert len(inspect(path, DataFormat.ORC).slices) > 1
    assert [values["a"] for _, values in found] == list(range(20_000))  # type: ignore[index]
    assert found[0] == (", row 1 (stripe 0)", {"a": 0, "b": {"k": 0}, "c": "0-0"}) and found[-1][0].startswith(
        ", row 20000 (str"
    )
    whole = path.read_bytes()
    path.write_bytes(whole[:20] + b"\xff" * 200 + whole[220:])
    assert "cannot be read as ORC, is it damaged" in _problem(path, "orc")
    path.write_bytes(whole[: len(whole) // 2])
    assert "a.orc: cannot be read as ORC, is it damaged or cut off?" in _problem(path, "orc")
    path.write_bytes(b"")
    assert "is empty (0 bytes)" in _problem(path, "orc")


def test_avro(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"a": str(number), "b": None} for number in range(100)]
    found = _read(_file(tmp_path, _avro(rows, block_bytes=100), "a.avro"), "avro")
    assert [values for _, values in found] == rows
    assert found[0][0] == ", row 1 (block 0)" and found[-1][0].startswith(", row 100 (block ")


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "lz4", "bzip2", "xz"])
def test_avro_that_is_damaged(tmp_path: Path, codec: str) -> None:
    whole = _avro([{"a": str(number) * 9} for number in range(2000)], codec, block_bytes=4000)
    for content in (whole[: len(whole) * 2 // 3], whole[:2000] + b"\xff" * 200 + whole[2200:]):
        assert "cannot be read as Avro, is it damaged or cut off?" in _problem(
            _file(tmp_path, content, "a.avro"), "avro"
        )
    assert "is it an avro file" in _problem(_file(tmp_path, b"hello", "a.avro"), "avro")


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


FAR = [datetime(2300, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1), None, datetime(1950, 5, 5)]


def test_int96_beyond_64_bits_of_nanoseconds_is_exact(tmp_path: Path) -> None:
    """What Spark and Hive write by default: 2300-01-01 came out as 1715-06-13."""
    lists = pa.array([[one] for one in FAR], pa.list_(pa.timestamp("us")))
    data = pa.table({"t": pa.array(FAR, pa.timestamp("us")), "m": lists})
    pq.write_table(data, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert [values for _, values in _read(tmp_path / "a.parquet", "parquet")] == [{"t": one, "m": [one]} for one in FAR]
    found = _read_file(LocalFileSystem(), DeltaFile(str(tmp_path / "a.parquet"), {}), 0, data.schema, {})
    assert [one for batch in found for one in batch.column(0).to_pylist()] == FAR


def test_orc_instants_that_cannot_be_held_are_refused_by_file_and_column(tmp_path: Path) -> None:
    data = pa.table({"id": [1], "t": pa.array([FAR[0]], pa.timestamp("us"))})
    orc.write_table(data, tmp_path / "a.orc")
    problem = _problem(tmp_path / "a.orc", "orc")
    assert "column 't' has an instant outside of 1677 to 2262" in problem and "Parquet" in problem


@pytest.mark.parametrize("kind", ["timestamp-nanos", "local-timestamp-nanos"])
def test_avro_nanoseconds_are_instants(tmp_path: Path, kind: str) -> None:
    field = {"name": "t", "type": {"type": "long", "logicalType": kind}}
    schema = {"type": "record", "name": "r", "fields": [field]}
    moment = datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), [{"t": 1_700_000_000_123_456_789}])
    path = tmp_path / "a.avro"
    path.write_bytes(file.getvalue())
    assert [values for _, values in _read(path, "avro")] == [{"t": moment}]
    message = io.BytesIO()
    fastavro.schemaless_writer(message, fastavro.parse_schema(schema), {"t": 1_700_000_000_123_456_789})
    assert AvroMessages(json.dumps(schema)).read(message.getvalue()) == {"t": moment}


@pytest.mark.parametrize(
    "text",
    ['{"a":1}{"a":"}{"} {"a":3}\n', '{"a":1}\n{"a":"}{"}\t{"a":3}\n', '\ufeff{"a":1}{"a":"}{"}\n\n{"a":3}'],
)
def test_json_values_on_one_line(tmp_path: Path, text: str) -> None:
    assert [values for _, values in _read(_file(tmp_path, text))] == [{"a": 1}, {"a": "}{"}, {"a": 3}]


def test_json_values_on_one_line_far_below_are_named(tmp_path: Path) -> None:
    text = '{"a": 1}\n' * 10_000 + '{"a": 2}{"a": 3}\n'
    assert "line 10001: is not JSON" in (told := _problem(_file(tmp_path, text)))
    assert "another value follows on the line; write each on its own" in told
    assert inspect(_file(tmp_path, '{"a": "}{"}\n'), DataFormat.JSON).slices[0].shape is Shape.JSON_LINES


def test_csv_rows_that_end_in_the_delimiter(tmp_path: Path) -> None:
    path = _file(tmp_path, "a|b|\n1|2|\n3||\n", "a.csv")
    form = CsvFormat.of({"delimiter": "|", "trailingDelimiter": "true"}, frozenset(), "job.yml")
    assert [values for _, values in _read(path, "csv", form)] == [{"a": "1", "b": "2"}, {"a": "3", "b": None}]
    told = _problem(_file(tmp_path, "a|b\n1|2|\n", "b.csv"), "csv", CsvFormat.of({"delimiter": "|"}, frozenset(), "x"))
    assert "has 3 cells where the header has 2 (a, b; delimiter '|')" in told and "trailingDelimiter" in told


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_a_backfill_takes_no_file_of_no_bytes(tmp_path: Path, name: str) -> None:
    """Rows of its window that no file has are removed: a file that was cut off would remove all of them."""
    _file(tmp_path, b"id\n1\n", "b.csv")
    _file(tmp_path, b"", name)
    with pytest.raises(DataError, match=rf"{name} is empty \(0 bytes\); was it cut off\?"):
        inspect_input(orders_spec(), tmp_path)
    (tmp_path / name).unlink()
    assert len(inspect_input(orders_spec(), tmp_path)[0]) == 1
