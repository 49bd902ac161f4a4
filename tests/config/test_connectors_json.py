"""Connectors whatever their transport: names, order, formats, warnings."""

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.connectors import (
    ConnectorCsvFormat,
    DeltaInput,
    JsonFormat,
    KafkaInput,
    StartKind,
    UpdateFormat,
    find_cycle,
    waits_for,
)
from hybrid.config.connectors_json import connector_warnings, parse_connectors
from hybrid.errors import SpecError
from hybrid.schema.document import Section
from tests.config.connector_docs import (
    DELTA,
    JSON,
    KAFKA,
    connector,
    delta,
    fails,
    kafka,
    parse,
    top,
)

# Names, labels, generic attributes


def test_no_connectors() -> None:
    assert parse_connectors(Section({}, "t.json")) == () == parse()


def test_generic_attributes() -> None:
    [one] = parse(delta(name="h", labels=["a", "b.c", "a"], paused=True, max_batch_size=5, max_queued_records="7"))
    assert (one.name, one.labels, one.paused, one.max_batch_size, one.max_queued_records) == (
        "h", ("a", "b.c"), True, 5, 7,
    )  # fmt: skip
    [one] = parse(delta())
    assert (one.labels, one.start_after, one.paused, one.max_batch_size, one.format) == ((), (), False, None, None)


def test_secrets_are_references() -> None:
    """Of a variable or a file; each is filled in when its process connects."""
    secured = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ada"}
    registry = {"registry_urls": ["http://r:8081"], "registry_username": "ada", "registry_password": "${env:R}"}
    avro = {"name": "avro", "config": {"update_format": "raw", **registry}}
    for secret in ("${env:SECRET}", "${file:/run/secret}"):
        stream = connector("kafka_input", {**KAFKA, **secured, "sasl.password": secret}, format=avro)
        history = connector("delta_table_input", {**DELTA, "aws_secret_access_key": secret})
        live, loaded = parse(stream, history)
        assert isinstance(live.transport, KafkaInput) and live.transport.security.password == secret
        assert (
            isinstance(loaded.transport, DeltaInput)
            and loaded.transport.storage_options["aws_secret_access_key"] == secret
        )


def test_names_are_given_or_the_first_label_or_a_number() -> None:
    found = parse(delta(name="n", labels=["x"]), delta(labels=["x"]), delta(labels=["x", "y"]), delta(), kafka())
    assert [one.name for one in found] == ["n", "x", "x_2", "delta_table_input_3", "kafka_input_4"]


def test_a_later_connector_does_not_rename_an_earlier_one() -> None:
    before = parse(delta(labels=["x"]), delta())
    after = parse(delta(labels=["x"]), delta(), delta(labels=["x"]))
    assert [one.name for one in before] == [one.name for one in after][:2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([delta(name="a/b")], "connectors[0].name: 'a/b' is refused"),
        ([delta(name="_a")], "beginning with a letter or digit"),
        ([delta(name="")], "connectors[0].name: '' is not a text"),
        ([delta(name=3)], "connectors[0].name: 3 is not a text"),
        ([delta(labels=["a b"])], "connectors[0].labels: 'a b' is refused"),
        ([delta(labels=[1])], "is not a list of texts"),
        ([delta(name="a"), delta(name="a")], "connectors[1].name: 'a' is the name of two connectors"),
        ([delta(name="x"), delta(name="x_1"), delta(labels=["x"]), delta(name="x_2")], "connectors[2].name"),
        ([delta(paused="perhaps")], "connectors[0].paused: 'perhaps' is neither true nor false"),
        ([delta(max_batch_size=0)], "connectors[0].max_batch_size: 0 is not a whole number from 1 on"),
        ([delta(max_queued_records=-1)], "max_queued_records"),
        ([delta(soft_delete=True)], "connectors[0].soft_delete: true cannot be honoured"),
        ([delta(preprocessor=[{"name": "x"}])], "preprocessor"),
        (["x"], "connectors[0]: 'x' is not an object"),
        ([{}], "connectors[0].transport: is missing"),
        ([{"transport": {"config": {}}}], "connectors[0].transport.name: is missing"),
        ([connector("s3_input", {})], "'s3_input' is known from Feldera and not built here"),
        ([connector("pubsub_input", {})], "known from Feldera and not built here"),
        ([connector("url_input", {})], "There are: kafka_input, delta_table_input, file_input, datagen"),
        ([connector("kafka_output", {})], "'kafka_output' writes"),
        ([connector("http_output", {})], "'http_output' writes"),
        ([connector("redis_output", {})], "'redis_output' writes"),
        ([connector("kafka_inptu", {})], "Did you mean 'kafka_input'?"),
        ([connector("delta_table_input", {**DELTA, "aws_secret_access_key": "${secret:kubernetes:a/b}"})],
         "transport.config.aws_secret_access_key: '${secret:kubernetes:a/b}' is a reference of Feldera's, "),
        ([connector("kafka_input", {**KAFKA, "topics": ["${env:T}"]}, format=JSON)], "config.topics[0]: holds"),
        ([connector("kafka_input", {**KAFKA, "bootstrap.servers": "${env:K}"}, format=JSON)], "servers: holds"),
        ([connector("delta_table_input", {**DELTA, "aws_secret_access_key": "${env:A B}"})], "is no name of an env"),
    ],
)  # fmt: skip
def test_wrong_generic_attributes(given: list[object], words: str) -> None:
    assert words in fails(*given)


