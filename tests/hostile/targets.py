"""What takes bytes from outside, one function a kind: it gives a value or an error of our own, and nothing else.

A target raises only where the product has a fault, so the corpus test and the fuzzer share them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from hybrid.cli.output import printable
from hybrid.errors import HybridError
from hybrid.query.failures import values_checked
from hybrid.spec.avromessages import AvroMessages
from hybrid.spec.csvcells import Dialect
from hybrid.spec.csvformat import CsvFormat
from hybrid.spec.ddl import parse_ddl
from hybrid.spec.job_spec import job_document, parse_job_spec
from hybrid.spec.overrides import parse_document
from hybrid.spec.table_config import StreamConfig, TableSpec
from hybrid.spec.table_json import parse_table
from hybrid.spec.types import DataType
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import Context
from hybrid.table.decode import Decoder
from hybrid.table.outcome import Decoded, Filtered, Rejected

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
        rewrite_functions(tree, Context(1_000_000, _TYPES))
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
    assert not {ord(letter) for letter in printable(_text(data))} & _CONTROLS


TARGETS: dict[str, Target] = {
    "message": message,
    "sql": sql,
    "table_config": table_config,
    "ddl": ddl,
    "job_spec": job_spec,
    "terminal": terminal,
}


def corpus(kind: str) -> Iterator[bytes]:
    """The cases of a kind: a line of the file is a case, as a JSON text; a character stands for a byte."""
    path = Path(__file__).with_name("corpus") / f"{kind}.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line).encode("utf-8", "surrogatepass")


class _refusing:
    """An error of our own is an answer, when it says something."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        return isinstance(error, HybridError) and len(str(error)) > 5


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
