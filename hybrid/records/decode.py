"""The only decoder: converts a Kafka message, or a record of a file, to a row, or to the reason for its rejection.

Spark's workers and the query's tail both use it, so it is pure and free of locale, clock and process settings: equal
bytes give equal rows everywhere. The caller passes the current time: a message's Kafka timestamp, or a file's time of
modification. Bad data never raises an exception. A `Decoder` is pickled as its TableSpec and half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from hybrid.config.json_flavor import JsonFlavor
from hybrid.config.table_config import Half, MessageFormat, Records, TableSpec
from hybrid.errors import DataError
from hybrid.expression.unnest import Unnester
from hybrid.records.cdc_envelopes import CdcStep, change_step, debezium_steps
from hybrid.records.codecs import records_of
from hybrid.records.fields import UNFIT, Field, fields_of, marker_fields, time_reader
from hybrid.records.json_fast_path import PlainRecords
from hybrid.records.message_rows import resolve_rows
from hybrid.records.messages import Message, MessageFields
from hybrid.records.outcome import Batch, Decoded, Filtered, Outcome, Rejected, shown, to_batch
from hybrid.records.updates import Updates
from hybrid.schema.jsontext import parse_json
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.values import EXPECTED

if TYPE_CHECKING:
    from hybrid.expression.transforms import Transforms

_MANY, _FEW = 1000, 50


class Decoder:
    """Decodes messages and converts records for one half of a table, by its config.

    `message` says whether a record is a row or a change that contains one; None: the format of the half's stream.
    """

    def __init__(self, spec: TableSpec, half: Half = Half.REALTIME, message: MessageFormat | None = None) -> None:
        if message is None:
            of_stream = spec.stream is not None and half is Half.REALTIME
            message = spec.stream.message if spec.stream is not None and of_stream else MessageFormat.RECORD
        self._spec, self._half, self._message = spec, half, message
        of_stream = spec.stream is not None and half is Half.REALTIME
        self._records = spec.stream.records if spec.stream is not None and of_stream else Records.ONE
        config = spec.ingestion.get(half)
        self._transforms = _transforms(spec, half)
        self._lenient = config is not None and config.continue_on_error
        flavor = spec.stream.flavor if spec.stream is not None and of_stream else JsonFlavor.DEFAULT
        self._fields = fields_of(spec, flavor)
        names = spec.schema.column_names
        self._known = frozenset(names)
        self._time = names.index(spec.time_column) if spec.time_column else None
        self._to_millis = time_reader(spec)
        delete = spec.upsert.delete_column if spec.upsert else None
        self._delete = names.index(delete) if delete else None
        self._places = [names.index(name) for name in spec.primary_key]
        compared = spec.upsert.comparison_columns if spec.upsert else ()
        self._compared = [names.index(name) for name in compared] if len(compared) > 1 else []
        self._marker = marker_fields(spec, self._fields)
        self._updates = Updates(spec, self._fields)
        self._codec = spec.stream.codec if spec.stream is not None and of_stream else None
        has_fields = spec.stream is not None and of_stream and spec.stream.metadata
        self._message_fields = MessageFields(spec.schema) if has_fields else None
        self._unnester = _unnester(spec, half)
        plain = message is MessageFormat.RECORD and self._transforms is None and self._unnester is None
        self._is_plain = plain and not spec.ignores_case
        self._is_single = self.is_of_json and not spec.holds_several(half)
        is_short = self._is_plain and self._is_single and not has_fields and not self._compared
        self._plain_records = PlainRecords(spec, self._fields) if is_short else None

    def __reduce__(self) -> tuple[type[Decoder], tuple[TableSpec, Half, MessageFormat]]:
        return Decoder, (self._spec, self._half, self._message)

    @property
    def is_of_json(self) -> bool:
        """Whether messages are JSON, and records are not unnested."""
        return self._codec is None and self._unnester is None

    @property
    def reads(self) -> frozenset[str]:
        """The fields that transforms and the filter read, for `a.b` also `a`. The schema may lack them."""
        return self._transforms.reads if self._transforms is not None else frozenset()

    def decode_all(
        self, payload: bytes | None, now_ms: int | None = None, message: Message | None = None
    ) -> list[Outcome]:
        """The outcome of each record in a message's value; of several rows of a key only the winner is kept.

        `message` is the whole message, where the table reads more than the value.
        """
        if self._is_single:
            return [self.decode(payload, now_ms, message)]
        if self._codec is not None or self._unnester is not None:
            outcomes = [[outcome] for outcome in self._nested(payload, now_ms, message)]
            if len(outcomes) == 1:
                return outcomes[0]
        elif self._records is Records.ARRAY:
            outcomes = self._array(payload, now_ms)
        else:
            outcomes = [self._decode_each(text, now_ms) for text in self._texts(payload)]
            if len(outcomes) == 1 and len(outcomes[0]) == 1:
                return outcomes[0]
        return resolve_rows(outcomes, self._spec, self._places)

    def _decode_each(self, payload: bytes | None, now_ms: int | None) -> list[Outcome]:
        """The outcomes of one record; an update of Debezium has several steps."""
        if self._message is not MessageFormat.DEBEZIUM:
            return [self.decode(payload, now_ms)]
        if payload is None:
            return [Filtered()]  # Debezium sends a tombstone after each delete, for compacted topics
        record = _parsed(payload)
        if isinstance(record, Rejected):
            return [record]
        return self._record(record, now_ms, f"The message is not one JSON object but {shown(record)}.")

    def documents(self, payload: bytes | None, message: Message | None = None) -> list[Mapping[str, object] | Rejected]:
        """The records in a message's value, unnested, before any transform."""
        records: list[Mapping[str, object] | Rejected] = []
        if self._codec is not None:
            records += records_of(payload, self._codec)
        else:
            record = _parsed(payload)
            records.append(record if isinstance(record, (dict, Rejected)) else Rejected(_not_an_object(record)))
        if self._message_fields is not None and message is not None:
            beside = self._message_fields.of(message)
            records = [record if isinstance(record, Rejected) else {**record, **beside} for record in records]
        if self._unnester is None:
            return records
        return [flat for record in records for flat in _unnested(self._unnester, record)]

    def _nested(self, payload: bytes | None, now_ms: int | None, message: Message | None) -> list[Outcome]:
        """The outcome of each record of a message that may hold several or nested records."""
        records = self.documents(payload, message)
        return [record if isinstance(record, Rejected) else self._insert(record, now_ms) for record in records]

    def decode(self, payload: bytes | None, now_ms: int | None = None, message: Message | None = None) -> Outcome:
        """The outcome of a message whose value must be one JSON object in UTF-8."""
        record = _parsed(payload)
        if isinstance(record, Rejected):
            return record
        if type(record) is not dict:
            return Rejected(_not_an_object(record))
        if self._message_fields is not None and message is not None:
            record.update(self._message_fields.of(message))
        return self.store(record) if self._is_plain else self.convert(record, now_ms)

    def _texts(self, payload: bytes | None) -> list[bytes | None]:
        """The lines of a message, each with a record; the message itself when it is one JSON value."""
        if payload is None or b"\n" not in payload or not isinstance(_parsed(payload), Rejected):
            return [payload]
        return [line for line in payload.split(b"\n") if line.strip()] or [payload]

    def _array(self, payload: bytes | None, now_ms: int | None) -> list[list[Outcome]]:
        records = _parsed(payload)
        if isinstance(records, Rejected):
            return [[records]]
        if not isinstance(records, list):
            return [[Rejected(f"The message is not an array of records but {shown(records)}.")]]
        return [self._record(record, now_ms, f"{shown(record)} is no record.") for record in records]

    def _record(self, record: object, now_ms: int | None, otherwise: str) -> list[Outcome]:
        if not isinstance(record, dict):
            return [Rejected(otherwise)]
        if self._message is not MessageFormat.DEBEZIUM:
            return [self.convert(record, now_ms)]
        steps = debezium_steps(record, keyed=bool(self._places))
        if isinstance(steps, (Rejected, Filtered)):
            return [steps]
        *before, last = steps
        outcome = self._step(last, now_ms)
        if self._places and (not isinstance(outcome, Decoded) or not before or self._has_key_of(before[0], outcome)):
            return [outcome]
        return _all_or_none([*(self._step(step, now_ms) for step in before), outcome])

    def _has_key_of(self, step: CdcStep, row: Decoded) -> bool:
        """Whether an update keeps the key of its row. Then the new row alone is enough: it replaces the old row."""
        record = self.named(step.record)
        old_values = [(self._fields[place], record.get(self._fields[place].name)) for place in self._places]
        new_key = [row.values[place] for place in self._places]
        try:
            return [field.convert(value) if value is not None else None for field, value in old_values] == new_key
        except UNFIT:
            return False

    def _step(self, step: CdcStep, now_ms: int | None) -> Outcome:
        """The row to insert or delete. A delete by key has its message's time where it has no time of its own."""
        if step.is_update:
            return self._update(step.record, now_ms)
        if not step.is_delete:
            return self._insert(step.record, now_ms)
        if not self._spec.primary_key:
            outcome = self._insert(step.record, now_ms)
            return outcome._replace(is_delete=True) if isinstance(outcome, Decoded) else outcome
        outcome = self.store(self.named(step.record), self._marker)
        if not isinstance(outcome, Decoded) or outcome.time_ms is not None or self._time is None:
            return outcome._replace(is_delete=True) if isinstance(outcome, Decoded) else outcome
        return Decoded(outcome.values, now_ms, True)

    def named(self, record: Mapping[str, object]) -> Mapping[str, object]:
        """The record with the names of columns as keys, where a DDL makes names case-insensitive."""
        if not self._spec.ignores_case:
            return record
        named = {name: record[name] for name in self._known if name in record}
        for name, value in record.items():
            named.setdefault(name.lower(), value)
        return named

    def convert(self, record: Mapping[str, object], now_ms: int | None = None) -> Outcome:
        """The outcome of a parsed record: from JSON, CSV (texts) or Parquet (Python values)."""
        if self._message is MessageFormat.RECORD:
            return self._insert(record, now_ms)
        step = change_step(record)
        return step if isinstance(step, Rejected) else self._step(step, now_ms)

    def _insert(self, record: Mapping[str, object], now_ms: int | None) -> Outcome:
        record = self.named(record)
        if self._transforms is None:
            return self.store(record)
        shaped = self.shape(record, now_ms)
        return shaped if isinstance(shaped, (Rejected, Filtered)) else self.store(shaped)

    def _update(self, record: Mapping[str, object], now_ms: int | None) -> Outcome:
        """A row with the columns that an update names; partial upsert merges it into the row of its key."""
        if self._updates.refusal is not None:
            return Rejected(self._updates.refusal)
        record = self.named(record)
        shaped = self.shape(record, now_ms)
        if isinstance(shaped, (Rejected, Filtered)):
            return shaped
        row = self.store(shaped, self._updates.fields)
        if isinstance(row, Rejected):
            return row
        problem = self._updates.problem(record, dict(zip(self._spec.schema.column_names, row.values, strict=True)))
        return row if problem is None else Rejected(problem)

    def shape(
        self, record: Mapping[str, object], now_ms: int | None = None
    ) -> Mapping[str, object] | Rejected | Filtered:
        """The record with the columns that transforms compute, before conversion to the schema's types."""
        if self._transforms is None:
            return record
        try:
            shaped = self._transforms.apply(record, now_ms)
        except DataError as error:
            return Rejected(str(error))
        return Filtered() if shaped is None else shaped

    def store(self, record: Mapping[str, object], fields: Sequence[Field] | None = None) -> Decoded | Rejected:
        """The row of a record after its transforms."""
        values: list[object] = []
        for name, convert, multiple, null, required, missing in fields or self._fields:
            value = record.get(name)
            if value is None:
                if missing and name not in record:
                    values.append(missing[0])
                    continue
                if required:
                    return Rejected(f"Column '{name}' is missing or null: {required}.")
                values.append(null)
                continue
            try:
                values.append(convert(value))
            except UNFIT:
                if not self._lenient or required:
                    return self._unfit(name, value, multiple)
                values.append(null)
        return self._finish(values)

    def decode_batch(
        self,
        payloads: Sequence[bytes | None],
        times_ms: Sequence[int] | None = None,
        messages: Sequence[Message] | None = None,
    ) -> Batch:
        """The rows of many messages as columns; `times_ms` is the current time for each.

        `messages` are the whole messages, where the table reads more than their values.
        """
        times: Sequence[int | None] = times_ms if times_ms is not None else (None,) * len(payloads)
        if self._plain_records is not None and _are_plain(self._plain_records, payloads):
            return self._plain_batch(self._plain_records, payloads, times)
        whole_messages: Sequence[Message | None] = messages if messages is not None else (None,) * len(payloads)
        arguments = zip(payloads, times, whole_messages, strict=True)
        if self._is_single:
            outcomes = [self.decode(*message) for message in arguments]
            return to_batch(outcomes, len(self._fields), range(len(outcomes)))
        outcomes_by_message = [self.decode_all(*message) for message in arguments]
        origins = [number for number, of_message in enumerate(outcomes_by_message) for _ in of_message]
        return to_batch(
            [outcome for of_message in outcomes_by_message for outcome in of_message], len(self._fields), origins
        )

    def _plain_batch(self, plain: PlainRecords, payloads: Sequence[bytes | None], times: Sequence[int | None]) -> Batch:
        fast, count = plain.take(payloads), len(payloads)
        deletes = [False] * count if self._delete is None else [marker is True for marker in fast.columns[self._delete]]
        batch = Batch(fast.columns, fast.times_ms, deletes, [None] * count, [False] * count, range(count))
        undecided = sorted(fast.left)
        outcomes = [self.decode(payloads[place], times[place]) for place in undecided]
        batch.put(undecided, to_batch(outcomes, len(self._fields), undecided))
        return batch

    def unknown_columns(self, record: Mapping[str, object]) -> tuple[str, ...]:
        """The keys of a record that the schema lacks, in the record's order. They are not stored."""
        return tuple(key for key in record if key not in self._known)

    def _finish(self, values: list[object]) -> Decoded | Rejected:
        row = tuple(values)
        present = [place for place in self._compared if row[place] is not None]
        if self._compared and len(present) != 1:
            names = " and ".join(f"'{self._fields[place].name}'" for place in present or self._compared)
            have = "have a value" if present else "are missing or null"
            return Rejected(f"Columns {names} {have}: a row has a value in just one of the comparison columns.")
        is_delete = self._delete is not None and row[self._delete] is True
        if self._time is None or row[self._time] is None:  # only for a delete by key
            return Decoded(row, None, is_delete)
        try:
            return Decoded(row, self._to_millis(row[self._time]), is_delete)
        except DataError as error:
            return Rejected(f"Column '{self._fields[self._time].name}': {error}")

    def _unfit(self, name: str, value: object, multiple: bool) -> Rejected:
        field = self._spec.schema.find(name)
        assert field is not None
        if isinstance(value, (list, tuple)) and not multiple:
            return Rejected(f"Column '{name}': {shown(value)} is a list; the column holds one {field.data_type}.")
        if field.time_format and isinstance(value, date):
            return Rejected(f"Column '{name}': {shown(value)} does not fit the format '{field.time_format.text}'.")
        each = "Every element must be " if multiple else "It must be "
        expected = sql_column(field.sql_type, field.data_type).expected if field.sql_type else EXPECTED[field.data_type]
        return Rejected(f"Column '{name}': {shown(value)} does not fit. {each}{expected}.")


