"""Reads a table's connectors as Feldera writes them: transports, formats, and their order of starting.

After docs.feldera.com/connectors (generic attributes) and /connectors/orchestration. Mistakes that Feldera reports
only when a connector starts, or ignores, are errors here before the table is created.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hybrid.config.connector_datagen import datagen_warnings, parse_datagen
from hybrid.config.connector_delta import delta_warnings, parse_delta
from hybrid.config.connector_format import format_warnings, parse_format
from hybrid.config.connector_kafka import kafka_warnings, parse_kafka
from hybrid.config.connectors import Connector, FileInput, KafkaInput, StartKind, Transport, find_cycle, waits_for
from hybrid.errors import Gathered, suggestion
from hybrid.schema.document import Section, shown
from hybrid.schema.references import refuse_reference
from hybrid.schema.secrets import hides

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_KEYS = {
    "name", "labels", "start_after", "paused", "transport", "format", "max_batch_size", "max_queued_records",
    # How much a pipeline keeps in memory.
    "max_queued_bytes", "max_worker_batch_size",
    "soft_delete", "preprocessor", "postprocessor",
}  # fmt: skip
_REFUSED = {
    "soft_delete": "deletes are deletes here",
    "preprocessor": "messages are read as they are",
    "postprocessor": "messages are read as they are",
}
# The formats that each transport can read; a transport without any has its own format.
_FORMATS = {
    "kafka_input": ("json", "csv", "avro"),
    "delta_table_input": (),
    "file_input": ("json", "csv", "parquet"),
    "datagen": (),
}
_NOT_BUILT = (
    "url_input", "s3_input", "nats_input", "pub_sub_input", "pubsub_input", "iceberg_input", "postgres_input",
    "postgres_cdc_input", "nexmark", "clock", "empty_input", "http_input", "adhoc_input", "adhoc",
)  # fmt: skip
_OUTPUTS = (
    "file_output", "kafka_output", "delta_table_output", "dynamodb_output", "redis_output", "postgres_output",
    "http_output", "null_output", "snowflake_output",
)  # fmt: skip
_FILE_KEYS = {"path", "follow", "buffer_size_bytes", "buffer_size_byte"}
_SECRET, _VARIABLE = re.compile(r"\$\{secret:[^}]*\}"), re.compile(r"\$\{env:[^}]*\}")


def parse_connectors(top: Section, key: str = "connectors", brokers: str | None = None) -> tuple[Connector, ...]:
    """The connectors in the list at `key` of a table config; `brokers` replaces the brokers of every Kafka connector.

    SpecError for an invalid connector, and for an order of starting that cannot be followed.
    """
    sections = list(top.sections(key))
    names = _names(sections)
    errors, connectors = Gathered(), list[Connector]()
    for section, name in zip(sections, names, strict=True):
        with errors:
            connectors.append(_connector(section, name, brokers))
    errors.raise_all()
    _check_order(sections, tuple(connectors))
    return tuple(connectors)


def connector_warnings(top: Section, key: str = "connectors") -> Iterator[str]:
    """One warning for each key that has no effect."""
    for section in top.sections(key):
        yield from section.unknown(_KEYS)
        transport = section.section("transport")
        yield from transport.unknown({"name", "config"})
        yield from _config_warnings(str(transport.doc.get("name")), transport.section("config"))
        yield from format_warnings(section)


def _config_warnings(name: str, config: Section) -> Iterator[str]:
    if name == "file_input":
        return config.unknown(_FILE_KEYS)
    readers = {"kafka_input": kafka_warnings, "delta_table_input": delta_warnings, "datagen": datagen_warnings}
    return readers[name](config) if name in readers else iter(())


def _connector(section: Section, name: str, brokers: str | None) -> Connector:
    for key, reason in _REFUSED.items():
        if section.has(key):
            section.fail(key, f"{shown(section.doc[key])} cannot be honoured: {reason}. Remove the key.")
    _check_secrets(section, section.doc, "")
    transport = section.section("transport")
    kind = _transport_name(section, transport)
    return Connector(
        name=name,
        transport=_transport(kind, transport.section("config"), brokers),
        format=parse_format(section, kind, _FORMATS[kind]),
        labels=_labels(section),
        start_after=_start_after(section),
        paused=section.boolean("paused"),
        max_batch_size=_records(section, "max_batch_size"),
        max_queued_records=_records(section, "max_queued_records"),
    )


def _transport_name(section: Section, transport: Section) -> str:
    if not transport.doc:
        section.fail("transport", 'is missing. Write it like {"name": "kafka_input", "config": {...}}.')
    name = transport.text("name")
    if name in _FORMATS:
        return name
    usable = ", ".join(_FORMATS)
    if name in _OUTPUTS:
        transport.fail("name", f"'{name}' writes, and a table is written to by inputs: {usable}.")
    if name in _NOT_BUILT:
        transport.fail("name", f"'{name}' is known from Feldera and not built here. There are: {usable}.")
    transport.fail("name", f"'{name}' is not known.{suggestion(name, _FORMATS)} There are: {usable}.")


def _transport(kind: str, config: Section, brokers: str | None) -> Transport:
    if kind == "kafka_input":
        return parse_kafka(config, brokers)
    if kind == "delta_table_input":
        return parse_delta(config)
    return parse_datagen(config) if kind == "datagen" else _file(config)


def _file(config: Section) -> FileInput:
    path = config.text("path")
    scheme, separator, rest = path.partition("://")
    if separator and (scheme != "file" or not rest.startswith("/")):
        config.fail("path", f"'{path}' is not a file on this machine: write a path, or file:///absolute/path.")
    return FileInput(rest if separator else path, config.boolean("follow"))


def _records(section: Section, key: str) -> int | None:
    return section.whole(key, 1, low=1) if section.doc.get(key) is not None else None


def _names(sections: list[Section]) -> list[str]:
    """The connectors' names: their own, else the first label, with the position where that name is taken."""
    own_names = [_name(section) for section in sections]
    taken: set[str] = set()
    for section, name in zip(sections, own_names, strict=True):
        if name in taken:
            section.fail("name", f"'{name}' is the name of two connectors. Give each its own.")
        taken |= {name} if name else set()
    names = []
    for position, section in enumerate(sections):
        name = own_names[position] or _default_name(section, position, taken)
        taken.add(name)
        names.append(name)
    return names