def test_connectors_that_are_no_list() -> None:
    with pytest.raises(SpecError, match="connectors: 'x' is not a list"):
        parse_connectors(Section({"connectors": "x"}, "t.json"))


# Order


def test_start_after_takes_a_text_or_a_list() -> None:
    history = [delta(name="a", labels=["x"]), delta(name="b", labels=["x", "y"])]
    for start_after, names in (("x", {"a", "b"}), (["y"], {"b"}), (["x", "y"], {"a", "b"})):
        found = parse(*history, kafka(name="live", start_after=start_after))
        assert waits_for(found) == {"a": set(), "b": set(), "live": names}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([delta(start_after="")], "connectors[0].start_after: '' names no label"),
        ([delta(start_after=[])], "[] names no label"),
        ([delta(start_after=5)], "5 is not a list of texts"),
        ([delta(start_after=["x", None])], "is not a list of texts"),
        ([kafka(start_after="x")], "no connector of this table has the label 'x'. There are no labels"),
        ([delta(labels=["history"]), kafka(start_after="histroy")], "Did you mean 'history'? Labels are: history"),
        ([delta(name="h"), kafka(start_after="h")], "'h' is a name, and connectors are waited for by label"),
        ([delta(labels=["a"], start_after="a")], "it would wait for itself"),
        ([delta(name="b", labels=["b"], start_after="a"), delta(name="a", labels=["a"], start_after="b")],
         "connectors[0].start_after: these wait for each other, and none would start: b -> a -> b"),
        ([delta(labels=["a"], start_after="c"), delta(labels=["b"], start_after="a"),
          delta(labels=["c"], start_after="b"), kafka(start_after="a")], "a -> c -> b -> a"),
        ([kafka(name="k", labels=["l"]), delta(start_after="l")], "waits for 'k', which never ends"),
        ([connector("delta_table_input", {**DELTA, "mode": "follow"}, labels=["l"]), kafka(start_after="l")],
         "connectors[1].start_after: waits for 'l', which never ends"),
        ([connector("datagen", {}, labels=["l"]), kafka(start_after="l")], "which never ends"),
        ([connector("file_input", {"path": "p", "follow": True}, format=JSON, labels=["l"]), kafka(start_after="l")],
         "which never ends"),
        ([connector("kafka_input", {**KAFKA, "start_from": "after_history"}, format=JSON)],
         "connectors[0].transport.config.start_from: 'after_history' needs a start_after"),
    ],
)  # fmt: skip
def test_orders_that_cannot_be_kept(given: list[object], words: str) -> None:
    assert words in fails(*given)


