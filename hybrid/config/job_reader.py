"""Reads a job spec's recordReaderSpec: the format of the files, and what Pinot's readers are told about it."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.schema.document import Section, shown

DATA_FORMATS = ("json", "csv", "parquet", "avro", "orc")
# Pinot's second name for Avro; whether a file is compressed with gzip is seen from its first bytes.
_GZIPPED_AVRO = "gzipped_avro"

_CHARACTERS = ("delimiter", "multiValueDelimiter", "commentMarker", "escapeCharacter", "quoteCharacter")
_TRUTHS = (
    "skipHeader",
    "ignoreEmptyLines",
    "ignoreSurroundingSpaces",
    "multiValueDelimiterEnabled",
    "trailingDelimiter",
)
_RAW_TIMES = "extractRawTimeValues"
READER_KEYS: dict[str, set[str]] = {
    "csv": {*_CHARACTERS, *_TRUTHS, "header", "fileFormat", "nullStringValue"},
    "json": set(),
    "parquet": set(),
    "avro": set(),
    "orc": set(),
}
# They choose a class, or say how to write: nothing that is read changes.
QUIET_READER_KEYS = {
    "csv": {"quoteMode", "recordSeparator"},
    "parquet": {"useParquetAvroRecordReader", "useParquetNativeRecordReader"},
}
# What would leave rows out without a word, or store other values than the file says.
_REFUSED = {
    "csv": {
        "stopOnError": "the rest of a file would be left out",
        "skipUnParseableLines": "lines would be left out",
    },
    "parquet": {_RAW_TIMES: "times come out by the column's own format"},
    "avro": {_RAW_TIMES: "times come out by the column's own format"},
}


def data_format(reader: Section) -> str:
    """The format of the files, one of DATA_FORMATS."""
    found = reader.choice("dataFormat", (*DATA_FORMATS, _GZIPPED_AVRO))
    return "avro" if found == _GZIPPED_AVRO else found


def reader_configs(reader: Section) -> dict[str, str]:
    """The reader's `configs` as texts. SpecError for what cannot be honoured, or is no character or truth value."""
    configs, form = reader.section("configs"), data_format(reader)
    for key, reason in _REFUSED.get(form, {}).items():
        if configs.boolean(key):
            configs.fail(key, f"'true' cannot be honoured: {reason}. Remove the key: a job stops there.")
    if form == "csv":
        check_csv(configs)
    return {str(key): _as_text(value) for key, value in configs.doc.items() if value is not None}


def reader_warnings(reader: Section) -> Iterator[str]:
    """One warning for each key of `configs` that the format's reader does not know."""
    form = data_format(reader)
    known = READER_KEYS[form] | QUIET_READER_KEYS.get(form, set()) | _REFUSED.get(form, {}).keys()
    yield from reader.section("configs").unknown(known)


def check_csv(configs: Section) -> None:
    """SpecError for what is no character or truth value among the `configs` of CSV."""
    for key in _CHARACTERS:
        value = configs.doc.get(key)
        splits_nothing = key == "multiValueDelimiter" and value == ""
        if value is not None and not splits_nothing and len(str(value)) != 1:
            configs.fail(key, f"{shown(value)} is not one character.")
    for key in _TRUTHS:
        configs.boolean(key)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
