"""Documents inferred from files: types, names, keys, notes, and that the table takes every record."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import hybrid
from hybrid.cli.main import run
from hybrid.config.job_spec import load_job_spec
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, NotFoundError, SpecError, UsageError
from hybrid.operations.inference.infer import _spec_of_ddl, infer_file
from hybrid.operations.inference.infer_options import InferOptions, table_name
from hybrid.operations.inference.inferred_table import InferredTable

RIDES: list[dict[str, Any]] = [
    {
        "ride_id": f"r-{number}",
        "ts": 1764045855732 + number * 60_000,
        "fare": 7.5 + number,
        "riders": number,
        "late": number % 2 == 0,
        "tags": ["a", "b"] if number % 3 else [],
        "from": {"city": "Utrecht", "at": [1, 2]},
        "note": None if number % 4 else "x",
    }
    for number in range(12)
]
TYPES = {
    "ride_id": "STRING", "ts": "LONG", "fare": "DOUBLE", "riders": "LONG", "late": "BOOLEAN", "tags": "STRING[]",
    "from": "JSON", "note": "STRING",
}  # fmt: skip
AVRO = {
    "type": "record", "name": "ride", "fields": [
        {"name": "ride_id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "fare", "type": "double"},
        {"name": "riders", "type": "int"},
        {"name": "late", "type": "boolean"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "from", "type": {"type": "record", "name": "place", "fields": [
            {"name": "city", "type": "string"}, {"name": "at", "type": {"type": "array", "items": "int"}}]}},
        {"name": "note", "type": ["null", "string"]},
    ],
}  # fmt: skip


def write_rides(folder: Path, ending: str) -> Path:
    """The rides in a file of the format that its ending says."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rides{ending}"
    lines = "".join(json.dumps(ride) + "\n" for ride in RIDES)
    if ending == ".csv":
        cells = [[json.dumps(value) if isinstance(value, (dict, list)) else value for value in ride.values()]
                 for ride in RIDES]  # fmt: skip
        texts = [["" if cell is None else str(cell).replace('"', '""') for cell in row] for row in cells]
        rows = [",".join(f'"{cell}"' if "," in cell or '"' in cell else cell for cell in row) for row in texts]
        path.write_text("\n".join([",".join(RIDES[0]), *rows]) + "\n")
    elif ending == ".json":
        path.write_text(json.dumps(RIDES, indent=1))
    elif ending == ".jsonl":
        path.write_text(lines)
    elif ending == ".jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(RIDES), path)
    elif ending == ".orc":
        orc.write_table(pa.Table.from_pylist(RIDES), path)
    else:
        with path.open("wb") as file:
            fastavro.writer(file, fastavro.parse_schema(AVRO), RIDES)
    return path


ENDINGS = (".csv", ".json", ".jsonl", ".jsonl.gz", ".parquet", ".orc", ".avro")


def infer(path: Path, **options: Any) -> InferredTable:
    return infer_file(path, InferOptions(**options))


def of_records(tmp_path: Path, records: Sequence[Mapping[str, Any]], **options: Any) -> InferredTable:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return infer(path, **{"without_time": options.get("time_column") is None, **options})


def of_text(tmp_path: Path, text: str, **options: Any) -> InferredTable:
    (tmp_path / "x.csv").write_text(text)
    return infer(tmp_path / "x.csv", **{"without_time": True, **options})


def types(found: InferredTable) -> dict[str, str]:
    return {column.name: column.type for column in found.columns}


