"""Reads Pinot's message decoder of a stream and its properties: JSON, CSV, Avro, or by a schema registry."""

from __future__ import annotations

from urllib.parse import urlsplit

from hybrid.config.job_reader import READER_KEYS, check_csv
from hybrid.config.table_keys import DECODER
from hybrid.formats.avro_messages import AvroMessages, avro_texts
from hybrid.formats.csv_format import CsvFormat, multi_value_columns, text_columns
from hybrid.formats.registry_messages import RegistryFormat, RegistryMessages
from hybrid.schema.document import Section, shown
from hybrid.schema.references import check_references
from hybrid.schema.schema import Schema

_PROPS = "stream.kafka.decoder.prop."
_CSV_KEYS = READER_KEYS["csv"]
_AVRO_KEYS = {"schema"}
_REGISTRY_URL = "schema.registry.rest.url"
_USER_INFO, _SOURCE = "schema.registry.basic.auth.user.info", "schema.registry.basic.auth.credentials.source"
_CA = "schema.registry.ssl.ca.location"
_VALIDATES = "json.fail.invalid.schema"
_REGISTRY_KEYS = {_REGISTRY_URL, _USER_INFO, _SOURCE, _CA, _VALIDATES, "schema"}
_REGISTRY_DECODERS = {
    "KafkaConfluentSchemaRegistryAvroMessageDecoder": RegistryFormat.AVRO,
    "KafkaConfluentSchemaRegistryJsonMessageDecoder": RegistryFormat.JSON,
}


def codec_of(section: Section, schema: Schema) -> CsvFormat | AvroMessages | RegistryMessages:
    """The decoder of messages that are no plain JSON. SpecError for an unknown decoder or an invalid property."""
    name, props = section.text(DECODER), _props(section)
    if name.endswith("CSVMessageDecoder"):
        check_csv(props)
        configs = {key: str(value) for key, value in props.doc.items() if value is not None}
        place = section.at(_PROPS)
        return CsvFormat.of(configs, multi_value_columns(schema), section.source, place, text_columns(schema))
    if name.endswith("SimpleAvroMessageDecoder"):
        return _avro(props)
    for decoder, form in _REGISTRY_DECODERS.items():
        if name.endswith(decoder):
            return _by_registry(props, form)
    hint = (
        "There are the JSONMessageDecoder, CSVMessageDecoder, SimpleAvroMessageDecoder and "
        f"{' and '.join(_REGISTRY_DECODERS)} of Pinot's plugins."
    )
    section.fail(DECODER, f"'{name}' cannot be honoured: messages are read as JSON, CSV or Avro.", hint=hint)


def decoder_keys(section: Section) -> set[str]:
    """The keys that the stream's decoder reads."""
    name = str(section.doc.get(DECODER, ""))
    decoders = {
        "CSVMessageDecoder": _CSV_KEYS,
        "SimpleAvroMessageDecoder": _AVRO_KEYS,
        **dict.fromkeys(_REGISTRY_DECODERS, _REGISTRY_KEYS),
    }
    props = next((keys for suffix, keys in decoders.items() if name.endswith(suffix)), set[str]())
    return {_PROPS + key for key in props}


def _avro(props: Section) -> AvroMessages:
    value = props.doc.get("schema")
    text = next(avro_texts(value), None)
    if text is None:
        props.fail(
            "schema", "is missing: give the Avro schema as text." if value is None else f"{shown(value)} is none."
        )
    messages = AvroMessages(text)
    wrong = messages.check()
    if wrong is not None:
        props.fail("schema", f"{wrong}.")
    return messages


def _by_registry(props: Section, form: RegistryFormat) -> RegistryMessages:
    """The decoder by a registry, in Pinot's keys. Java key stores cannot be read: certificate authorities are PEM."""
    for key in props.doc:
        if key.startswith("schema.registry.ssl.") and key != _CA:
            props.fail(key, "cannot be honoured: a Java key store is not read.", hint=f"Give a PEM file: {_PROPS}{_CA}")
    source = props.text(_SOURCE, "USER_INFO")
    if source != "USER_INFO":
        props.fail(_SOURCE, f"{shown(source)} is not supported. Use USER_INFO, with {_USER_INFO}.")
    user_info = props.doc.get(_USER_INFO)
    if user_info is not None and (not isinstance(user_info, str) or ":" not in user_info):
        props.fail(_USER_INFO, "must be NAME:SECRET.")  # the message leaves out the value, which is a secret
    check_references(props, _USER_INFO, user_info or "")
    reader = None
    if props.doc.get("schema") is not None:
        reader = _avro(props).text
    if reader is not None and form is not RegistryFormat.AVRO:
        props.fail("schema", "goes with the Avro decoder only: a JSON Schema message is read as it is.")
    return RegistryMessages(
        registry_urls(props, _REGISTRY_URL, props.text(_REGISTRY_URL)),
        form,
        reader,
        user_info,
        props.text(_CA, "") or None,
        props.boolean(_VALIDATES),
    )


def registry_urls(section: Section, key: str, text: str) -> str:
    """Registry URLs, separated by commas. SpecError for an address that is no http or https URL."""
    urls = [address.strip().rstrip("/") for address in text.split(",")]
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
            section.fail(key, f"'{parts.hostname or url[:100]}' is no address. Write http://HOST:PORT, without a user.")
    return ",".join(urls)


def _props(section: Section) -> Section:
    """The decoder's properties, without their prefix."""
    doc = {key.removeprefix(_PROPS): value for key, value in section.doc.items() if str(key).startswith(_PROPS)}
    return Section(doc, section.source, section.at(_PROPS.rstrip(".")))