def test_what_ends_can_be_waited_for() -> None:
    ending = [
        delta(labels=["l"]),
        connector("delta_table_input", {**DELTA, "mode": "follow", "end_version": 9}, labels=["l"]),
        connector("datagen", {"plan": [{"limit": 1}]}, labels=["l"]),
        connector("file_input", {"path": "p"}, format=JSON, labels=["l"]),
    ]
    *_, live = parse(
        *ending, connector("kafka_input", {**KAFKA, "start_from": "after_history"}, format=JSON, start_after="l")
    )
    assert isinstance(live.transport, KafkaInput) and live.transport.start.kind is StartKind.AFTER_HISTORY


NAMES = "abcdef"


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES))))
def test_a_cycle_is_found_if_and_only_if_there_is_one(some: dict[str, frozenset[str]]) -> None:
    waits = {name: some.get(name, frozenset()) for name in NAMES}
    cycle = find_cycle(waits)
    startable: set[str] = set()
    for _ in NAMES:
        startable |= {name for name in NAMES if waits[name] <= startable}
    assert bool(cycle) == (len(startable) < len(NAMES))
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(after in waits[before] for before, after in pairwise(cycle))


# Formats


def test_json_and_csv() -> None:
    [one] = parse(connector("kafka_input", KAFKA, format=JSON))
    assert one.format == JsonFormat(UpdateFormat.INSERT_DELETE) and one.can_delete
    raw = {
        "name": "json",
        "config": {"update_format": "raw", "array": True, "lines": "single", "json_flavor": "default"},
    }
    [one] = parse(connector("kafka_input", KAFKA, format=raw))
    assert one.format == JsonFormat(UpdateFormat.RAW, array=True, single_line=True) and not one.can_delete
    csv = {"name": "csv", "config": {"delimiter": "\t", "headers": True, "quote": "'", "escape": "\\"}}
    [one] = parse(connector("kafka_input", KAFKA, format=csv))
    assert one.format == ConnectorCsvFormat("\t", True, "'", "\\") and not one.can_delete


def test_what_can_delete() -> None:
    assert [one.can_delete for one in parse(delta(), connector("delta_table_input", {**DELTA, "mode": "follow"}))] == [
        False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "form", "words"),
    [
        ("kafka_input", None, "connectors[0].format: is missing: kafka_input needs one"),
        ("file_input", None, "file_input needs one"),
        ("delta_table_input", JSON, "connectors[0].format: must not be given: delta_table_input has its own"),
        ("datagen", JSON, "datagen has its own"),
        ("kafka_input", {"name": "avro"}, "connectors[0].format.config.schema: is missing"),
        ("kafka_input", {"name": "avro", "config": {"schema": "[]"}}, "schema: is no schema of records"),
        ("kafka_input", {"name": "avro", "config": {"registry_urls": ["u"]}}, "is no address"),
        ("kafka_input", {"name": "raw"}, "'raw' is not built yet"),
        ("kafka_input", {"name": "raw"}, "'raw' is not built yet"),
        ("kafka_input", {"name": "parquet"}, "'parquet' does not come by kafka_input. Use json or csv"),
        ("kafka_input", {"name": "jsno"}, "'jsno' is not known. Did you mean 'json'?"),
        ("kafka_input", {"config": {}}, "connectors[0].format.name: is missing"),
        ("kafka_input", "json", "connectors[0].format: 'json' is not an object"),
    ],
)
def test_wrong_formats(kind: str, form: object, words: str) -> None:
    configs = {"kafka_input": KAFKA, "file_input": {"path": "p"}, "delta_table_input": DELTA, "datagen": {}}
    assert words in fails(connector(kind, configs[kind], format=form))


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("json", {"update_format": "weighted"}, "format.config.update_format: 'weighted' is not built yet"),
        ("json", {"update_format": "snowflake"}, "'snowflake' is not built yet"),
        ("json", {"update_format": "insert_delet"}, "Did you mean 'insert_delete'?"),
        ("json", {"json_flavor": "pandas"}, "json_flavor: 'pandas' is not built yet"),
        ("json", {"array": "yes"}, "array: 'yes' is neither true nor false"),
        ("json", {"lines": "many"}, "lines: 'many' is not known"),
        ("csv", {"delimiter": "||"}, "delimiter: '||' is not one character of ASCII"),
        ("csv", {"delimiter": "§"}, "is not one character of ASCII"),
        ("csv", {"delimiter": '"'}, "is the quote too"),
        ("csv", {"trim": "all"}, "trim: 'all' is not built yet"),
        ("csv", {"flexible": False}, "flexible: false is not built yet"),
        ("csv", {"headers": 1}, "headers: 1 is neither true nor false"),
    ],
)
def test_wrong_format_configs(name: str, config: dict[str, Any], words: str) -> None:
    assert words in fails(connector("kafka_input", KAFKA, format={"name": name, "config": config}))


