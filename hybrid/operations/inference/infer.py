"""Infers the documents of a table from a topic or a file, and tries them on the sample with the decoder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.ddl import parse_ddl
from hybrid.config.schema_json import COLUMNS_MAX
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import DataError, UsageError
from hybrid.formats.csv_format import CsvFormat, multi_value_columns, text_columns
from hybrid.operations.inference import inferred_ddl as ddl
from hybrid.operations.inference.column_sample import ColumnSample, choose_type, columns_of
from hybrid.operations.inference.file_sample import SUFFIXES, file_format, read_file
from hybrid.operations.inference.infer_options import InferOptions, table_name
from hybrid.operations.inference.inference_notes import NoteWriter
from hybrid.operations.inference.inferred_documents import (
    PlannedColumn,
    TablePlan,
    config_document,
    job_text,
    named_column,
    schema_document,
)
from hybrid.operations.inference.inferred_table import InferredColumn, InferredTable
from hybrid.operations.inference.record_sample import MalformedRecord, RecordSample
from hybrid.operations.inference.time_column import TimeChoice
from hybrid.operations.inference.time_selection import choose_time_column, times_of
from hybrid.operations.inference.topic_sample import read_topic, stream_configs
from hybrid.query.connection import identifier
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Rejected, shown
from hybrid.schema.types import DataType

if TYPE_CHECKING:
    from hybrid.home.home import Home

_BAD_CHARACTERS = re.compile(r"[ ,;{}()`\n\t=\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_NAME_MAX, _SAMPLES = 200, 3
_DEFAULT_BROKERS = "127.0.0.1:9092"
_NO_KEY = {DataType.JSON, DataType.BYTES, DataType.BOOLEAN}


def is_file(source: str) -> bool:
    """Whether a source is a file and no topic: it has a separator of paths, or there is a file of this name."""
    return "/" in source or Path(source).is_file()


def infer_table(home: Home, source: str, options: InferOptions) -> InferredTable:
    """The documents that fit the messages of a topic, or the records of a file of this machine."""
    return infer_file(Path(source), options) if is_file(source) else infer_topic(home, source, options)


def infer_topic(home: Home, topic: str, options: InferOptions) -> InferredTable:
    """The documents that fit a topic. NotFoundError for a missing one, DataError where nothing can be inferred."""
    options.check()
    if options.data_format is not None or options.topic is not None:
        raise UsageError("--file-format and --topic are for a file, and the source is a topic.")
    configs = stream_configs(topic, options.kafka or _brokers(home), options)
    sample = read_topic(configs, options.sample)
    plan, columns, notes = _planned(sample, topic, options)
    documents: dict[Half, dict[str, Any]] = {
        Half.REALTIME: config_document(plan, Half.REALTIME.value, configs),
        Half.OFFLINE: config_document(plan, Half.OFFLINE.value),
    }
    statement = ddl.ddl_text(plan, ddl.kafka_connector(configs, options.registry)) if options.ddl else None
    return _result(sample, plan, documents, columns, notes, statement)


def infer_file(path: Path, options: InferOptions) -> InferredTable:
    """The documents that fit a file. NotFoundError for a missing one, DataError where nothing can be inferred."""
    options.check()
    if options.registry is not None:
        raise UsageError("--registry is for the messages of a topic, and the source is a file.")
    if options.bucket is not None and options.topic is None and not options.ddl:
        raise UsageError(
            "--bucket is how long the buckets of moves are, and a table with an OFFLINE half alone has no moves.",
            hint="hybrid table init FILE --topic TOPIC gives it a REALTIME half too. Else leave --bucket out.",
        )
    data_format = file_format(path, options.data_format)
    sample = read_file(path, data_format, options.sample or None)
    plan, columns, notes = _planned(sample, _stem(path), options)
    documents: dict[Half, dict[str, Any]] = {Half.OFFLINE: config_document(plan, Half.OFFLINE.value)}
    if options.topic is not None:
        stream = stream_configs(options.topic, options.kafka or _DEFAULT_BROKERS, options)
        documents[Half.REALTIME] = config_document(plan, Half.REALTIME.value, stream)
    elif options.kafka is not None:
        raise UsageError("--kafka is the address of a topic's brokers: give --topic too, or the name of a topic.")
    elif options.stream_configs:
        raise UsageError("--stream-config is for the messages of a topic: give --topic too, or the name of a topic.")
    statement = _file_ddl(plan, path, data_format, sample, notes) if options.ddl else None
    job = job_text(plan, path, data_format, sample.csv)
    return replace(_result(sample, plan, documents, columns, notes, statement), job=job)


def _file_ddl(plan: TablePlan, path: Path, data_format: str, sample: RecordSample, notes: NoteWriter) -> str:
    connector = ddl.file_connector(path, data_format, sample)
    if connector is None:
        notes.add(f"No connector reads files of {data_format}: the statement has none. Load the file with a job.")
    return ddl.ddl_text(plan, connector)


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    ending = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(ending)]


def _brokers(home: Home) -> str:
    """The brokers of the setting, else the home's own broker: see `LocalBroker.address_to_ask`."""
    from hybrid.jvm.broker import LocalBroker

    return home.settings.kafka or LocalBroker(home.folder).address_to_ask()


