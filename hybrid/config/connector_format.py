"""Reads a connector's `format`: json, csv, parquet or avro. After docs.feldera.com/formats.

Names and defaults are those of crates/feldera-types/src/format of feldera/feldera.
A format that is not built is an error: read as another format, every record would be rejected or misread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.config.connectors import (
    AvroFormat,
    ConnectorCsvFormat,
    Format,
    JsonFormat,
    ParquetFormat,
    UpdateFormat,
)
from hybrid.config.json_flavor import JsonFlavor
from hybrid.config.stream_decoder import registry_urls
from hybrid.formats.avro_messages import AvroMessages, avro_texts
from hybrid.formats.registry_messages import RegistryMessages
from hybrid.schema.document import Section, shown
from hybrid.schema.references import check_references

_NAMES = ("json", "csv", "parquet", "avro")
_NOT_BUILT = ("raw", "bincode")
_UPDATES_NOT_BUILT = ("weighted", "snowflake", "redis")
_FLAVORS_NOT_BUILT = (
    "snowflake", "kafka_connect_json_converter", "pandas", "blockchain", "c_hex",
    "datagen", "postgres", "clock_input",
)  # fmt: skip
_SECTION_KEYS = {"name", "config"}
_KEYS: Mapping[str, set[str]] = {
    "json": {"update_format", "json_flavor", "array", "lines", "buffer_size_records"},
    "csv": {
        "delimiter", "headers", "quote", "escape", "double_quote", "quoting", "comment", "flexible", "trim",
        "buffer_size_records",
    },
    "parquet": {"buffer_size_records"},
    "avro": {
        "schema", "skip_schema_id", "update_format", "buffer_size_records", "registry_urls", "registry_username",
        "registry_password",
    },
}  # fmt: skip
# The only supported value of each of these keys.
_CSV_FIXED: Mapping[str, object] = {"double_quote": True, "quoting": True, "comment": None, "trim": "none"}


def parse_format(connector: Section, transport: str, possible: tuple[str, ...]) -> Format | None:
    """The format of a connector; None for a transport that has its own (`possible` is empty)."""
    if not possible:
        if connector.doc.get("format") is not None:
            connector.fail("format", f"must not be given: {transport} has its own. Remove it.")
        return None
    if connector.doc.get("format") is None:
        connector.fail("format", f'is missing: {transport} needs one. Write it like {{"name": "json"}}.')
    section = connector.section("format")
    name = section.choice("name", (*_NAMES, *_NOT_BUILT), any_case=False)
    if name in _NOT_BUILT or name not in possible:
        why = "is not built yet" if name in _NOT_BUILT else f"does not come by {transport}"
        section.fail("name", f"'{name}' {why}. Use {' or '.join(possible)}.")
    config = section.section("config")
    form = {"json": _json, "csv": _csv, "parquet": _parquet, "avro": _avro}[name](config)
    if transport != "kafka_input":
        _check_of_stream(config, form)
    return form


def format_warnings(connector: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    section = connector.section("format")
    yield from section.unknown(_SECTION_KEYS)
    yield from section.section("config").unknown(_KEYS.get(str(section.doc.get("name")), set()))


def _json(config: Section) -> Format:
    update = config.choice("update_format", (*UpdateFormat, *_UPDATES_NOT_BUILT), UpdateFormat.INSERT_DELETE.value)
    if update in _UPDATES_NOT_BUILT:
        config.fail("update_format", f"'{update}' is not built yet. Use {', '.join(UpdateFormat)}.")
    flavor = config.choice("json_flavor", (*JsonFlavor, *_FLAVORS_NOT_BUILT), JsonFlavor.DEFAULT.value)
    if flavor in _FLAVORS_NOT_BUILT:
        config.fail("json_flavor", f"'{flavor}' is not built yet. Use {', '.join(JsonFlavor)}.")
    lines = config.choice("lines", ("multiple", "single"), "multiple")
    return JsonFormat(UpdateFormat(update), config.boolean("array"), lines == "single", JsonFlavor(flavor))


def _check_of_stream(config: Section, form: Format) -> None:
    """SpecError for formats that only a stream's messages can have."""
    if isinstance(form, JsonFormat) and form.update_format is UpdateFormat.DEBEZIUM:
        config.fail("update_format", "'debezium' comes by kafka_input only. Use insert_delete or raw.")
    if isinstance(form, JsonFormat) and form.flavor is not JsonFlavor.DEFAULT:
        config.fail("json_flavor", f"'{form.flavor}' comes by kafka_input only. Use default.")


def _csv(config: Section) -> Format:
    for key, only in _CSV_FIXED.items():
        if config.doc.get(key, only) != only:
            config.fail(key, f"{shown(config.doc[key])} is not built yet: it is {shown(only)} always. Remove the key.")
    if not config.boolean("flexible", default=True):
        config.fail("flexible", "false is not built yet. Remove the key.")
    form = ConnectorCsvFormat(
        delimiter=_character(config, "delimiter", ","),
        headers=config.boolean("headers"),
        quote=_character(config, "quote", '"'),
        escape=_character(config, "escape", "") or None,
    )
    if form.delimiter == form.quote:
        config.fail("delimiter", f"{form.delimiter!r} is the quote too.")
    return form


def _parquet(config: Section) -> Format:
    return ParquetFormat()


def _avro(config: Section) -> Format:
    if config.text("update_format", "raw") != "raw":
        config.fail(
            "update_format", f"{shown(config.doc['update_format'])} is not built yet: records are rows. Use raw."
        )
    text = next(avro_texts(config.doc.get("schema")), None)
    registry = _registry(config, text) if config.doc.get("registry_urls") else None
    if text is None and registry is None:
        config.fail("schema", "is missing: give the Avro schema as text.")
    wrong = AvroMessages(text).check() if text is not None else None
    if wrong is not None:
        config.fail("schema", f"{wrong}.")
    if registry is None:
        for key in [name for name in config.doc if name.startswith("registry_")]:
            config.fail(key, "goes with registry_urls only.")
    return AvroFormat(text or "", config.boolean("skip_schema_id"), registry)


def _registry(config: Section, reader: str | None) -> RegistryMessages:
    """The schema registry in Feldera's keys. `reader` is the reader's schema, to which records are resolved."""
    if config.boolean("skip_schema_id"):
        config.fail("skip_schema_id", "cannot be used beside registry_urls: a schema is found by its id.")
    if config.has("registry_authorization_token"):
        config.fail("registry_authorization_token", "is not supported. Use registry_username and registry_password.")
    urls = registry_urls(config, "registry_urls", ",".join(config.texts("registry_urls")))
    name, secret = config.text("registry_username", ""), config.text("registry_password", "")
    if bool(name) != bool(secret):
        config.fail("registry_username", "and registry_password go together.")
    for key, text in (("registry_username", name), ("registry_password", secret)):
        check_references(config, key, text)
    return RegistryMessages(urls, reader=reader, user_info=f"{name}:{secret}" if name else None)


def _character(config: Section, key: str, default: str) -> str:
    value = config.doc.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in "\r\n":
        config.fail(key, f"{shown(value)} is not one character of ASCII.")
    return value