def _all_or_none(found: list[Outcome]) -> list[Outcome]:
    """The outcomes of an update's steps, or only the first rejection among them."""
    return next(([outcome] for outcome in found if isinstance(outcome, Rejected)), found)


def _not_an_object(value: object) -> str:
    return f"The message is not one JSON object but {shown(value)}."


def _unnested(unnester: Unnester, record: Mapping[str, object] | Rejected) -> Sequence[Mapping[str, object] | Rejected]:
    if isinstance(record, Rejected):
        return [record]
    try:
        return unnester.rows(record)
    except DataError as error:
        return [Rejected(str(error))]
    except RecursionError:
        return [Rejected("The record is nested too deeply.")]


def _parsed(payload: bytes | None) -> object:
    """The JSON value of a message; Rejected, with the reason, if there is none."""
    if payload is None:
        return Rejected("The message has no value (a tombstone); a JSON object is expected.")
    try:
        return parse_json(str(payload, "utf-8"))
    except UnicodeDecodeError as error:
        return Rejected(f"The message is not UTF-8: byte {error.start} does not fit.")
    except (ValueError, RecursionError) as error:
        return Rejected(f"The message is not one JSON object: {error}.")


def _are_plain(plain: PlainRecords, payloads: Sequence[bytes | None]) -> bool:
    """Whether the fast path is worth its cost. Of many messages only the first few are tried."""
    return len(payloads) < _MANY or len(plain.take(payloads[:_FEW]).left) < _FEW // 2


def _unnester(spec: TableSpec, half: Half) -> Unnester | None:
    config = spec.ingestion.get(half)
    return Unnester(config.complex_types) if config is not None and config.complex_types is not None else None


def _transforms(spec: TableSpec, half: Half) -> Transforms | None:
    config = spec.ingestion.get(half)
    if config is None or not (config.transforms or config.filter_function):
        return None
    # Imported late: a table without transforms does not pay for the parser.
    from hybrid.expression.transforms import Transforms

    return Transforms(config, spec.schema)