# The plan


def _planned(
    sample: RecordSample, source_name: str, options: InferOptions
) -> tuple[TablePlan, list[InferredColumn], NoteWriter]:
    notes = NoteWriter(sample, ddl.SQL_TYPES if options.ddl else None)
    fields = columns_of(sample.records, of_text=sample.csv is not None)
    if not fields:
        raise DataError(f"Nothing can be inferred from {sample.source}: its records have no fields.")
    if len(fields) > COLUMNS_MAX:
        raise DataError(
            f"The records of {sample.source} have {len(fields):,} different fields; a table has at most "
            f"{COLUMNS_MAX:,} columns.",
            hint="Fields whose names are data, such as ids, belong into one object: a JSON column.",
        )
    choices = {column.field: choose_type(column, sample.declared.get(column.field)) for column in fields}
    names = _names([column.field for column in fields], {name for name, choice in choices.items() if choice})
    times = times_of(fields, choices, names, options)
    planned = [
        PlannedColumn(names[column.field], column.field, choice, times.get(column.field), _seen(column))
        for column in fields
        if (choice := choices[column.field]) is not None and column.field in names
    ]
    if not planned:
        raise DataError(f"Nothing can be inferred from {sample.source}: no type stores a value of its fields.")
    time = choose_time_column(planned, {column.field: column for column in fields}, sample, options, notes)
    key = _key(planned, options)
    plan = TablePlan(options.name or table_name(source_name), planned, time, key, options.bucket)
    notes.columns(fields, choices, names, times)
    notes.times(plan, writes_bucket=_has_bucket(sample, options))
    notes.keys(plan, fields)
    notes.csv()
    by_field = {column.field: column for column in planned}
    return plan, [_shown_column(column, by_field.get(column.field), times) for column in fields], notes


def _has_bucket(sample: RecordSample, options: InferOptions) -> bool:
    """Whether the documents name a bucket: the config of a REALTIME half does, and a statement."""
    return sample.half is Half.REALTIME or options.topic is not None or options.ddl


def _names(fields: Sequence[str], stored: set[str]) -> dict[str, str]:
    """The column of each stored field: its name, or a similar one where columns cannot have it.

    Fields whose names a transform cannot read are left out.
    """
    from hybrid.expression.parse import parse_expression

    names: dict[str, str] = {}
    taken: set[str] = set()
    for field in sorted(fields, key=lambda field: _safe_name(field) != field):  # exact names first
        if field not in stored:
            continue
        safe, number = _safe_name(field), 1
        while safe.lower() in taken:
            number += 1
            safe = f"{_safe_name(field)[: _NAME_MAX - 10]}_{number}"
        if safe != field:
            try:
                if parse_expression(identifier(field)).fields != (field,):
                    continue
            except ValueError:
                continue
        taken.add(safe.lower())
        names[field] = safe
    return names


