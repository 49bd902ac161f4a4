"""The documents of a table from what Python users have: dictionaries, files, or the columns of a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hybrid.config.table_documents import TableDocuments
from hybrid.config.task_schedules import MOVE_HOURLY
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from hybrid.config.overrides import Document

# A document as a dictionary, or the path of a JSON file.
GivenDocument: TypeAlias = "Mapping[str, Any] | str | Path"


def given_documents(
    given: TableDocuments | GivenDocument,
    configs: Sequence[GivenDocument],
    kafka: str | None = None,
    overrides: Sequence[str] = (),
) -> TableDocuments:
    """The documents of a schema and table configs. UsageError without a config, or with one beside `TableDocuments`."""
    if isinstance(given, TableDocuments):
        if configs or kafka is not None or overrides:
            raise UsageError("TableDocuments already hold configs, kafka and overrides: give them there.")
        return given
    if not configs:
        raise UsageError("A table needs a schema and one or two table configs: create_table(schema, config).")
    documents = [each for number, config in enumerate(configs, 1) for each in _configs(config, f"config {number}")]
    return TableDocuments(_document(given, "schema"), documents, kafka, tuple(overrides))


def _configs(given: GivenDocument, name: str) -> list[Document]:
    """The table configs in a document. A relative path of a connector starts at the folder of its file."""
    from hybrid.config.connector_paths import configs_of_file
    from hybrid.schema.document import configs_in

    document, source = _document(given, name)
    if isinstance(given, Mapping):
        return [(config, source) for config in configs_in(document)]
    return configs_of_file(document, Path(given))


def _document(given: GivenDocument, name: str) -> Document:
    if isinstance(given, Mapping):
        return dict(given), name
    from hybrid.config.overrides import load_json

    return load_json(given), str(given)


def frame_documents(
    frame: Any,
    name: str,
    *,
    time_column: str | None = None,
    primary_key: Sequence[str] = (),
    topic: str | None = None,
    kafka: str | None = None,
    bucket: str = "1d",
) -> TableDocuments:
    """The documents of a table with the columns of a data frame, for `Hybrid.create_table`. No row is read.

    `frame` is a pandas or polars frame, or a pyarrow table, record batch or schema. Without `topic` the table has an
    OFFLINE half only; with it both halves, and a server moves rows in buckets of `bucket`, once an hour. With
    `primary_key` and `topic` the newest row per key is visible. UsageError for a column that is not there or has no
    type here.
    """
    schema = _arrow_schema(frame)
    known = list(schema.names)
    for column in (*([] if time_column is None else [time_column]), *primary_key):
        if column not in known:
            raise UsageError(f"The frame has no column '{column}'. It has {', '.join(map(repr, known)) or 'none'}.")
    if kafka is not None and topic is None:
        raise UsageError("`kafka` is the address of the brokers of `topic`: give both, or neither.")
    dimensions, times = [], []
    for field in schema:
        data_type, is_list = arrow_data_type(field)
        if field.name == time_column or data_type == "TIMESTAMP":
            times.append(_time_field(field.name, data_type))
        else:
            dimensions.append(
                {"name": field.name, "dataType": data_type, **({"singleValueField": False} if is_list else {})}
            )
    document: dict[str, object] = {
        "schemaName": name,
        "dimensionFieldSpecs": dimensions,
        **({"dateTimeFieldSpecs": times} if times else {}),
        **({"primaryKeyColumns": list(primary_key)} if primary_key else {}),
    }
    configs = _frame_configs(name, time_column, topic, is_upsert=bool(primary_key), bucket=bucket)
    return TableDocuments(
        (document, f"the columns of {name}"), [(config, f"{name} {config['tableType']}") for config in configs], kafka
    )


def _arrow_schema(frame: Any) -> pa.Schema:
    import pyarrow as pa

    if isinstance(frame, pa.Schema):
        return frame
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return frame.schema
    if hasattr(frame, "to_arrow"):  # polars
        return frame.head(0).to_arrow().schema
    if hasattr(frame, "dtypes") and hasattr(frame, "columns"):
        try:
            return pa.Schema.from_pandas(frame, preserve_index=False)
        except pa.ArrowInvalid as error:
            raise UsageError(f"A column of the frame has values of several types: {error}.") from error
    raise UsageError(f"A {type(frame).__name__} is no pandas or polars frame, and no pyarrow table or schema.")


def arrow_data_type(field: pa.Field) -> tuple[str, bool]:
    """The data type of an Arrow column, and whether it holds several values."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner, is_list = arrow_data_type(kind.value_field)
        return ("JSON", False) if is_list or inner == "JSON" else (inner, True)
    if pa.types.is_dictionary(kind):
        return arrow_data_type(pa.field(field.name, kind.value_type))
    tests = (
        (pa.types.is_boolean, "BOOLEAN"),
        (lambda found: pa.types.is_integer(found) and found.bit_width == 64 and str(found)[0] == "u", "BIG_DECIMAL"),
        (lambda found: pa.types.is_int64(found) or pa.types.is_uint32(found), "LONG"),
        (pa.types.is_integer, "INT"),
        (lambda found: pa.types.is_float32(found) or pa.types.is_float16(found), "FLOAT"),
        (pa.types.is_floating, "DOUBLE"),
        (pa.types.is_decimal, "BIG_DECIMAL"),
        (pa.types.is_timestamp, "TIMESTAMP"),
        (lambda found: pa.types.is_binary(found) or pa.types.is_large_binary(found), "BYTES"),
        (lambda found: pa.types.is_struct(found) or pa.types.is_map(found), "JSON"),
        (
            lambda found: pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_date(found),
            "STRING",
        ),
    )
    for is_type, name in tests:
        if is_type(kind):
            return name, False
    raise UsageError(f"Column '{field.name}' is of type {kind}, which no table column has: convert it first.")


def _time_field(name: str, data_type: str) -> dict[str, object]:
    unit = {"TIMESTAMP": "1:MILLISECONDS:TIMESTAMP", "LONG": "1:MILLISECONDS:EPOCH"}.get(data_type)
    if unit is None:
        raise UsageError(
            f"The time column '{name}' is {data_type}: it has to be a timestamp, or 64-bit epoch milliseconds.",
            hint="For another format, write the schema as a dictionary.",
        )
    return {"name": name, "dataType": data_type, "format": unit, "granularity": "1:MILLISECONDS"}


def _frame_configs(
    name: str, time_column: str | None, topic: str | None, *, is_upsert: bool, bucket: str
) -> list[dict[str, object]]:
    segments = {"schemaName": name, **({"timeColumnName": time_column} if time_column else {})}
    offline: dict[str, object] = {"tableName": name, "tableType": "OFFLINE", "segmentsConfig": segments}
    if topic is None:
        return [offline]
    stream = {"streamType": "kafka", "stream.kafka.topic.name": topic}
    realtime: dict[str, object] = {
        "tableName": name,
        "tableType": "REALTIME",
        "segmentsConfig": segments,
        "tableIndexConfig": {"streamConfigs": stream},
        "task": {"taskTypeConfigsMap": {MOVE_TASK: {"bucketTimePeriod": bucket, "schedule": MOVE_HOURLY}}},
        **({"upsertConfig": {"mode": "FULL"}} if is_upsert else {}),
    }
    return [realtime, offline]