def notes(found: InferredTable) -> str:
    return "\n".join(found.notes)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_documents_that_take_every_record(home: Path, tmp_path: Path, ending: str) -> None:
    found = infer(write_rides(tmp_path, ending))
    expected = {**TYPES, **({"riders": "INT"} if ending == ".avro" else {})}
    assert types(found) == expected
    assert (found.time_column, found.records, found.malformed, found.rejected) == ("ts", 12, 0, 0)
    assert [column.nulls for column in found.columns if column.name == "note"] == [9]
    assert "'ride_id'" in notes(found) and found.key == []
    assert InferredTable.from_json(json.loads(json.dumps(found.to_json()))) == found
    files = found.write(tmp_path / "out")
    assert [path.name for path in files] == ["rides_schema.json", "rides_offline_table.json", "rides_job.yml"]
    job = load_job_spec(files[-1], {})
    assert job.table_name == "rides" and [path.name for path in job.input_files()] == [f"rides{ending}"]
    with hybrid.connect(home) as hy:
        spec = hy.validate(files[0], files[1])
        assert spec.halves == {Half.OFFLINE} and spec.warnings == ()
        assert hy.create_table(files[0], files[1]).table == "rides"
        assert hy.infer_table(tmp_path / f"rides{ending}").columns == found.columns
    with pytest.raises(ConflictError, match="exists already"):
        found.write(tmp_path / "out")


@pytest.mark.parametrize("ending", [".csv", ".json", ".jsonl", ".parquet"])
def test_a_statement_takes_every_record(tmp_path: Path, ending: str) -> None:
    found = infer(write_rides(tmp_path, ending), ddl=True, key=["ride_id"])
    assert found.ddl is not None and found.rejected == 0
    spec = _spec_of_ddl(found.ddl)
    assert (spec.name, spec.time_column, spec.primary_key) == ("rides", "ts", ("ride_id",))
    (connector,) = spec.connectors
    assert str(connector.transport) == f"FileInput(path={str(tmp_path / f'rides{ending}')!r}, follow=False)"
    assert [path.name for path in found.write(tmp_path / "out")] == ["rides.sql"]


def test_a_statement_without_a_connector(tmp_path: Path) -> None:
    found = infer(write_rides(tmp_path, ".orc"), ddl=True)
    assert found.ddl is not None and "connectors" not in found.ddl and "No connector reads" in notes(found)


def test_what_a_statement_cannot_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="other names: 'a b'"):
        of_records(tmp_path, [{"a b": 1}], ddl=True)
    with pytest.raises(UsageError, match="cannot name the time column"):
        of_records(tmp_path, [{"day": "24.12.2025"}], ddl=True, time_column="day")
    with pytest.raises(UsageError, match="--stream-config"):
        of_records(tmp_path, [{"a": 1}], ddl=True, stream_configs={"a": "b"})


@pytest.mark.parametrize(
    ("values", "type_", "note"),
    [
        ([1, 2], "LONG", ""),
        ([1, 2**63], "BIG_DECIMAL", "do not fit a LONG"),
        ([1, 10**40], "STRING", "do not fit a LONG"),
        ([1, 2.5], "DOUBLE", ""),
        ([2**53 + 1, 0.5], "BIG_DECIMAL", "more digits"),
        ([True, False], "BOOLEAN", ""),
        ([True, 1, 1], "STRING", "holds a whole number in 2 records and true or false in 1. True or false is true"),
        ([1, 2, "N/A"], "STRING", 'A text is "N/A" at line 3'),
        (["00123"], "STRING", ""),
        ([[1, 2], []], "LONG[]", ""),
        ([[1], 2], "LONG[]", "at line 2 one value"),
        ([[]], "STRING[]", "guess"),
        ([["a", None]], "JSON", ""),
        ([["a", 1]], "JSON", ""),
        ([[[1]]], "JSON", ""),
        ([{"a": 1}, [1]], "JSON", "an object"),
        ([{"a": 1}, "text"], "STRING", "a text"),
        ([None, None], "STRING", "null in the whole sample"),
        (["\ud800", "a"], "STRING", "which is no STRING"),
    ],
)
def test_types_of_json(tmp_path: Path, values: list[Any], type_: str, note: str) -> None:
    found = of_records(tmp_path, [{"x": value} for value in values])
    assert types(found) == {"x": type_}
    assert note in notes(found) and json.dumps(found.to_json(), ensure_ascii=False).encode()
    assert found.rejected == (1 if "\ud800" in values else 0)