def _safe_name(field: str) -> str:
    name = _BAD_CHARACTERS.sub("_", field).lstrip("$")
    while name.lower().startswith("_hy_"):
        name = name[1:]
    return name[:_NAME_MAX] or "column"


def _key(planned: Sequence[PlannedColumn], options: InferOptions) -> list[str]:
    names = [options.key] if isinstance(options.key, str) else options.key
    columns = [named_column(planned, name, "--key") for name in names]
    for column in columns:
        if column.choice.is_list or column.choice.data_type in _NO_KEY:
            raise UsageError(f"--key: '{column.name}' is {column.type_name}, which cannot be part of a primary key.")
    return list(dict.fromkeys(column.name for column in columns))


def _seen(column: ColumnSample) -> str:
    share = column.nulls / column.records
    nulls = "never null" if column.nulls == 0 else f"null in {share:.1%}"
    return f"In the sample of {column.records:,}: {nulls}, {column.distinct:,} distinct."


def _shown_column(
    column: ColumnSample, stored: PlannedColumn | None, times: Mapping[str, TimeChoice]
) -> InferredColumn:
    time = times.get(column.field)
    samples = list(dict.fromkeys(shown(value.raw) for value in column.values[:100]))[:_SAMPLES]
    return InferredColumn(
        stored.name if stored is not None else _safe_name(column.field),
        column.field.encode("utf-8", "replace").decode(),
        stored.type_name if stored is not None else "",
        column.nulls,
        column.distinct,
        samples,
        time.format if time is not None else None,
    )


# The trial


def _result(
    sample: RecordSample,
    plan: TablePlan,
    documents: Mapping[Half, Mapping[str, Any]],
    columns: Sequence[InferredColumn],
    notes: NoteWriter,
    statement: str | None,
) -> InferredTable:
    schema = schema_document(plan)
    spec = parse_table(schema, "schema", [(dict(doc), half.value) for half, doc in documents.items()])
    specs = [spec]
    if statement is not None:
        specs.append(_spec_of_ddl(statement))
    rejected = max((_rejected(tried, sample) for tried in specs), key=len)
    notes.rejected(rejected)
    return InferredTable(
        table=plan.name,
        source=sample.source,
        schema=schema,
        realtime=documents.get(Half.REALTIME),
        offline=documents.get(Half.OFFLINE),
        columns=columns,
        time_column=plan.time.name if plan.time is not None else None,
        key=list(plan.key),
        records=len(sample.records),
        malformed=len(sample.malformed),
        rejected=len(rejected),
        notes=notes.notes,
        ddl=statement,
    )


def _spec_of_ddl(statement: str) -> TableSpec:
    (table,) = parse_ddl(statement, "--ddl")
    configs = [(doc, str(doc["tableType"])) for doc in table.configs]
    return parse_table(table.schema_doc, "--ddl", configs)


def _rejected(spec: TableSpec, sample: RecordSample) -> list[MalformedRecord]:
    """The records of the sample that the table's decoder would reject, each with the reason."""
    decoder = Decoder(spec, sample.half)
    cells = partial(_cells, form=_csv_form(spec, sample)) if sample.csv is not None else dict
    outcomes = ((record.place, decoder.convert(cells(record.values))) for record in sample.records)
    return [MalformedRecord(place, outcome.reason) for place, outcome in outcomes if isinstance(outcome, Rejected)]


def _csv_form(spec: TableSpec, sample: RecordSample) -> CsvFormat:
    schema = spec.schema
    return CsvFormat.of(sample.csv or {}, multi_value_columns(schema), sample.source, "", text_columns(schema))


def _cells(values: Mapping[str, object], form: CsvFormat) -> dict[str, object]:
    return {name: form.value(name, cell) if isinstance(cell, str) else cell for name, cell in values.items()}
