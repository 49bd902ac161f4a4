"""The one decoder: from a Kafka message, or a record of a file, to a row of the table, or to the reason why not.

Spark's workers and the query's tail both use it, so it is pure and free of locale, clock and process settings: equal
bytes give equal rows everywhere. What counts as now is told: a message's Kafka timestamp, a file's last change. It
never raises on data. A `Decoder` is pickled as its TableSpec and half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from hybrid.errors import DataError
from hybrid.spec.jsontext import compact, parse_json
from hybrid.spec.schema import FieldSpec
from hybrid.spec.sqlvalues import sql_column
from hybrid.spec.table_config import Half, MessageFormat, Records, TableSpec
from hybrid.spec.timeformat import MAX_MS, MIN_MS
from hybrid.spec.types import DataType
from hybrid.spec.values import CONVERTERS, EXPECTED, millis_of, to_timestamp
from hybrid.table.outcome import Batch, Decoded, Filtered, Outcome, Rejected, to_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from hybrid.spec.transforms import Transforms

VALUE_SHOWN_MAX = 100

# What a converter raises when a value does not fit; RecursionError comes from records that were not parsed here.
_UNFIT = (ValueError, ArithmeticError, TypeError, LookupError, RecursionError)
_NEVER_NULL = "a row whose time is null is rejected"
_CHANGES = ("insert", "delete")
_CHANGES_WORDS = 'one of {"insert": {...}} and {"delete": {...}}'


class _Column(NamedTuple):
    """What decoding one field takes, looked up once. `required` is why a null is not taken, or None.

    `missing` holds the value for a record without the field, where that is another one than for a null.
    """

    name: str
    convert: Callable[[object], object]
    multiple: bool
    null: object
    required: str | None
    missing: tuple[object, ...]


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
        self._columns = tuple(_column(spec, field) for field in spec.schema.fields)
        names = spec.schema.column_names
        self._known = frozenset(names)
        self._time = names.index(spec.time_column) if spec.time_column else None
        self._to_millis = _time_reader(spec)
        delete = spec.upsert.delete_column if spec.upsert else None
        self._delete = names.index(delete) if delete else None
        self._changes = message is MessageFormat.CHANGE
        self._marker = _marker_columns(spec, self._columns)
        self._is_plain = self._transforms is None and not self._changes and not spec.ignores_case

    def __reduce__(self) -> tuple[type[Decoder], tuple[TableSpec, Half, MessageFormat]]:
        return Decoder, (self._spec, self._half, self._message)

    @property
    def reads(self) -> frozenset[str]:
        """The fields that transforms and the filter read; of `a.b` also `a`. They need not be in the schema."""
        return self._transforms.reads if self._transforms is not None else frozenset()

    def decode_all(self, payload: bytes | None, now_ms: int | None = None) -> list[Outcome]:
        """What becomes of each record in a message's value; of one key only the last that wins is kept.

        The rows of a message share its offset, so what comes after what is settled here.
        """
        if self._records is Records.ONE:
            return [self.decode(payload, now_ms)]
        texts = self._texts(payload)
        if len(texts) == 1 and self._records is Records.LINES:
            return [self.decode(texts[0], now_ms)]
        if self._records is Records.LINES:
            found = [self.decode(text, now_ms) for text in texts]
        else:
            found = self._array(payload, now_ms)
        numbered = [_numbered(one, number, len(found)) for number, one in enumerate(found, 1)]
        return self._last_of_each(numbered) if self._spec.primary_key else numbered

    def decode(self, payload: bytes | None, now_ms: int | None = None) -> Outcome:
        """The row in a message's value, which must be one JSON object in UTF-8."""
        record = _parsed(payload)
        if isinstance(record, Rejected):
            return record
        if type(record) is not dict:
            return Rejected(f"The message is not one JSON object but {_shown(record)}.")
        return self.store(record) if self._is_plain else self.convert(record, now_ms)

    def _texts(self, payload: bytes | None) -> list[bytes | None]:
        """The lines of a message that hold a record each; the message as it is where that is one object."""
        if payload is None or b"\n" not in payload or not isinstance(_parsed(payload), Rejected):
            return [payload]
        return [line for line in payload.split(b"\n") if line.strip()] or [payload]

    def _array(self, payload: bytes | None, now_ms: int | None) -> list[Outcome]:
        records = _parsed(payload)
        if isinstance(records, Rejected):
            return [records]
        if not isinstance(records, list):
            return [Rejected(f"The message is not an array of records but {_shown(records)}.")]
        return [
            self.convert(record, now_ms) if isinstance(record, dict) else Rejected(f"{_shown(record)} is no record.")
            for record in records
        ]

    def _last_of_each(self, found: list[Outcome]) -> list[Outcome]:
        """Without the rows that another one of the same message beats: by the comparison column, then by its place."""
        names, key = self._spec.schema.column_names, self._spec.primary_key
        places = [names.index(name) for name in key]
        upsert = self._spec.upsert
        compared = names.index(upsert.comparison_column) if upsert and upsert.comparison_column in names else None
        winners: dict[tuple[object, ...], Decoded] = {}
        for one in found:
            if isinstance(one, Decoded):
                of = tuple(one.values[place] for place in places)
                best = winners.get(of)
                if best is None or compared is None or not _is_below(one.values[compared], best.values[compared]):
                    winners[of] = one
        kept = {id(one) for one in winners.values()}
        return [one for one in found if not isinstance(one, Decoded) or id(one) in kept]

    def _change(self, change: Mapping[str, object], now_ms: int | None) -> Outcome:
        """The row that is inserted or deleted. A delete by key has the time of its message where it names none."""
        (verb, record), *more = change.items() or ((None, None),)
        if more or verb not in _CHANGES or not isinstance(record, dict):
            return Rejected(f"The message is {_shown(change)}; it must be {_CHANGES_WORDS}.")
        if verb == "insert":
            return self._insert(record, now_ms)
        if not self._spec.primary_key:
            found = self._insert(record, now_ms)
            return found._replace(is_delete=True) if isinstance(found, Decoded) else found
        found = self.store(self.named(record), self._marker)
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
        return self._change(record, now_ms) if self._changes else self._insert(record, now_ms)

    def _insert(self, record: Mapping[str, object], now_ms: int | None) -> Outcome:
        record = self.named(record)
        if self._transforms is None:
            return self.store(record)
        shaped = self.shape(record, now_ms)
        return shaped if isinstance(shaped, (Rejected, Filtered)) else self.store(shaped)

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

    def store(self, record: Mapping[str, object], columns: Sequence[_Column] | None = None) -> Decoded | Rejected:
        """The row of a record that has its shape."""
        values: list[object] = []
        for name, convert, multiple, null, required, missing in columns or self._columns:
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
            except _UNFIT:
                if not self._lenient or required:
                    return self._unfit(name, value, multiple)
                values.append(null)
        return self._finish(values)

    def decode_batch(self, payloads: Sequence[bytes | None], times_ms: Sequence[int] | None = None) -> Batch:
        """The rows of many messages as columns; `times_ms` says for each what counts as now."""
        times: Sequence[int | None] = times_ms if times_ms is not None else (None,) * len(payloads)
        given = zip(payloads, times, strict=True)
        if self._records is Records.ONE:
            found = [self.decode(payload, now_ms) for payload, now_ms in given]
            return to_batch(found, len(self._columns), range(len(found)))
        all_found = [self.decode_all(payload, now_ms) for payload, now_ms in given]
        origins = [number for number, of_one in enumerate(all_found) for _ in of_one]
        return to_batch([one for of_one in all_found for one in of_one], len(self._columns), origins)

    def unknown_columns(self, record: Mapping[str, object]) -> tuple[str, ...]:
        """The keys of a record that the schema does not have, in the record's order. They are not stored."""
        return tuple(key for key in record if key not in self._known)

    def _finish(self, values: list[object]) -> Decoded | Rejected:
        row = tuple(values)
        is_delete = self._delete is not None and row[self._delete] is True
        if self._time is None or row[self._time] is None:  # a delete by key
            return Decoded(row, None, is_delete)
        try:
            return Decoded(row, self._to_millis(row[self._time]), is_delete)
        except DataError as error:
            return Rejected(f"Column '{self._columns[self._time].name}': {error}")

    def _unfit(self, name: str, value: object, multiple: bool) -> Rejected:
        field = self._spec.schema.find(name)
        assert field is not None
        if isinstance(value, (list, tuple)) and not multiple:
            return Rejected(f"Column '{name}': {_shown(value)} is a list; the column holds one {field.data_type}.")
        if field.time_format and isinstance(value, date):
            return Rejected(f"Column '{name}': {_shown(value)} does not fit the format '{field.time_format.text}'.")
        each = "Every element must be " if multiple else "It must be "
        expected = sql_column(field.sql_type, field.data_type).expected if field.sql_type else EXPECTED[field.data_type]
        return Rejected(f"Column '{name}': {_shown(value)} does not fit. {each}{expected}.")


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


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """The Arrow schema of the user's columns, in the schema's order, all nullable."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, field.arrow_type()) for field in spec.schema.fields])


def to_arrow(spec: TableSpec, columns: Sequence[Sequence[object]]) -> list[pa.Array]:
    """Decoded columns as Arrow arrays of `arrow_schema`'s types."""
    import pyarrow as pa

    fields = zip(spec.schema.fields, columns, strict=True)
    return [pa.array(values, type=field.arrow_type()) for field, values in fields]


