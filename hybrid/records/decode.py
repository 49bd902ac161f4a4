"""The one decoder: from a Kafka message, or a record of a file, to a row of the table, or to the reason why not.

Spark's workers and the query's tail both use it, so it is pure and free of locale, clock and process settings: equal
bytes give equal rows everywhere. What counts as now is told: a message's Kafka timestamp, a file's last change. It
never raises on data. A `Decoder` is pickled as its TableSpec and half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from hybrid.config.connectors import JsonFlavor
from hybrid.config.table_config import Half, MessageFormat, Records, TableSpec
from hybrid.errors import DataError
from hybrid.expression.unnest import Unnester
from hybrid.records.cdc_envelopes import CdcStep, change_step, debezium_steps
from hybrid.records.codecs import records_of
from hybrid.records.fields import UNFIT, Field, fields_of, marker_fields, time_reader
from hybrid.records.json_fast_path import PlainRecords
from hybrid.records.messages import Message, MessageFields
from hybrid.records.outcome import Batch, Decoded, Filtered, Outcome, Rejected, shown, to_batch
from hybrid.records.updates import Updates
from hybrid.schema.jsontext import parse_json
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.values import EXPECTED

if TYPE_CHECKING:
    from hybrid.expression.transforms import Transforms

_MANY, _FEW = 1000, 50
_AGAIN = (
    "An earlier record of the message has the same key, and rows of a key are folded in order of their offsets: send "
    "each in a message of its own."
)


class Decoder:
    """Decodes messages and converts records for one half of a table, as its config says.

    `message` says whether a record is a row or a change that holds one; None: as the half's stream has it.
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
        """Whether messages are JSON whose records have their fields as columns have them."""
        return self._codec is None and self._unnester is None

    @property
    def reads(self) -> frozenset[str]:
        """The fields that transforms and the filter read; of `a.b` also `a`. They need not be in the schema."""
        return self._transforms.reads if self._transforms is not None else frozenset()

    def decode_all(
        self, payload: bytes | None, now_ms: int | None = None, message: Message | None = None
    ) -> list[Outcome]:
        """What becomes of each record in a message's value; of one key only the last that wins is kept.

        The rows of a message share its offset, so what comes after what is settled here. Where rows are folded all of
        a key would count, in an order that nothing tells: the first is kept, and the others are rejected. `message` is
        the whole of it, where the table takes more than the value.
        """
        if self._is_single:
            return [self.decode(payload, now_ms, message)]
        if self._codec is not None or self._unnester is not None:
            found = [[one] for one in self._nested(payload, now_ms, message)]
            if len(found) == 1:
                return found[0]
        elif self._records is Records.ARRAY:
            found = self._array(payload, now_ms)
        else:
            found = [self._decode_each(text, now_ms) for text in self._texts(payload)]
            if len(found) == 1 and len(found[0]) == 1:
                return found[0]
        if self._spec.folds:
            found = self._first_of_each(found)
        numbered = [
            _numbered(one, number, len(found)) for number, of_record in enumerate(found, 1) for one in of_record
        ]
        if self._spec.folds:
            return numbered
        return self._last_of_each(numbered) if self._spec.primary_key else numbered

    def _decode_each(self, payload: bytes | None, now_ms: int | None) -> list[Outcome]:
        """What becomes of one record, which is several steps where it is an update."""
        if self._message is not MessageFormat.DEBEZIUM:
            return [self.decode(payload, now_ms)]
        if payload is None:
            return [Filtered()]  # what Debezium sends after a delete, for compacted topics
        record = _parsed(payload)
        if isinstance(record, Rejected):
            return [record]
        return self._record(record, now_ms, f"The message is not one JSON object but {shown(record)}.")

    def documents(self, payload: bytes | None, message: Message | None = None) -> list[Mapping[str, object] | Rejected]:
        """The records in a message's value, nested ones flat, before any transform."""
        found: list[Mapping[str, object] | Rejected] = []
        if self._codec is not None:
            found += records_of(payload, self._codec)
        else:
            record = _parsed(payload)
            found.append(record if isinstance(record, (dict, Rejected)) else Rejected(_not_an_object(record)))
        if self._message_fields is not None and message is not None:
            beside = self._message_fields.of(message)
            found = [one if isinstance(one, Rejected) else {**one, **beside} for one in found]
        if self._unnester is None:
            return found
        return [flat for one in found for flat in _unnested(self._unnester, one)]

    def _nested(self, payload: bytes | None, now_ms: int | None, message: Message | None) -> list[Outcome]:
        """What becomes of each record of a message that may hold several, or nested ones."""
        found = self.documents(payload, message)
        return [one if isinstance(one, Rejected) else self._insert(one, now_ms) for one in found]

    def decode(self, payload: bytes | None, now_ms: int | None = None, message: Message | None = None) -> Outcome:
        """The row in a message's value, which must be one JSON object in UTF-8."""
        record = _parsed(payload)
        if isinstance(record, Rejected):
            return record
        if type(record) is not dict:
            return Rejected(_not_an_object(record))
        if self._message_fields is not None and message is not None:
            record.update(self._message_fields.of(message))
        return self.store(record) if self._is_plain else self.convert(record, now_ms)

    def _texts(self, payload: bytes | None) -> list[bytes | None]:
        """The lines of a message that hold a record each; the message as it is where that is one object."""
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
        came = self._step(last, now_ms)
        if self._places and (not isinstance(came, Decoded) or not before or self._has_key_of(before[0], came)):
            return [came]
        return _all_or_none([*(self._step(step, now_ms) for step in before), came])

    def _has_key_of(self, step: CdcStep, row: Decoded) -> bool:
        """Whether a row keeps the key that it had, so that it says all. What else it had need not be known."""
        record = self.named(step.record)
        had = [(self._fields[place], record.get(self._fields[place].name)) for place in self._places]
        key = [row.values[place] for place in self._places]
        try:
            return [field.convert(value) if value is not None else None for field, value in had] == key
        except UNFIT:
            return False

    def _last_of_each(self, found: list[Outcome]) -> list[Outcome]:
        """Without the rows that another one of the same message beats: by the comparison column, then by its place.

        On a dedup table the first of a key stays.
        """
        names, places = self._spec.schema.column_names, self._places
        upsert = self._spec.upsert
        compared = names.index(upsert.comparison_column) if upsert and upsert.comparison_column in names else None
        winners: dict[tuple[object, ...], Decoded] = {}
        for one in found:
            if isinstance(one, Decoded):
                of = tuple(one.values[place] for place in places)
                best = winners.get(of)
                if best is not None and upsert is not None and upsert.first_wins:
                    continue
                if best is None or compared is None or not _is_below(one.values[compared], best.values[compared]):
                    winners[of] = one
        kept = {id(one) for one in winners.values()}
        return [one for one in found if not isinstance(one, Decoded) or id(one) in kept]

    def _first_of_each(self, found: list[list[Outcome]]) -> list[list[Outcome]]:
        """By record, with a reason in the place of each whose key an earlier one of the same message has.

        Of an update that changes its row's key all goes, or nothing.
        """
        seen: set[tuple[object, ...]] = set()
        kept: list[list[Outcome]] = []
        for of_record in found:
            rows = [one for one in of_record if isinstance(one, Decoded)]
            keys = {tuple(one.values[place] for place in self._places) for one in rows}
            kept.append([Rejected(_AGAIN)] if keys & seen else of_record)
            seen |= keys
        return kept

    def _step(self, step: CdcStep, now_ms: int | None) -> Outcome:
        """The row that is inserted or deleted. A delete by key has the time of its message where it names none."""
        if step.is_update:
            return self._update(step.record, now_ms)
        if not step.is_delete:
            return self._insert(step.record, now_ms)
        if not self._spec.primary_key:
            found = self._insert(step.record, now_ms)
            return found._replace(is_delete=True) if isinstance(found, Decoded) else found
        found = self.store(self.named(step.record), self._marker)
        if not isinstance(found, Decoded) or found.time_ms is not None or self._time is None:
            return found._replace(is_delete=True) if isinstance(found, Decoded) else found
        return Decoded(found.values, now_ms, True)

    def named(self, record: Mapping[str, object]) -> Mapping[str, object]:
        """The record by the names of the columns, where a DDL says that their case does not count."""
        if not self._spec.ignores_case:
            return record
        named = {name: record[name] for name in self._known if name in record}
        for name, value in record.items():
            named.setdefault(name.lower(), value)
        return named

    def convert(self, record: Mapping[str, object], now_ms: int | None = None) -> Outcome:
        """The row of a record that is already parsed: from JSON, CSV (texts) or Parquet (Python values)."""
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
        """A row of the columns that an update names, on a table that folds it into what its key has."""
        if self._updates.refusal is not None:
            return Rejected(self._updates.refusal)
        record = self.named(record)
        shaped = self.shape(record, now_ms)
        if isinstance(shaped, (Rejected, Filtered)):
            return shaped
        found = self.store(shaped, self._updates.fields)
        if isinstance(found, Rejected):
            return found
        problem = self._updates.problem(record, dict(zip(self._spec.schema.column_names, found.values, strict=True)))
        return found if problem is None else Rejected(problem)

    def shape(
        self, record: Mapping[str, object], now_ms: int | None = None
    ) -> Mapping[str, object] | Rejected | Filtered:
        """The record with the columns of its transforms, before it is converted to the schema's types."""
        if self._transforms is None:
            return record
        try:
            shaped = self._transforms.apply(record, now_ms)
        except DataError as error:
            return Rejected(str(error))
        return Filtered() if shaped is None else shaped

    def store(self, record: Mapping[str, object], fields: Sequence[Field] | None = None) -> Decoded | Rejected:
        """The row of a record that has its shape."""
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
        """The rows of many messages as columns; `times_ms` says for each what counts as now.

        `messages` are the whole of them, where the table takes more than their values.
        """
        times: Sequence[int | None] = times_ms if times_ms is not None else (None,) * len(payloads)
        if self._plain_records is not None and _are_plain(self._plain_records, payloads):
            return self._plain_batch(self._plain_records, payloads, times)
        whole: Sequence[Message | None] = messages if messages is not None else (None,) * len(payloads)
        given = zip(payloads, times, whole, strict=True)
        if self._is_single:
            found = [self.decode(*one) for one in given]
            return to_batch(found, len(self._fields), range(len(found)))
        all_found = [self.decode_all(*one) for one in given]
        origins = [number for number, of_one in enumerate(all_found) for _ in of_one]
        return to_batch([one for of_one in all_found for one in of_one], len(self._fields), origins)

    def _plain_batch(self, plain: PlainRecords, payloads: Sequence[bytes | None], times: Sequence[int | None]) -> Batch:
        taken, count = plain.take(payloads), len(payloads)
        deletes = [False] * count if self._delete is None else [one is True for one in taken.columns[self._delete]]
        batch = Batch(taken.columns, taken.times_ms, deletes, [None] * count, [False] * count, range(count))
        left = sorted(taken.left)
        judged = [self.decode(payloads[place], times[place]) for place in left]
        batch.put(left, to_batch(judged, len(self._fields), left))
        return batch

    def unknown_columns(self, record: Mapping[str, object]) -> tuple[str, ...]:
        """The keys of a record that the schema does not have, in the record's order. They are not stored."""
        return tuple(key for key in record if key not in self._known)

    def _finish(self, values: list[object]) -> Decoded | Rejected:
        row = tuple(values)
        given = [place for place in self._compared if row[place] is not None]
        if self._compared and len(given) != 1:
            names = " and ".join(f"'{self._fields[place].name}'" for place in given or self._compared)
            have = "have a value" if given else "are missing or null"
            return Rejected(f"Columns {names} {have}: a row has a value in just one of the comparison columns.")
        is_delete = self._delete is not None and row[self._delete] is True
        if self._time is None or row[self._time] is None:  # a delete by key
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
    """The steps of an update, or the first reason why one of them cannot be taken."""
    return next(([one] for one in found if isinstance(one, Rejected)), found)


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
    """The JSON value of a message, or why there is none."""
    if payload is None:
        return Rejected("The message has no value (a tombstone); a JSON object is expected.")
    try:
        return parse_json(str(payload, "utf-8"))
    except UnicodeDecodeError as error:
        return Rejected(f"The message is not UTF-8: byte {error.start} does not fit.")
    except (ValueError, RecursionError) as error:
        return Rejected(f"The message is not one JSON object: {error}.")


def _are_plain(plain: PlainRecords, payloads: Sequence[bytes | None]) -> bool:
    """Whether trying them all at once is worth its cost: of many messages the first few tell."""
    return len(payloads) < _MANY or len(plain.take(payloads[:_FEW]).left) < _FEW // 2


def _numbered(found: Outcome, number: int, count: int) -> Outcome:
    """A reason says which of several records it is about."""
    return (
        Rejected(f"Record {number} of {count}: {found.reason}") if isinstance(found, Rejected) and count > 1 else found
    )


def _is_below(one: object, other: object) -> bool:
    """Whether a comparison value is lower than another of the same column; a missing one is lowest."""
    if one is None or other is None:
        return one is None and other is not None
    return bool(one < other)  # type: ignore[operator]


def _unnester(spec: TableSpec, half: Half) -> Unnester | None:
    config = spec.ingestion.get(half)
    return Unnester(config.complex_types) if config is not None and config.complex_types is not None else None


def _transforms(spec: TableSpec, half: Half) -> Transforms | None:
    config = spec.ingestion.get(half)
    if config is None or not (config.transforms or config.filter_function):
        return None
    # A table without transforms does not pay for the parser.
    from hybrid.expression.transforms import Transforms

    return Transforms(config, spec.schema)
