"""Reads a job spec's recordReaderSpec: the format of the files, and the settings of Pinot's readers."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.schema.document import Section, shown

DATA_FORMATS = ("json", "csv", "parquet", "avro", "orc")
# Pinot's second name for Avro; compression with gzip is detected by the first bytes of a file.
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
# They choose a class, or set how files are written: what is read stays the same.
QUIET_READER_KEYS = {
    "csv": {"quoteMode", "recordSeparator"},
    "parquet": {"useParquetAvroRecordReader", "useParquetNativeRecordReader"},
}
# Refused because they would skip rows silently, or store other values than those in the file.
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
    form = reader.choice("dataFormat", (*DATA_FORMATS, _GZIPPED_AVRO))
    return "avro" if form == _GZIPPED_AVRO else form


def reader_configs(reader: Section) -> dict[str, str]:
    """The reader's `configs` as texts. SpecError for a refused key, or a value that is no character or boolean."""
    configs, form = reader.section("configs"), data_format(reader)
    for key, reason in _REFUSED.get(form, {}).items():
        if configs.boolean(key):
            configs.fail(key, f"'true' cannot be honoured: {reason}. Remove the key: a job stops there.")
    if form == "csv":
        check_csv(configs)
    return {str(key): _as_text(value) for key, value in configs.doc.items() if value is not None}


def reader_warnings(reader: Section) -> Iterator[str]:
    """One warning for each key of `configs` that is unknown to the format's reader."""
    form = data_format(reader)
    keys = READER_KEYS[form] | QUIET_READER_KEYS.get(form, set()) | _REFUSED.get(form, {}).keys()
    yield from reader.section("configs").unknown(keys)


def check_csv(configs: Section) -> None:
    """SpecError for a value in the `configs` of CSV that is no character or boolean."""
    for key in _CHARACTERS:
        value = configs.doc.get(key)
        splits_nothing = key == "multiValueDelimiter" and value == ""
        if value is not None and not splits_nothing and len(str(value)) != 1:
            configs.fail(key, f"{shown(value)} is not one character.")
    for key in _TRUTHS:
        configs.boolean(key)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