def _transforms(spec: TableSpec, half: Half) -> Transforms | None:
    config = spec.ingestion.get(half)
    if config is None or not (config.transforms or config.filter_function):
        return None
    # A table without transforms does not pay for the parser.
    from hybrid.spec.transforms import Transforms

    return Transforms(config, spec.schema)


def _column(spec: TableSpec, field: FieldSpec) -> _Column:
    keeps_null = spec.null_handling and not field.not_null
    multiple = not field.single_value
    default = [field.default_null] if multiple else field.default_null
    one = _one_value(field)
    convert = _many_values(one, field.default_null, keeps_null) if multiple else one
    null = None if keeps_null or field.sql_type is not None else default
    return _Column(field.name, convert, multiple, null, _why_required(spec, field), field.missing)


def _marker_columns(spec: TableSpec, columns: Sequence[_Column]) -> tuple[_Column, ...]:
    """What a delete by key takes: the key; everything else may be null."""
    key = spec.primary_key
    return tuple(
        column if column.name in key else column._replace(null=None, required=None, missing=()) for column in columns
    )


def _why_required(spec: TableSpec, field: FieldSpec) -> str | None:
    name = field.name
    if name == spec.time_column:
        return _NEVER_NULL
    if name in spec.primary_key:
        return "it is part of the primary key"
    if spec.upsert and name == spec.upsert.comparison_column:
        return "it decides which row of a key is newest"
    return "it is NOT NULL" if field.is_required else None


