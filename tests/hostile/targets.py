"""What takes bytes from outside, one function a kind: it gives a value or an error of our own, and nothing else.

A target raises only where the product has a fault, so the corpus test and the fuzzer share them.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from hybrid.api.hybrid import Hybrid
from hybrid.cli.cells import printable
from hybrid.cli.logs import _row
from hybrid.cli.logs import _text as log_text
from hybrid.config.ddl import parse_ddl
from hybrid.config.job_document import job_document
from hybrid.config.job_spec import parse_job_spec
from hybrid.config.overrides import parse_document
from hybrid.config.settings import load_settings
from hybrid.config.table_config import StreamConfig, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import HybridError
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.reading import read_slice
from hybrid.formats.avro_messages import AvroMessages
from hybrid.formats.csv_cells import Dialect
from hybrid.formats.csv_format import CsvFormat
from hybrid.logs import read_logs
from hybrid.progress import Silent
from hybrid.query.rewrite import values_checked
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Filtered, Rejected
from hybrid.schema.problem import Problem
from hybrid.schema.types import DataType
from hybrid.serve.app import build_app
from hybrid.serve.connection_limits import ConnectionLimits
from hybrid.serve.context import ServerLimits
from hybrid.serve.httpserver import OneWrite
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext

_TURNS = 40  # of 10 ms: a body that does not come is not awaited for long
Target = Callable[[bytes], object]
COLUMNS = {
    "i": "INT", "l": "LONG", "f": "FLOAT", "d": "DOUBLE", "p": "BIG_DECIMAL", "b": "BOOLEAN", "t": "TIMESTAMP",
    "s": "STRING", "j": "JSON", "r": "BYTES",
}  # fmt: skip
_TYPES = {name: DataType(kind) for name, kind in COLUMNS.items()}
_AVRO = {
    "type": "record", "name": "r",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}  # fmt: skip
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)} - {0x0A}


def message(data: bytes) -> None:
    """A Kafka message, by each of the decoders: rows, or the reason why not. It never raises."""
    for decoder in _decoders():
        for outcome in decoder.decode_all(data, 0):
            assert isinstance(outcome, (Decoded, Rejected, Filtered)), outcome


def sql(data: bytes) -> None:
    """A statement: parsed and rewritten, or refused."""
    with _refusing(), values_checked():
        tree = parse_statement(_text(data)).tree
        rewrite_functions(tree, TimeContext(1_000_000, _TYPES))
        coerce_timestamps(tree, _TYPES)
        tree.sql("duckdb")


def table_config(data: bytes) -> None:
    """A REALTIME or OFFLINE config beside a plain schema; the same bytes as a schema beside plain configs."""
    with _refusing():
        document = parse_document(_text(data), "config.json")
        for schema, config in ((_schema(), document), (document, _offline())):
            with _refusing():
                parse_table(schema, "schema.json", [(config, "config.json")])


def ddl(data: bytes) -> None:
    """A DDL file."""
    with _refusing():
        parse_ddl(_text(data), "tables.sql")


def job_spec(data: bytes) -> None:
    """A job spec, in YAML."""
    with _refusing():
        parse_job_spec(job_document(_text(data), "job.yml"), "job.yml", Path("/nowhere"), {})


def terminal(data: bytes) -> None:
    """A text that a terminal is shown: no control character of it is left."""
    _check_printed(printable(_text(data)))


def file(data: bytes) -> None:
    """An input file, read as each format: records, or the place and the reason why not."""
    path = _folder() / "input"
    path.write_bytes(data)
    for data_format in DataFormat:
        with _refusing():
            for piece in inspect(path, data_format).slices:
                for record in read_slice(piece, CsvFormat()):
                    assert isinstance(dict(record.values), dict)


def http(data: bytes) -> None:
    """What a client sends on one connection of a server without tables: each answer has a status, none is 500."""
    written = _loop().run_until_complete(_served(data))
    assert not written or written.startswith(b"HTTP/1."), written[:200]
    assert b"HTTP/1.1 500 " not in written, written[:2000]


def log_lines(data: bytes) -> None:
    """What lies in a log file: records are shown without control characters, other lines are skipped."""
    folder = _folder()
    (folder / "query.log").write_bytes(data)
    for record in read_logs(folder):
        _check_printed(log_text(record))
        json.dumps(_row(record)).encode()


TARGETS: dict[str, Target] = {
    "message": message,
    "sql": sql,
    "table_config": table_config,
    "ddl": ddl,
    "job_spec": job_spec,
    "terminal": terminal,
    "file": file,
    "http": http,
    "log_lines": log_lines,
}


def corpus(kind: str) -> Iterator[bytes]:
    """The cases of a kind: a line of the file is a case, as a JSON text; a character stands for a byte."""
    path = Path(__file__).with_name("corpus") / f"{kind}.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield as_bytes(json.loads(line))


def as_bytes(text: str) -> bytes:
    """The bytes of a case: UTF-8, and U+DC80 to U+DCFF for a byte that is not UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other surrogates, which stand for themselves
        return text.encode("utf-8", "surrogatepass")