def test_numbers_keep_their_digits(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"exact": 0.10, "long": 0.12345678901234567, "huge": 1e400}\n')
    assert types(infer(path, without_time=True)) == {"exact": "DOUBLE", "long": "BIG_DECIMAL", "huge": "STRING"}


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        (["1", "-2"], "LONG"), (["1.5", "2"], "DOUBLE"), (["true", "FALSE"], "BOOLEAN"), (["01", "2"], "STRING"),
        (["+1"], "STRING"), (['"[1, 2]"', '"[3]"'], "LONG[]"), (['"{""a"": 1}"'], "JSON"), (["[a", "b]"], "STRING"),
        (["1e5"], "DOUBLE"), (["1", "x"], "STRING"),
    ],
)  # fmt: skip
def test_types_of_csv(tmp_path: Path, cells: list[str], type_: str) -> None:
    found = of_text(tmp_path, "".join(f"{cell},a\n" for cell in ["x", *cells]).replace("x,a", "x,y", 1))
    assert types(found)["x"] == type_ and found.rejected == 0


def test_types_of_parquet(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("i", pa.int16()), ("f", pa.float32()), ("d", pa.decimal128(10, 2)), ("wide", pa.decimal128(38, 2)),
            ("t", pa.timestamp("us")), ("day", pa.date32()), ("b", pa.binary()), ("clock", pa.time64("us")),
            ("u", pa.uint64()),
        ]
    )  # fmt: skip
    row = [1, 1.5, Decimal("1.25"), Decimal(10) ** 30, datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None),
           date(2025, 1, 1), b"x", time(1), 2**64 - 1]  # fmt: skip
    pq.write_table(pa.table([[value] for value in row], schema=schema), tmp_path / "x.parquet")
    found = infer(tmp_path / "x.parquet")
    assert types(found) == {
        "i": "INT", "f": "FLOAT", "d": "BIG_DECIMAL", "wide": "STRING", "t": "TIMESTAMP", "day": "STRING",
        "b": "BYTES", "clock": "", "u": "BIG_DECIMAL",
    }  # fmt: skip
    assert "'clock' is left out" in notes(found) and found.rejected == 0 and found.time_column == "t"
    days = [field for field in found.schema["dateTimeFieldSpecs"] if field["name"] == "day"]
    assert days[0]["format"] == "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd"


# Names and keys


def test_names_that_columns_cannot_have(home: Path, tmp_path: Path) -> None:
    records = [{"first name": "a", "first_name": "b", "$x": 1, "_hy_y": 2, "ID": 3, "id": 4, "a.b": 5}]
    found = of_records(tmp_path, records)
    by_field = {column.field: column.name for column in found.columns}
    assert by_field == {
        "first name": "first_name_2", "first_name": "first_name", "$x": "x", "_hy_y": "hy_y", "ID": "ID",
        "id": "id_2", "a.b": "a.b",
    }  # fmt: skip
    assert "'first name' fills column 'first_name_2'" in notes(found) and found.rejected == 0
    with hybrid.connect(home) as hy:
        hy.create_table(found.documents())


def test_a_dollar_in_a_path_is_no_variable(tmp_path: Path) -> None:
    path = write_rides(tmp_path / "a${b}$c", ".jsonl")
    (tmp_path / "job.yml").write_text(infer(path).job or "")
    assert load_job_spec(tmp_path / "job.yml", {}).input_files() == [path]


def test_names_of_tables() -> None:
    assert [table_name(text) for text in ("orders", "my-app.orders", "x_REALTIME", "été", "...")] == [
        "orders", "my_app_orders", "x", "t", "events",
    ]  # fmt: skip