def _one_value(field: FieldSpec) -> Callable[[object], object]:
    convert = sql_column(field.sql_type, field.data_type).convert if field.sql_type else CONVERTERS[field.data_type]
    form = field.time_format
    if form is None:
        return convert

    def convert_time(value: object) -> object:
        """Files know dates and instants; the column has a format of its own."""
        return form.from_millis(millis_of(to_timestamp(value))) if isinstance(value, date) else convert(value)

    # A TIMESTAMP column holds instants as they are, to the microsecond.
    return convert if field.data_type is DataType.TIMESTAMP else convert_time


def _many_values(one: Callable[[object], object], default: object, keeps_null: bool) -> Callable[[object], object]:
    """A list of values; one value is a list of one. An empty list is a null, as in Pinot."""

    def convert_all(value: object) -> object:
        items = value if isinstance(value, (list, tuple)) else (value,)
        if not items:
            return None if keeps_null else [default]
        return [default if item is None else one(item) for item in items]

    return convert_all


def _time_reader(spec: TableSpec) -> Callable[[object], int]:
    field = spec.time_field
    form = field.time_format if field else None
    if form is None:
        return _no_time
    return _read_millis if form.is_millis and form.data_type is not DataType.TIMESTAMP else form.to_millis


def _no_time(value: object) -> int:
    raise DataError(f"{_shown(value)} is no time: the table has no time column.")


def _read_millis(value: object) -> int:
    """The short way for what nearly every table has."""
    if type(value) is int and MIN_MS <= value <= MAX_MS:
        return value
    raise DataError(f"{_shown(value)} is not a time in epoch milliseconds in the years 1 to 9999.")


def _shown(value: object) -> str:
    """A value as JSON in at most VALUE_SHOWN_MAX characters that UTF-8 can hold."""
    try:
        text = compact(value)
    except (ValueError, TypeError, RecursionError):
        text = _plain(value)
    short = text if len(text) <= VALUE_SHOWN_MAX else text[: VALUE_SHOWN_MAX - 3] + "..."
    return short.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> str:
    """What JSON does not have: NaN and Infinity by name, anything else by its type, which is the same everywhere."""
    return repr(value) if isinstance(value, float) else f"a value of type {type(value).__name__}"