# Warnings


def test_a_key_that_nobody_reads_gives_one_warning() -> None:
    doc = connector("kafka_input", {**KAFKA, "x": 1}, format={"name": "json", "y": 1, "config": {"z": 1}})
    doc |= {"lables": ["l"], "index": "i", "max_queued_bytes": 1}
    doc["transport"]["w"] = 1
    data = connector("datagen", {"v": 1, "plan": [{"u": 1, "fields": {"a": {"t": 1}}}]})
    warnings = list(connector_warnings(top(doc, data, connector("file_input", {"path": "p", "s": 1}, format=JSON))))
    places = [warning.split(": ")[1].removeprefix("connectors") for warning in warnings]
    assert places == [
        "[0].lables", "[0].index", "[0].transport.w", "[0].transport.config.x", "[0].format.y", "[0].format.config.z",
        "[1].transport.config.v", "[1].transport.config.plan[0].u", "[1].transport.config.plan[0].fields.a.t",
        "[2].transport.config.s",
    ]  # fmt: skip
    assert "Did you mean 'labels'?" in warnings[0] and "has no effect" in warnings[0]


def test_auto_offset_reset_gives_a_warning() -> None:
    [alone] = connector_warnings(top(connector("kafka_input", {**KAFKA, "auto.offset.reset": "earliest"}, format=JSON)))
    assert "auto.offset.reset: is taken for start_from; Feldera does not start there" in alone
    config = {**KAFKA, "auto.offset.reset": "earliest", "start_from": "latest"}
    [beside] = connector_warnings(top(connector("kafka_input", config, format=JSON)))
    assert "has no effect beside start_from" in beside


# Whatever is written, the answer is connectors or an error that names a place

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
EXAMPLES = [
    delta(labels=["a"]),
    connector("delta_table_input", {**DELTA, "version": 1, "datetime": "2024-01-01T00:00:00Z"}),
    kafka(start_after="a"),
    connector("kafka_input", {**KAFKA, "partitions": [0], "start_from": {"offsets": [1]}}, format=JSON),
    connector("kafka_input", {**KAFKA, "start_from": [{"topic": "t", "partition": 0, "offset": 42}]}, format=JSON),
    connector("file_input", {"path": "p"}, format={"name": "csv", "config": {"delimiter": ";"}}),
    connector("datagen", {"plan": [{"limit": 1, "rate": 1, "fields": {"a": {"range": [1, 2], "values": [1]}}}]}),
]


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@given(st.sampled_from(EXAMPLES), st.data(), VALUES)
def test_hostile_values(example: dict[str, Any], data: st.DataObject, value: object) -> None:
    doc = copy.deepcopy({"connectors": [example, delta(labels=["a"])]})
    *path, last = data.draw(st.sampled_from([place for place in places(doc) if place]))
    holder: Any = doc
    for key in path:
        holder = holder[key]
    holder[last] = value
    try:
        found = parse_connectors(Section(doc, "t.json"))
        assert len({one.name for one in found}) == len(found)
        list(connector_warnings(Section(doc, "t.json")))
    except SpecError as error:
        assert str(error).startswith("t.json: connectors")