def _name(section: Section) -> str:
    if section.doc.get("name") is None:
        return ""
    return _checked(section, "name", section.text("name"))


def _default_name(section: Section, position: int, taken: set[str]) -> str:
    labels = _labels(section)
    first = labels[0] if labels else str(section.section("transport").doc.get("name"))
    name = first if labels and first not in taken else f"{first}_{position}"
    if name in taken:
        section.fail("name", f"is missing, and '{name}' is the name of another connector. Give it one.")
    return name


def _labels(section: Section) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_checked(section, "labels", label) for label in section.texts("labels")))


def _checked(section: Section, key: str, text: str) -> str:
    if not _NAME.fullmatch(text):
        rule = "letters, digits, '_', '.' and '-', beginning with a letter or digit, at most 100"
        section.fail(key, f"{shown(text)} is refused: a name has {rule}.")
    return text


def _start_after(section: Section) -> tuple[str, ...]:
    if section.doc.get("start_after") is None:
        return ()
    value = section.doc["start_after"]
    if value in ("", []):
        section.fail("start_after", f"{shown(value)} names no label. Name one, or remove the key.")
    return tuple(dict.fromkeys(section.texts("start_after")))


def _check_order(sections: list[Section], connectors: tuple[Connector, ...]) -> None:
    labels = [label for connector in connectors for label in connector.labels]
    names = {connector.name for connector in connectors}
    waits = waits_for(connectors)
    for section, connector in zip(sections, connectors, strict=True):
        for label in connector.start_after:
            if label not in labels:
                section.fail("start_after", _no_such_label(label, labels, names))
            if label in connector.labels:
                section.fail("start_after", f"'{label}' is a label of this connector: it would wait for itself.")
        _check_start(section, connector)
    cycle = find_cycle(waits)
    if cycle:
        section = sections[[connector.name for connector in connectors].index(cycle[0])]
        section.fail("start_after", f"these wait for each other, and none would start: {' -> '.join(cycle)}.")
    _check_ends(sections, connectors, waits)


def _no_such_label(label: str, labels: list[str], names: set[str]) -> str:
    if label in names:
        return f"'{label}' is a name, and connectors are waited for by label. Give that connector a label."
    labels_text = f" Labels are: {', '.join(dict.fromkeys(labels))}." if labels else " There are no labels."
    return f"no connector of this table has the label '{label}'.{suggestion(label, labels)}{labels_text}"


def _check_start(section: Section, connector: Connector) -> None:
    transport = connector.transport
    if (
        isinstance(transport, KafkaInput)
        and transport.start.kind is StartKind.AFTER_HISTORY
        and not connector.start_after
    ):
        section.fail("transport.config.start_from", "'after_history' needs a start_after: which history?")


def _check_ends(sections: list[Section], connectors: tuple[Connector, ...], waits: dict[str, frozenset[str]]) -> None:
    endless = {connector.name for connector in connectors if not connector.ends}
    for section, connector in zip(sections, connectors, strict=True):
        for name in sorted(waits[connector.name] & endless):
            message = f"waits for '{name}', which never ends, and would never start."
            hint = "A snapshot, a file without follow, and datagen with a limit end; a topic does not."
            section.fail("start_after", f"{message} {hint}")


def _check_secrets(section: Section, value: object, path: str, key: str = "") -> None:
    """SpecError for Feldera's references to secrets, and for a variable where no secret is; see `schema.references`."""
    if isinstance(value, str):
        if _SECRET.search(value):
            message = f"{shown(value)} is a reference of Feldera's, which is not filled in here."
            section.fail(path, f"{message} Write ${{env:NAME}} or ${{file:/absolute/path}}.")
        if _VARIABLE.search(value) and not hides(key, in_options=path == f"transport.config.{key}"):
            refuse_reference(section, path)
    if isinstance(value, dict):
        for name, item in value.items():
            _check_secrets(section, item, f"{path}.{name}" if path else str(name), str(name))
    if isinstance(value, list):
        for position, item in enumerate(value):
            _check_secrets(section, item, f"{path}[{position}]", key)
