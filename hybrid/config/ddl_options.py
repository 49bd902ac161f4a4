"""The WITH clause of a CREATE TABLE: Feldera's properties, and ours, which begin with `hybrid.`.

After docs.feldera.com/sql/grammar ("Table properties"). Feldera refuses every unknown property. Here only an unknown
`hybrid.` property is an error, because a typo in it would change what the table does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from hybrid.errors import suggestion
from hybrid.schema.document import shown
from hybrid.schema.jsonplaces import PlacedSection, parse_placed
from hybrid.schema.period import parse_period
from hybrid.schema.sqltext import Cursor, Kind, SqlText, Token

CONNECTORS = "connectors"
APPEND_ONLY = "append_only"
TIME_COLUMN = "hybrid.timeColumn"
TIME_UNIT = "hybrid.timeUnit"
BUCKET = "hybrid.bucketTimePeriod"
BUFFER = "hybrid.bufferTimePeriod"
COMPARISON = "hybrid.comparisonColumn"
BOUNDARY = "hybrid.boundary"
_OURS = (TIME_COLUMN, TIME_UNIT, BUCKET, BUFFER, COMPARISON, BOUNDARY)
_BOOLEANS = (APPEND_ONLY, "materialized", "skip_unused_columns")
_FELDERAS = (CONNECTORS, *_BOOLEANS, "expected_size")


@dataclass(frozen=True)
class Options:
    """The properties of a table: the token of each value, by key."""

    sql: SqlText
    values: Mapping[str, Token] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str) -> str | None:
        """The value at `key`, stripped, or None."""
        token = self.values.get(key)
        return token.text.strip() if token else None

    def fail(self, key: str, message: str) -> NoReturn:
        """Raise a SpecError that points at the value of `key`."""
        self.sql.fail(self.values[key].start, f"'{key}': {message}")

    def boolean(self, key: str) -> bool:
        """The boolean at `key`; false where it is missing."""
        text = self.text(key)
        if text is not None and text.lower() not in ("true", "false"):
            self.fail(key, f"{shown(text)} is neither 'true' nor 'false'.")
        return text is not None and text.lower() == "true"

    def period(self, key: str) -> str | None:
        """The period at `key` as it is written (`2h`), or None."""
        text = self.text(key)
        if text is not None:
            parse_period(text, self.sql.source, f"{self.sql.place(self.values[key].start)}, '{key}'")
        return text

    def connectors(self) -> PlacedSection:
        """A section with the list of connectors at `connectors`; its errors name lines of the file."""
        token = self.values.get(CONNECTORS)
        if token is None:
            return PlacedSection({}, self.sql.source)
        offsets = _file_offsets(token)
        value, places = parse_placed(token.text, CONNECTORS, lambda at, message: self._fail_at(offsets[at], message))
        if not isinstance(value, list):
            self.fail(CONNECTORS, f"{shown(value)} is not a list: write '[{{...}}]'.")
        named = {path: self.sql.place(offsets[offset]) for path, offset in places.items()}
        return PlacedSection({CONNECTORS: value}, self.sql.source, places=named)

    def _fail_at(self, offset: int, message: str) -> NoReturn:
        self.sql.fail(offset, f"'{CONNECTORS}' {message}")


def read_options(cursor: Cursor) -> Options:
    """Parse `WITH ('key' = 'value', ...)`, if it is next. SpecError for a repeated key and for a syntax error."""
    values: dict[str, Token] = {}
    if not cursor.skip("WITH"):
        return Options(cursor.sql)
    cursor.expect("(", "behind WITH")
    while True:
        key = cursor.expect_kind(Kind.STRING, "a property: write 'key' = 'value', both in single quotes")
        if key.text in values:
            cursor.sql.fail(key.start, f"the property {key.shown} is given twice. Remove one.")
        _check_ours(cursor, key)
        cursor.expect("=", f"behind {key.shown}")
        values[key.text] = cursor.expect_kind(Kind.STRING, f"the value of {key.shown}: write it in single quotes")
        if not cursor.skip(","):
            break
    cursor.expect(")", "or ',' behind a property")
    return _checked(Options(cursor.sql, values))


def option_warnings(options: Options) -> Iterator[str]:
    """One warning for each property that has no effect."""
    for key, token in options.values.items():
        if key not in _OURS and key not in _FELDERAS:
            near = suggestion(key, (*_OURS, *_FELDERAS))
            yield options.sql.warning(token.start, f"'{key}' is not implemented and has no effect.{near}")


def _check_ours(cursor: Cursor, key: Token) -> None:
    if key.text.startswith("hybrid.") and key.text not in _OURS:
        near = suggestion(key.text, _OURS)
        cursor.sql.fail(key.start, f"{key.shown} is not known.{near} Known are: {', '.join(_OURS)}.")


def _checked(options: Options) -> Options:
    for key in _BOOLEANS:
        options.boolean(key)
    size = options.text("expected_size")
    if size is not None and not (size.isascii() and size.isdigit()):
        options.fail("expected_size", f"{shown(size)} is not a whole number from 0 on.")
    if options.text(BOUNDARY) not in (None, "exact", "pinot"):
        options.fail(BOUNDARY, f"{shown(options.text(BOUNDARY))} is not known. Write 'exact' or 'pinot'.")
    return options


def _file_offsets(token: Token) -> list[int]:
    """The offset in the file of each character of a string token; in the file a quote is written twice."""
    offsets, at = [], token.start + 1
    for character in token.text:
        offsets.append(at)
        at += 2 if character == "'" else 1
    return [*offsets, at]