def test_a_key_is_proposed_and_not_assumed(tmp_path: Path) -> None:
    records = [{"name": f"n{number}", "order_id": number, "group": number % 2} for number in range(5)]
    found = of_records(tmp_path, records)
    assert found.key == [] and "Unique in the sample: 'order_id' and 'name'. With --key order_id" in notes(found)
    with_key = of_records(tmp_path, records, key="order_id")
    assert with_key.schema["primaryKeyColumns"] == ["order_id"] and with_key.offline is not None
    assert with_key.offline["upsertConfig"] == {"mode": "FULL", "comparisonColumn": "_hy_timestamp"}
    with pytest.raises(UsageError, match=r"no column 'order'\. Did you mean 'order_id'\?"):
        of_records(tmp_path, records, key=["order"])
    with pytest.raises(UsageError, match="cannot be part of a primary key"):
        of_records(tmp_path, [{"x": {"a": 1}}], key=["x"])
    rejected = of_records(tmp_path, [*records, {"name": "x"}], key=["order_id"])
    assert "'order_id' of the key is null in 1 record, which is rejected." in notes(rejected) and rejected.rejected == 1


def test_a_topic_for_the_realtime_half(tmp_path: Path) -> None:
    found = of_records(tmp_path, [{"a": 1}], topic="t", kafka="host:1", stream_configs={"x.y": "z"})
    assert found.realtime is not None
    streams = found.realtime["tableIndexConfig"]["streamConfigs"]
    assert (streams["stream.kafka.topic.name"], streams["stream.kafka.broker.list"]) == ("t", "host:1")
    assert streams["x.y"] == "z" and streams["stream.kafka.consumer.prop.auto.offset.reset"] == "smallest"
    with pytest.raises(UsageError, match="give --topic too"):
        of_records(tmp_path, [{"a": 1}], kafka="host:1")
    with pytest.raises(UsageError, match="--stream-config is for the messages of a topic: give --topic too"):
        of_records(tmp_path, [{"a": 1}], stream_configs={"x.y": "z"})


def test_documents_hold_no_values(tmp_path: Path) -> None:
    found = of_records(tmp_path, [{"who": "ann@example.org"}])
    assert "ann@" not in json.dumps(found.export()) and "ann@" in str(found.columns[0].samples)


# CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_of_csv(tmp_path: Path, delimiter: str) -> None:
    lines = [delimiter.join(cells) for cells in (("a", "b", "c"), ("1", "x y", "2"), ("3", "z", "4"))]
    found = of_text(tmp_path, "\n".join(lines))
    assert types(found) == {"a": "LONG", "b": "STRING", "c": "LONG"} and found.job is not None
    assert ("delimiter:" in found.job) == (delimiter != ",")


def test_csv_without_a_header(tmp_path: Path) -> None:
    found = of_text(tmp_path, "1,x\n2,y\n")
    assert types(found) == {"c1": "LONG", "c2": "STRING"} and found.records == 2
    assert "first line is read as a record" in notes(found)
    assert found.job is not None and 'header: "c1,c2"' in found.job


def test_csv_whose_rows_end_in_the_delimiter(tmp_path: Path) -> None:
    found = of_text(tmp_path, "a,b,\n1,2,\n")
    assert types(found) == {"a": "LONG", "b": "LONG"} and found.rejected == 0


def test_a_text_for_null_in_numbers(tmp_path: Path) -> None:
    found = of_text(tmp_path, "a,b\n1,x\nNA,y\n")
    assert "Without 'NA' 'a' holds numbers only" in notes(found) and "nullStringValue" in notes(found)


# What cannot be read


