"""Every format is read back by a reader of its own, and what is not complete is seen to be so."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.files.results import result_writers
from hybrid.files.results.output_file import OutputStream
from hybrid.files.results.result_format import ResultFormat
from hybrid.files.results.result_writers import ERROR_KEY, open_writer, text_parts
from tests.files.results.test_text_columns import COLUMNS

NAMES = [name for name in COLUMNS if name != "nothing"]


def batches() -> list[pa.RecordBatch]:
    """Every type in columns of one length, in two batches."""
    height = max(len(COLUMNS[name][1]) for name in NAMES) + 1
    columns = [COLUMNS[name] for name in NAMES]
    arrays = [pa.array([*values, *[None] * (height - len(values))], kind) for kind, values in columns]
    whole = pa.RecordBatch.from_arrays(arrays, names=NAMES)
    return [whole.slice(0, 10), whole.slice(10)]


def written(fmt: ResultFormat, rows: Sequence[pa.RecordBatch], schema: pa.Schema, *, seekable: bool = True) -> bytes:
    out = io.BytesIO()
    writer = open_writer(fmt, OutputStream(out, "out"), schema, seekable=seekable)
    for batch in rows:
        writer.write(batch)
    writer.close()
    return out.getvalue()


def test_parquet() -> None:
    rows = batches()
    found = pq.read_table(io.BytesIO(written(ResultFormat.PARQUET, rows, rows[0].schema)))
    assert repr(found.to_pydict()) == repr(pa.Table.from_batches(rows).to_pydict())
    assert found.schema.equals(rows[0].schema)


@pytest.mark.parametrize("seekable", [True, False])
def test_arrow(seekable: bool) -> None:
    rows = batches()
    data = written(ResultFormat.ARROW, rows, rows[0].schema, seekable=seekable)
    reader = (pa.ipc.open_file if seekable else pa.ipc.open_stream)(data)
    found = reader.read_all()
    assert repr(found.to_pydict()) == repr(pa.Table.from_batches(rows).to_pydict())
    assert found.schema.equals(rows[0].schema)


def test_csv() -> None:
    rows = batches()
    text = written(ResultFormat.CSV, rows, rows[0].schema).decode()
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head == NAMES and len(lines) == sum(batch.num_rows for batch in rows)
    places = {name: NAMES.index(name) for name in NAMES}
    texts = COLUMNS["text"][1]
    assert [line[places["text"]] for line in lines[: len(texts)]] == texts
    assert [float(line[places["double"]]) for line in lines[:5]] == COLUMNS["double"][1][:5]
    assert [json.loads(line[places["longs"]]) for line in lines[:1]] == COLUMNS["longs"][1]


def test_json_and_lines_of_json() -> None:
    rows = batches()
    array = json.loads(written(ResultFormat.JSON, rows, rows[0].schema))
    lines = [json.loads(line) for line in written(ResultFormat.JSONL, rows, rows[0].schema).decode().split("\n")[:-1]]
    assert array == lines and len(array) == sum(batch.num_rows for batch in rows)
    assert [row["text"] for row in array[: len(COLUMNS["text"][1])]] == COLUMNS["text"][1]
    assert [row["long"] for row in array[:3]] == COLUMNS["long"][1]
    assert list(array[0]) == NAMES


def test_markdown() -> None:
    batch = pa.RecordBatch.from_pydict({"a|b": ["x|y", None], "n": [1, 2]})
    text = written(ResultFormat.MARKDOWN, [batch], batch.schema).decode()
    assert text == "| a\\|b | n |\n| --- | ---: |\n| x\\|y | 1 |\n|  | 2 |\n"


EMPTY: dict[str, Any] = {"csv": b"a,b\n", "json": b"[]\n", "jsonl": b"", "markdown": b"| a | b |\n| ---: | --- |\n"}


@pytest.mark.parametrize("fmt", ResultFormat)
def test_no_rows(fmt: ResultFormat) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    data = written(fmt, [], schema)
    if fmt is ResultFormat.PARQUET:
        assert pq.read_table(io.BytesIO(data)).schema.equals(schema)
    elif fmt is ResultFormat.ARROW:
        assert pa.ipc.open_file(data).read_all().schema.equals(schema)
    else:
        assert data == EMPTY[fmt]


def test_names_are_written_as_values_are() -> None:
    batch = pa.RecordBatch.from_pydict({'a,"b"': [1]})
    assert written(ResultFormat.CSV, [batch], batch.schema) == b'"a,""b"""\n1\n'
    assert json.loads(written(ResultFormat.JSONL, [batch], batch.schema)) == {'a,"b"': 1}


def test_large_values_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_writers, "text_parts", partial(text_parts, bytes_max=1000))
    batch = pa.RecordBatch.from_pydict({"a": ["x" * 600] * 50, "n": list(range(50))})
    assert len(json.loads(written(ResultFormat.JSON, [batch], batch.schema))) == 50
    assert written(ResultFormat.CSV, [batch], batch.schema).count(b"\n") == 51


def test_row_groups_are_of_a_useful_size() -> None:
    batch = pa.RecordBatch.from_pydict({"n": list(range(2048))})
    data = written(ResultFormat.PARQUET, [batch] * 100, batch.schema)
    assert pq.ParquetFile(io.BytesIO(data)).num_row_groups == 2


@pytest.mark.parametrize("fmt", [ResultFormat.PARQUET, ResultFormat.ARROW])
def test_an_abandoned_file_cannot_be_read(fmt: ResultFormat) -> None:
    batch, out = pa.RecordBatch.from_pydict({"n": list(range(200_000))}), io.BytesIO()
    writer = open_writer(fmt, OutputStream(out, "out"), batch.schema, seekable=True)
    writer.write(batch)
    writer.abandon({"error": "x"})
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(io.BytesIO(out.getvalue())) if fmt is ResultFormat.PARQUET else pa.ipc.open_file(out.getvalue())


def test_an_abandoned_stream_says_why() -> None:
    batch, out = pa.RecordBatch.from_pydict({"n": list(range(100_000))}), io.BytesIO()
    writer = open_writer(ResultFormat.ARROW, OutputStream(out, "out"), batch.schema, seekable=False)
    writer.write(batch)
    writer.abandon({"error": "The query was stopped."})
    reader, said = pa.ipc.open_stream(out.getvalue()), []
    for _ in range(2):
        said.append(reader.read_next_batch_with_custom_metadata())
    assert said[0][0].num_rows == 100_000 and said[1][0].num_rows == 0
    assert json.loads(said[1][1][ERROR_KEY]) == {"error": "The query was stopped."}