class _refusing:
    """An error of our own is an answer, when it says something."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, Problem):
            return len(error.reason) > 5
        return isinstance(error, HybridError) and len(str(error)) > 5


def _check_printed(text: str) -> None:
    assert not {ord(letter) for letter in text} & _CONTROLS, text


class _Wire(asyncio.Transport):
    """The server's end of a connection: keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40000), "sockname": ("127.0.0.1", 80)})
        self.written, self._is_closing = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self._is_closing = True

    abort = close

    def is_closing(self) -> bool:
        return self._is_closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


async def _served(data: bytes) -> bytes:
    """What a server writes to a client that sends `data` and goes once nothing more comes."""
    wire, config = _Wire(), _config()
    protocol = OneWrite(ConnectionLimits(), config=config, server_state=ServerState(), app_state={})
    protocol.connection_made(wire)
    protocol.data_received(data)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
        if wire.is_closing() or not protocol.tasks:
            break
        await asyncio.sleep(0.01)
    protocol.connection_lost(None)
    while protocol.tasks:
        await asyncio.sleep(0.01)
    return wire.written


@cache
def _config() -> uvicorn.Config:
    home = Hybrid(load_settings(home=_folder() / "home"), Silent())
    home.home.mkdir()
    app = build_app(home, ServerLimits(query_timeout_ms=500, run_wait_s=0), "http://127.0.0.1", hosts=None)
    config = uvicorn.Config(app, ws="none", log_config=None, access_log=False, proxy_headers=False)
    config.load()
    return config


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


@cache
def _folder() -> Path:
    """A folder of this process."""
    return Path(_kept().name)


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hostile-")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


@cache
def _decoders() -> list[Decoder]:
    plain = _spec()
    codecs = [
        None,
        CsvFormat(dialect=Dialect(",", '"', None), columns=("i", "s", "t"), multi_value=frozenset()),
        AvroMessages(json.dumps(_AVRO)),
    ]
    return [Decoder(replace(plain, stream=StreamConfig(("t",), "b", codec=codec))) for codec in codecs]


@cache
def _spec() -> TableSpec:
    return parse_table(_schema(), "schema.json", [(_offline(), "config.json")])


def _schema() -> dict[str, object]:
    fields = [{"name": name, "dataType": kind} for name, kind in COLUMNS.items()]
    several = [
        {"name": f"{name}s", "dataType": kind, "singleValueField": False}
        for name, kind in COLUMNS.items()
        if name not in "bpjtr"
    ]
    return {"schemaName": "t", "dimensionFieldSpecs": [*fields, *several]}


def _offline() -> dict[str, object]:
    return {"tableName": "t", "tableType": "OFFLINE", "segmentsConfig": {"schemaName": "t"}}
