"""Reads which of Pinot's message decoders a stream has, and what it is told: JSON, CSV or Avro."""

from __future__ import annotations

from hybrid.spec.avromessages import AvroMessages, avro_texts
from hybrid.spec.csvformat import CsvFormat, multi_value_columns, text_columns
from hybrid.spec.document import Section, shown
from hybrid.spec.job_reader import READER_KEYS, check_csv
from hybrid.spec.schema import Schema

DECODER = "stream.kafka.decoder.class.name"
_PROPS = "stream.kafka.decoder.prop."
_CSV_KEYS = READER_KEYS["csv"]
_AVRO_KEYS = {"schema"}


def codec_of(section: Section, schema: Schema) -> CsvFormat | AvroMessages | None:
    """How messages are written; None: as JSON. SpecError for a decoder that there is not, or what it cannot be told."""
    name, props = section.text(DECODER, "JSONMessageDecoder"), _props(section)
    if name.endswith("CSVMessageDecoder"):
        check_csv(props)
        configs = {key: str(value) for key, value in props.doc.items() if value is not None}
        place = section.at(_PROPS)
        return CsvFormat.of(configs, multi_value_columns(schema), section.source, place, text_columns(schema))
    if name.endswith("SimpleAvroMessageDecoder"):
        return _avro(props)
    if not name.endswith("JSONMessageDecoder") or "Confluent" in name:
        hint = "There are the JSONMessageDecoder, CSVMessageDecoder and SimpleAvroMessageDecoder of Pinot's plugins."
        section.fail(DECODER, f"'{name}' cannot be honoured: messages are read as JSON, CSV or Avro.", hint=hint)
    return None


def decoder_keys(section: Section) -> set[str]:
    """The keys that the stream's decoder reads."""
    name = str(section.doc.get(DECODER, ""))
    known = {"CSVMessageDecoder": _CSV_KEYS, "SimpleAvroMessageDecoder": _AVRO_KEYS}
    found = next((keys for suffix, keys in known.items() if name.endswith(suffix)), set[str]())
    return {_PROPS + key for key in found}


def _avro(props: Section) -> AvroMessages:
    value = props.doc.get("schema")
    text = next(avro_texts(value), None)
    if text is None:
        props.fail(
            "schema", "is missing: give the Avro schema as text." if value is None else f"{shown(value)} is none."
        )
    found = AvroMessages(text)
    wrong = found.check()
    if wrong is not None:
        props.fail("schema", f"{wrong}.")
    return found


def _props(section: Section) -> Section:
    """What the decoder is told, by its own names."""
    doc = {key.removeprefix(_PROPS): value for key, value in section.doc.items() if str(key).startswith(_PROPS)}
    return Section(doc, section.source, section.at(_PROPS.rstrip(".")))
