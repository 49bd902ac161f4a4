"""The options of a file source, in every spelling: `read_files(...)`, `cloudFiles.*`, Spark's own reader.

An option is one of four kinds. Ours select files, batch sizes and new columns. Options of Spark's reader say how a
format is read. Tuning of another engine is accepted without effect. All others are refused with the reason: they would
lose rows, or read them twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NoReturn

from hybrid.errors import SpecError, suggestion

FORMATS = ("json", "csv", "parquet")
PREFIX = "cloudfiles."
RESCUED = "_rescued_data"
FILES_MAX = 1000


class Evolution(StrEnum):
    """How fields are handled that the source did not have so far."""

    ADD = "addNewColumns"
    RESCUE = "rescue"
    FAIL = "failOnNewColumns"
    NONE = "none"


OWN = (
    "format", "maxFilesPerTrigger", "maxBytesPerTrigger", "modifiedAfter", "modifiedBefore", "pathGlobFilter",
    "recursiveFileLookup", "schemaHints", "schemaEvolutionMode", "inferColumnTypes", "rescuedDataColumn",
    "partitionColumns", "schema",
)  # fmt: skip
# How another engine finds files and where it keeps its state: ours is in the table's commits.
TUNING = (
    "schemaLocation", "useNotifications", "useIncrementalListing", "useManagedFileEvents", "backfillInterval",
    "fetchParallelism", "validateOptions", "resourceTag", "region", "queueUrl", "useStrictGlobber", "fileNamePattern",
    "listOnStart", "checkpointLocation",
)  # fmt: skip
READER: Mapping[str, tuple[str, ...]] = {
    "json": (
        "allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers", "allowNumericLeadingZeros",
        "allowSingleQuotes", "allowUnquotedControlChars", "allowUnquotedFieldNames", "charset", "dateFormat",
        "dropFieldIfAllNull", "enableDateTimeParsingFallback", "encoding", "inferSchema", "inferTimestamp", "lineSep",
        "locale", "mode", "multiLine", "prefersDecimal", "primitivesAsString", "samplingRatio", "timeZone",
        "timestampFormat", "timestampNTZFormat",
    ),
    "csv": (
        "charToEscapeQuoteEscaping", "charset", "comment", "dateFormat", "delimiter", "emptyValue",
        "enableDateTimeParsingFallback", "encoding", "enforceSchema", "escape", "header", "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace", "inferSchema", "lineSep", "locale", "maxCharsPerColumn", "maxColumns", "mode",
        "multiLine", "nanValue", "negativeInf", "nullValue", "positiveInf", "preferDate", "quote", "samplingRatio",
        "sep", "timeZone", "timestampFormat", "timestampNTZFormat", "unescapedQuoteHandling",
    ),
    "parquet": ("datetimeRebaseMode", "int96RebaseMode", "mergeSchema", "inferSchema"),
}  # fmt: skip
# (refused values, or None for every value; the reason)
REFUSED: Mapping[str, tuple[tuple[str, ...] | None, str]] = {
    "mode": (("dropmalformed",), "it drops lines without a word. Without it they are kept as rejected rows"),
    "ignoreCorruptFiles": (("true",), "it skips files without a word"),
    "ignoreMissingFiles": (("true",), "it skips files without a word"),
    "badRecordsPath": (None, "lines that cannot be read are kept as rejected rows: hybrid rejected list"),
    "columnNameOfCorruptRecord": (None, "lines that cannot be read are kept as rejected rows: hybrid rejected list"),
    "includeExistingFiles": (("false",), "each file is read once, older ones too. Use modifiedAfter"),
    "allowOverwrites": (("true",), "a file is read once; after a change of files, run with --full-refresh"),
    "cleanSource": (("delete", "move"), "source files are never touched"),
    "maxFileAge": (None, "which files were read is never forgotten"),
    "skipRows": (None, "Spark's reader has none"),
}


@dataclass(frozen=True)
class DeclaredFileSource:
    """Files that a flow reads. `path` is a file, a folder (with all below it) or a pattern; times are epoch ms.

    `reader` are options of Spark's reader. `schema` is the user's (a DDL or a Spark schema), `hints` a DDL of some
    columns. `rescued` names the column for values that do not fit; None: such rows are rejected. With `metadata`, rows
    keep Spark's file metadata in METADATA.
    """

    path: str
    format: str
    streaming: bool
    reader: Mapping[str, str] = field(default_factory=dict)
    schema: Any = None
    hints: str | None = None
    files_max: int = FILES_MAX
    bytes_max: int | None = None
    modified_after_ms: int | None = None
    modified_before_ms: int | None = None
    name_pattern: str | None = None
    recursive: bool = True
    evolution: Evolution = Evolution.ADD
    infer_types: bool = True
    rescued: str | None = None
    partition_columns: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    metadata: bool = False

    @property
    def strict(self) -> bool:
        """Whether an unreadable line fails the flow (mode FAILFAST)."""
        return self.reader.get("mode", "").upper() == "FAILFAST"

    def flag(self, name: str) -> bool:
        """A boolean option of the reader."""
        return self.reader.get(name, "false").lower() == "true"


def parse_source(
    path: object,
    options: Mapping[str, object],
    place: str,
    *,
    streaming: bool,
    schema: Any = None,
    infer_types: bool = True,
) -> DeclaredFileSource:
    """The source that `options` describe; `infer_types` is the default of the spelling.

    SpecError at `place` for unknown options, invalid values, and refused ones.
    """
    parsed = _Given(place, options)
    if not parsed.has("format"):
        parsed.fail("format", f"is missing: one of {', '.join(FORMATS)}.")
    form = parsed.choice("format", FORMATS)
    reader = dict(parsed.reader(form))
    schema = schema if schema is not None else parsed.text("schema")
    mode, rescued = _evolution(parsed, schema is not None)
    if form == "csv":
        infer_types = parsed.flag("inferSchema", infer_types)
    return DeclaredFileSource(
        path=_path(path, place),
        format=form,
        streaming=streaming,
        reader=reader,
        schema=schema,
        hints=parsed.text("schemaHints"),
        files_max=parsed.count("maxFilesPerTrigger", FILES_MAX) or FILES_MAX,
        bytes_max=parsed.size("maxBytesPerTrigger"),
        modified_after_ms=parsed.moment("modifiedAfter"),
        modified_before_ms=parsed.moment("modifiedBefore"),
        name_pattern=parsed.text("pathGlobFilter"),
        recursive=parsed.flag("recursiveFileLookup", True),
        evolution=mode,
        infer_types=parsed.flag("inferColumnTypes", infer_types),
        rescued=rescued,
        partition_columns=parsed.names("partitionColumns"),
        warnings=tuple(parsed.without_effect(streaming)),
    )


def _path(path: object, place: str) -> str:
    text = str(path) if path is not None else ""
    if not text.strip():
        raise SpecError(f"{place}: the path is missing: a file, a folder or a pattern.")
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file":
        return "/" + rest.lstrip("/")
    if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*", scheme) and rest.startswith("/"):
        message = f"{place}: '{text}': files are read from folders of this machine; '{scheme}:' is not built yet."
        raise SpecError(message, hint="Mount it, or copy the files.")
    return text


def _evolution(given: _Given, has_schema: bool) -> tuple[Evolution, str | None]:
    """The mode, and the column for values that do not fit."""
    default = Evolution.NONE if has_schema else Evolution.ADD
    modes = {mode.lower(): mode for mode in Evolution}
    text = given.text("schemaEvolutionMode")
    if text is not None and text.lower() not in modes:
        given.fail("schemaEvolutionMode", f"'{text}' is none of {', '.join(Evolution)}.{suggestion(text, modes)}")
    mode = default if text is None else modes[text.lower()]
    if mode is Evolution.ADD and has_schema and text is not None:
        given.fail("schemaEvolutionMode", "addNewColumns does not go with a schema. Give schemaHints instead of it.")
    column = given.text("rescuedDataColumn")
    if column is not None and mode not in (Evolution.RESCUE, Evolution.NONE):
        given.fail("rescuedDataColumn", f"does not go with {mode}: new fields become columns. Use mode rescue.")
    if mode is Evolution.RESCUE or column is not None:
        return Evolution.RESCUE, column or RESCUED
    return mode, None


class _Given:
    """Options by their plain names, case-insensitive. Errors name the place and the option."""

    def __init__(self, place: str, options: Mapping[str, object]) -> None:
        self.place = place
        self.spelled: dict[str, str] = {}
        self._values: dict[str, str] = {}
        for spelling, value in options.items():
            name = spelling.lower().removeprefix(PREFIX)
            if name in self._values and self._values[name] != _text(value):
                self.fail(spelling, f"is given twice, as {self._values[name]} and {_text(value)}.")
            self.spelled[name] = spelling
            self._values[name] = _text(value)

    def raw(self, name: str) -> str | None:
        """A value as text, or None."""
        return self._values.get(name.lower())

    def has(self, name: str) -> bool:
        """Whether the option is set."""
        return name.lower() in self._values

    def fail(self, name: str, message: str) -> NoReturn:
        """Raises the SpecError of an option."""
        raise SpecError(f"{self.place}: option {self.spelled.get(name.lower(), name)}: {message}")

    def text(self, name: str) -> str | None:
        """A text, or None when the option is not set."""
        value = self.raw(name)
        if value is not None and not value.strip():
            self.fail(name, "is empty.")
        return value

    def choice(self, name: str, known: tuple[str, ...]) -> str:
        """One of some words."""
        value = (self.raw(name) or "").lower()
        if value not in known:
            self.fail(name, f"'{value}' is not read here.{suggestion(value, known)} There are {', '.join(known)}.")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """A boolean."""
        value = self.raw(name)
        if value is not None and value.lower() not in ("true", "false"):
            self.fail(name, f"'{value}' is neither true nor false.")
        return default if value is None else value.lower() == "true"

    def count(self, name: str, default: int | None) -> int | None:
        """A whole number from 1."""
        value = self.raw(name)
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", value.strip()) or int(value) == 0:
            self.fail(name, f"'{value}' is not a whole number from 1 on.")
        return int(value)

    def size(self, name: str) -> int | None:
        """Bytes: a number, or one with k, m, g, t (`10g`, `512mb`)."""
        value = self.raw(name)
        if value is None:
            return None
        match = re.fullmatch(r"([0-9]{1,12})\s*(?:([kmgt])i?)?b?", value.strip().lower())
        if match is None or int(match[1]) == 0:
            self.fail(name, f"'{value}' is no size. Write it like '512m' or '10g'.")
        power: int = " kmgt".index(match[2]) if match[2] else 0
        return int(match[1]) << 10 * power

    def moment(self, name: str) -> int | None:
        """A time as epoch milliseconds; UTC if it has no zone."""
        value = self.raw(name)
        if value is None:
            return None
        text = re.sub(r"\s*UTC([+-]\d{1,2})?$", lambda m: f"{int(m[1] or 0):+03d}:00", value.strip())
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(name, f"'{value}' is no time. Write it like '2025-01-01T00:00:00Z'.")
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round((aware - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))

    def names(self, name: str) -> tuple[str, ...] | None:
        """Comma-separated names."""
        value = self.raw(name)
        return None if value is None else tuple(part.strip() for part in value.split(",") if part.strip())

    def reader(self, form: str) -> Iterator[tuple[str, str]]:
        """The options of Spark's reader, each in its correct spelling. SpecError for unknown options."""
        readable = {name.lower(): name for name in READER[form]}
        quiet = {name.lower() for name in (*OWN, *TUNING)} - readable.keys()
        refused = {name.lower(): (name, *why) for name, why in REFUSED.items()}
        for name, value in self._values.items():
            if name in refused:
                _, values, reason = refused[name]
                if values is None or value.lower() in values:
                    self.fail(name, f"'{value}' cannot be honoured: {reason}.")
            if name in readable:
                yield readable[name], value
            elif name not in quiet and name not in refused:
                others = [other for other in FORMATS if name in {option.lower() for option in READER[other]}]
                about = f" It is one of {', '.join(others)}." if others else ""
                near = suggestion(name, [*readable, *quiet])
                spelled = {option.lower(): option for option in (*OWN, *READER[form], *TUNING)}
                for low, right in spelled.items():
                    near = near.replace(f"'{low}'", f"'{right}'")
                self.fail(name, f"is not known for format {form}.{about}{near}")

    def without_effect(self, streaming: bool) -> Iterator[str]:
        """Warnings for stream options on a batch."""
        if not streaming:
            for name in ("maxFilesPerTrigger", "maxBytesPerTrigger"):
                if self.has(name):
                    yield f"{self.place}: option {name} has no effect on a batch: all files are read at once."


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
