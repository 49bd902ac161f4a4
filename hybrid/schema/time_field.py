"""Translates Pinot's old `timeFieldSpec` to an equivalent dateTime field and transform.

After Pinot's TimeFieldSpec and TimeSpecFunctionEvaluator. The column is the outgoing field. Where the incoming field
has another name, a transform converts its value.
"""

from __future__ import annotations

from hybrid.schema.document import Section
from hybrid.schema.ingestion import Transform
from hybrid.schema.timeformat import UNITS_NS

_INCOMING, _OUTGOING = "incomingGranularitySpec", "outgoingGranularitySpec"
_GRANULARITY_KEYS = {"name", "dataType", "timeType", "timeUnitSize", "timeunitSize", "timeFormat"}
_FIELD_KEYS = {"name", "dataType", "format", "defaultNullValue"}
_TIME_FIELD_KEYS = {_INCOMING, _OUTGOING, "defaultNullValue", "fieldType", "description", "tags"}


def old_time_field(top: Section) -> tuple[Section, Transform | None, list[str]] | None:
    """The field as in dateTimeFieldSpecs, its transform, and warnings; None without a timeFieldSpec."""
    if not top.has("timeFieldSpec"):
        return None
    old = top.section("timeFieldSpec")
    if not old.has(_INCOMING):
        old.fail(_INCOMING, "is missing: name, dataType and timeType of the time as it arrives.")
    incoming = old.section(_INCOMING)
    outgoing = old.section(_OUTGOING) if old.has(_OUTGOING) else incoming
    name, source = outgoing.text("name"), incoming.text("name")
    form, source_form = _format(outgoing), _format(incoming)
    if name == source and (form != source_form or outgoing.doc.get("dataType") != incoming.doc.get("dataType")):
        message = f"'{name}' is also the name of the time as it arrives, in another format. Give it a name of its own."
        outgoing.fail("name", message)
    doc = {**outgoing.doc, "format": form, "defaultNullValue": old.doc.get("defaultNullValue")}
    field = {key: value for key, value in doc.items() if key in _FIELD_KEYS}
    quoted = source.replace('"', '""')
    function = f"dateTimeConvert(\"{quoted}\", '{_literal(source_form)}', '{_literal(form)}', '1:MILLISECONDS')"
    warnings = [*old.unknown(_TIME_FIELD_KEYS), *incoming.unknown(_GRANULARITY_KEYS)]
    if outgoing is not incoming:
        warnings += outgoing.unknown(_GRANULARITY_KEYS)
    transform = Transform(name, function) if name != source else None
    return Section(field, top.source, outgoing.path), transform, warnings


def _format(section: Section) -> str:
    """A granularity as `size:unit:format`."""
    unit = section.choice("timeType", tuple(UNITS_NS))
    size_key = "timeunitSize" if section.has("timeunitSize") else "timeUnitSize"
    size = section.whole(size_key, 1, low=1)
    form = section.text("timeFormat", "EPOCH")
    if form.partition(":")[0] not in ("EPOCH", "SIMPLE_DATE_FORMAT"):
        section.fail("timeFormat", f"'{form}' is not known: write 'EPOCH' or 'SIMPLE_DATE_FORMAT:yyyyMMdd'.")
    return f"{size}:{unit}:{form}"


def _literal(text: str) -> str:
    return text.replace("'", "''")
