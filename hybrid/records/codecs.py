"""Reads messages in CSV, Avro or a schema registry's framing as records. Bad data never raises an exception.

RegistryError does pass through: a registry that does not answer says nothing about the message.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from hybrid.formats.avro_messages import AvroMessages
from hybrid.formats.csv_cells import rows_of
from hybrid.formats.csv_format import CsvFormat, header_of
from hybrid.formats.registry_messages import RegistryFormat, RegistryMessages
from hybrid.records.outcome import Rejected
from hybrid.schema.problem import Problem

Codec = CsvFormat | AvroMessages | RegistryMessages
_BOM = "\ufeff"


def records_of(payload: bytes | None, codec: Codec) -> Sequence[Mapping[str, object] | Rejected]:
    """The records in a message: all rows of CSV, or one record. Without any record, the reason why there is none."""
    if payload is None:
        return [Rejected("The message has no value (a tombstone); a record is expected.")]
    if isinstance(codec, CsvFormat):
        return _csv(payload, codec)
    try:
        return [codec.read(payload)]
    except ValueError as error:
        kind = "JSON" if isinstance(codec, RegistryMessages) and codec.format is RegistryFormat.JSON else "Avro"
        return [Rejected(f"The message is not one record of its {kind} schema: {error}.")]


def _csv(payload: bytes, form: CsvFormat) -> Sequence[Mapping[str, object] | Rejected]:
    try:
        text = str(payload, "utf-8").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        return [Rejected(f"The message is not UTF-8: byte {error.start} does not fit.")]
    # Only a line feed ends a line; the lexer judges carriage returns and the like.
    rows = rows_of(iter(io.StringIO(text, newline="\n")), form.dialect)
    records: list[Mapping[str, object] | Rejected] = []
    try:
        header = header_of(rows, form)
        for _, cells in rows:
            if form.trailing_delimiter and len(cells) == len(header) + 1 and not cells[-1]:
                cells = cells[:-1]
            if len(cells) == len(header):
                records.append({name: form.value(name, cell) for name, cell in zip(header, cells, strict=True)})
            else:
                records.append(Rejected(f"The row has {len(cells)} cells where the header has {len(header)}."))
    except Problem as problem:
        records.append(Rejected(f"The message {problem.reason}."))
    return records or [Rejected("The message holds no row of CSV.")]