def test_reading_stops_where_a_job_stops(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a":\n{"a": 2}\n')
    found = infer(path, without_time=True)
    assert (found.records, found.malformed) == (1, 1)
    assert "a job stops there: line 2: is not JSON" in notes(found)


def test_a_sample_of_a_long_file(tmp_path: Path) -> None:
    records = [{"a": 1}, {"a": 2}, {"a": "x"}]
    found = of_records(tmp_path, records, sample=2)
    assert types(found) == {"a": "LONG"} and "Read the first 2 records" in notes(found)
    assert types(of_records(tmp_path, records, sample=0)) == {"a": "STRING"}


def test_changes_of_debezium_are_named(tmp_path: Path) -> None:
    found = of_records(tmp_path, [{"before": None, "after": {"a": 1}, "op": "c"}])
    assert "changes of Debezium" in notes(found)


@pytest.mark.parametrize(
    ("name", "content", "kind", "words"),
    [
        ("x.jsonl", None, NotFoundError, "does not exist"),
        ("x.txt", b"a", UsageError, "does not say its format"),
        ("x.json", b"", DataError, "it has no record"),
        ("x.csv", b"", DataError, "it has no record"),
        ("x.csv", b"a,b\n", DataError, "it has no record"),
        ("x.parquet", b"", DataError, "it has no record"),
        ("x.parquet", b"PAR1 no", DataError, "cannot be read as Parquet"),
        ("x.orc", b"ORC no", DataError, "cannot be read as ORC"),
        ("x.avro", b"no", DataError, "cannot be read as Avro"),
        ("x.csv", b"PAR1", DataError, "is a Parquet file"),
        ("x.json", b"\xff\xfe", DataError, "UTF-16"),
        ("x.jsonl", b"[1]", DataError, "not a JSON object"),
        ("x.jsonl", b"{}\n", DataError, "have no fields"),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:-9], DataError, "gzip"),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes | None, kind: type[Exception], words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(kind, match=words):
        infer(tmp_path / name, without_time=True)


def test_a_file_without_permission_or_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError, match="is no file"):
        infer(tmp_path, data_format="json")
    path = write_rides(tmp_path, ".csv")

    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hybrid.files.records.is_gzip", refuse)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        infer(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"without_time": True, "time_column": "a"}, "leave --time"),
        ({"bucket": "soon"}, "not a period"),
        ({"bucket": "0s"}, "length of time"),
        ({"sample": -1}, "--sample"),
        ({"name": "a-b"}, "no name of a table"),
        ({"data_format": "xls"}, "no format of files"),
        ({"registry": "http://x"}, "--registry"),
        ({"time_column": "nope"}, "no column 'nope'"),
        ({"time_column": "riders"}, "not all of its values are times"),
    ],
)
def test_options_that_are_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises((UsageError, SpecError), match=words):
        infer(write_rides(tmp_path, ".jsonl"), **options)


# The command


@pytest.mark.slow
def test_the_command_prints_documents_and_what_to_check(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, at = str(write_rides(tmp_path, ".jsonl")), ["--home", str(home)]
    assert run(["table", "init", path, *at]) == 0
    out, err = capsys.readouterr()
    (tmp_path / "all.json").write_text(out)
    assert "riders" in err and "Table 'rides': 8 columns, inferred from 12 records" in err and "--key ride_id" in err
    assert run(["table", "create", "-f", str(tmp_path / "all.json"), *at]) == 0
    assert run(["table", "init", path, "--key", "ride_id,ts", "-o", str(tmp_path / "d"), *at]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "hybrid table create --schema" in err and "hybrid job run" in err
    assert run(["table", "init", path, "-o", str(tmp_path / "d"), *at]) == 4
    assert run(["table", "init", path, "--ddl", *at]) == 0
    assert "CREATE TABLE rides" in capsys.readouterr().out
    assert run(["table", "init", path, "--stream-config", "x", *at]) == 2


def test_control_characters_do_not_reach_a_terminal(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"a\u001b[2J": "v\u001b]0;t\u0007", "b\u202e": 1}) + "\n")
    assert run(["table", "init", str(path), "--no-time", "--home", str(home)]) == 0
    out, err = capsys.readouterr()
    assert "\u001b" not in out + err and "\u202e" not in out + err
    assert json.loads(out)["tableName"] == "x"
