"""What `table apply` says of a change before it does anything: no JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.cli.main import run
from hybrid.config.table_config import StreamConfig
from hybrid.errors import SpecError, StreamError
from hybrid.kafka.streams import StreamView
from hybrid.operations.tables import configs
from hybrid.operations.tables import create as creation
from hybrid.operations.tables.change import _check_kept, _difference
from hybrid.operations.tables.schemas import put_schema
from hybrid.rpc.verbs import VERBS
from hybrid.schema.secrets import HIDDEN
from tests.query.halves import Halves, orders_spec
from tests.serve.app import OFFLINE, REALTIME, SCHEMA


def given(kind: str, **more: Any) -> TableDocuments:
    first = {**SCHEMA["dimensionFieldSpecs"][0], "dataType": kind}
    schema = {**SCHEMA, "dimensionFieldSpecs": [first, *SCHEMA["dimensionFieldSpecs"][1:]], **more}
    return TableDocuments((schema, "schema"), [(OFFLINE, "config")])


@pytest.fixture
def here(home: Path) -> Hybrid:
    found = hybrid.connect(home)
    found.create_table(given("INT"))
    return found


def test_the_difference_is_shown_and_nothing_done(here: Hybrid) -> None:
    told = here.apply_table(given("LONG"), dry_run=True)
    assert told.sentence == "Would change table 'orders': 2 changes. Nothing was changed."
    assert list(told.changes) == [
        "schema/dimensionFieldSpecs/order_id/dataType: INT -> LONG",
        "schema/dimensionFieldSpecs/order_id/defaultNullValue: (none) -> -2147483648",
    ]
    assert here.spec("orders").schema.fields[0].data_type == "INT"
    assert here.apply_table(given("INT")).sentence == "Nothing to change: table 'orders' is as given."


def test_a_difference_is_whole_and_in_json() -> None:
    """Long values are not cut; a text that reads as something else is in quotes; secrets stay hidden."""
    long = "x" * 500
    before = {"ingestionConfig": None, "a": 5, "b": True, "c": ["d"], "e": "d", "f": "1d"}
    after = {"ingestionConfig": {"continueOnError": True, "note": long, "sasl.password": "pw"}, "a": "5", "b": False,
             "c": ["d", 1.5], "e": "", "f": f"é {long}"}  # fmt: skip
    assert list(_difference("REALTIME", before, after)) == [
        'REALTIME/a: 5 -> "5"',
        "REALTIME/b: true -> false",
        'REALTIME/c: ["d"] -> ["d", 1.5]',
        'REALTIME/e: d -> ""',
        f"REALTIME/f: 1d -> é {long}",
        f'REALTIME/ingestionConfig: (none) -> {{"continueOnError": true, "note": "{long}", '
        f'"sasl.password": "{HIDDEN}"}}',
    ]


def test_what_is_refused_is_refused_in_a_dry_run_too(here: Hybrid) -> None:
    for documents in (given("FLOAT"), given("INT", metricFieldSpecs=[])):
        with pytest.raises(SpecError, match=r"Table 'orders': column '.*Nothing was changed"):
            here.apply_table(documents, dry_run=True)
    with pytest.raises(SpecError, match="its way of keeping nulls, which cannot be changed"):
        here.apply_table(given("INT", enableColumnBasedNullHandling=True))


def test_topics_and_partitions_stay() -> None:
    before = replace(orders_spec(), stream=StreamConfig(("a", "b"), "b:1", partitions=(0,)))
    _check_kept(before, replace(before, stream=replace(before.stream, brokers="c:1")))  # type: ignore[type-var]
    for more in ({"topics": ("b", "a")}, {"topics": ("a",)}, {"topics": ("a", "b", "c")}):
        with pytest.raises(SpecError, match="holds rows under its topics, in their order, which cannot be changed"):
            _check_kept(before, replace(before, stream=replace(before.stream, **more)))  # type: ignore[type-var]
    both = replace(before, stream=replace(before.stream, partitions=(0, 2)))  # type: ignore[type-var]
    _check_kept(both, replace(both, stream=replace(both.stream, partitions=(2, 0))))  # type: ignore[type-var]
    with pytest.raises(SpecError, match="the partitions that it reads, which cannot be changed"):
        _check_kept(before, replace(before, stream=replace(before.stream, partitions=())))  # type: ignore[type-var]


def test_rows_that_were_rolled_up_are_not_rolled_up_otherwise(here: Hybrid) -> None:
    def merging(how: str) -> TableDocuments:
        task = {"1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "1d", "1day.mergeType": "rollup"}
        merges = {"MergeRollupTask": {**task, "amount.aggregationType": how}}
        return TableDocuments(given("INT").schema, [({**OFFLINE, "task": {"taskTypeConfigsMap": merges}}, "config")])

    for how in ("max", "sum"):  # nothing was rolled up
        here.apply_table(merging(how))
    table = Halves(here.spec("orders"), here.context.layout("orders"))
    table.commit_task(table.spec.merge_levels[0])
    with pytest.raises(SpecError, match="'amount' of table 'orders' cannot be rolled up with 'max'"):
        here.apply_table(merging("max"), dry_run=True)
    here.apply_table(given("INT"))
    with pytest.raises(SpecError, match="rows of OFFLINE hold what 'sum' made of it"):
        here.apply_table(merging("max"))


def test_a_change_that_did_not_end_is_found(here: Hybrid) -> None:
    definition = here.context.definitions.find("orders")
    assert definition is not None
    here.context.definitions.replace(replace(definition, schema_doc=given("LONG").schema[0]))
    told = here.apply_table(given("LONG"), dry_run=True)
    assert list(told.changes) == ["columns of OFFLINE: an earlier change of them did not end"]


def test_a_change_beside_one_that_did_not_end_says_which(home: Path) -> None:
    here = hybrid.connect(home)
    here.create_table(given("LONG"))
    definition = here.context.definitions.find("orders")
    assert definition is not None
    here.context.definitions.replace(replace(definition, schema_doc=given("INT").schema[0]))  # a half is wider than it
    with pytest.raises(
        SpecError, match="as bigint in OFFLINE already: an earlier change of it to LONG did not end"
    ) as no:
        here.apply_table(given("INT", description="of the shop"))
    assert "Make 'order_id' LONG: apply that change again (hybrid table apply), then this one" in str(no.value.hint)
    assert here.apply_table(given("LONG"), dry_run=True).changes


def test_only_a_change_of_columns_is_heavy(here: Hybrid) -> None:
    verb = VERBS["table_apply"]
    assert verb.is_heavy(here, {"documents": given("LONG").to_json()})
    assert not verb.is_heavy(here, {"documents": given("LONG").to_json(), "dry_run": True})
    assert not verb.is_heavy(here, {"documents": given("INT", description="of the shop").to_json()})
    put = VERBS["schema_put"]
    assert put.is_heavy(here, {"schema": given("LONG").schema[0], "source": "body"})
    assert not put.is_heavy(here, {"schema": given("INT").schema[0], "source": "body"})


# Brokers


def with_kafka(brokers: str | None, **more: Any) -> TableDocuments:
    """The documents of a table with both halves, whose config names `brokers` (None: none)."""
    streams = {**REALTIME["tableIndexConfig"]["streamConfigs"], "stream.kafka.broker.list": brokers}
    streams = {key: value for key, value in streams.items() if value is not None}
    config = {**REALTIME, "tableIndexConfig": {"streamConfigs": streams}}
    return replace(TableDocuments((SCHEMA, "schema"), [(config, "config"), (OFFLINE, "config")]), **more)


@pytest.fixture
def reads(home: Path, monkeypatch: pytest.MonkeyPatch) -> Hybrid:
    """A table created with --kafka a:1 while its config names config:1; every broker answers but `gone:1`."""

    def view(stream: StreamConfig) -> StreamView:
        if stream.brokers == "gone:1":
            raise StreamError("Kafka at gone:1 cannot be reached.")
        return StreamView({}, {}, {})

    monkeypatch.setattr(creation, "view_stream", view)
    found = hybrid.connect(home)
    found.create_table(with_kafka("config:1", kafka="a:1"))
    return found


def brokers_of(home: Hybrid) -> str | None:
    stream = home.spec("orders").stream
    return stream.brokers if stream is not None else None


@pytest.mark.parametrize("written", ["config:1", None])
def test_brokers_that_are_not_named_stay(reads: Hybrid, written: str | None) -> None:
    described = replace(with_kafka(written), schema=({**SCHEMA, "description": "of the shop"}, "schema"))
    told = reads.apply_table(described)
    assert brokers_of(reads) == "a:1" and not any("broker address" in change for change in told.changes)
    reads.apply_table(replace(described, default_kafka="setting:1"))
    assert brokers_of(reads) == "a:1"


def test_brokers_change_where_they_are_named(reads: Hybrid) -> None:
    told = reads.apply_table(with_kafka("config:1", kafka="b:1"))
    assert "broker address: a:1 -> b:1" in told.changes and brokers_of(reads) == "b:1"
    reads.apply_table(with_kafka("edited:1"))
    assert brokers_of(reads) == "edited:1"
    offline = TableDocuments((SCHEMA, "schema"), [(OFFLINE, "config")], "c:1")
    reads.apply_table(offline)
    assert brokers_of(reads) == "c:1"


def test_other_brokers_are_asked_before_anything_changes(reads: Hybrid) -> None:
    for documents in (with_kafka("config:1", kafka="gone:1"), with_kafka("gone:1")):
        with pytest.raises(StreamError, match="gone:1 cannot be reached"):
            reads.apply_table(documents)
        assert brokers_of(reads) == "a:1"
    reads.apply_table(with_kafka("config:1"))  # what did not change is not asked


@pytest.mark.slow
def test_other_doors_keep_the_brokers_too(reads: Hybrid) -> None:
    config = with_kafka("config:1").configs[0][0]
    configs.update_config(reads.context, "orders", {**config, "query": {"timeoutMs": 1}}, "body")
    assert brokers_of(reads) == "a:1"
    reads.add_table(with_kafka("config:1"), update=True)
    assert brokers_of(reads) == "a:1"
    put_schema(reads.context, {**SCHEMA, "description": "x"}, "body")
    assert brokers_of(reads) == "a:1"
    configs.update_config(reads.context, "orders", with_kafka("edited:1").configs[0][0], "body")
    assert brokers_of(reads) == "edited:1"


@pytest.mark.slow
def test_the_command_asks_when_a_config_names_other_brokers(
    reads: Hybrid, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, config = tmp_path / "schema.json", tmp_path / "config.json"
    schema.write_text(json.dumps(SCHEMA))
    words = ["--home", str(reads.home), "table", "apply", "--schema", str(schema), "--config", str(config)]
    config.write_text(json.dumps(with_kafka("config:1").configs[0][0]))
    monkeypatch.setenv("HYBRID_KAFKA", "setting:1")
    assert run(words) == 0 and brokers_of(reads) == "a:1"
    config.write_text(json.dumps(with_kafka("edited:1").configs[0][0]))
    assert run(words) == 2
    assert "to read from other brokers: a:1 -> edited:1. Go on?" in capsys.readouterr().err
    assert brokers_of(reads) == "a:1"
    assert run([*words, "--yes"]) == 0 and brokers_of(reads) == "edited:1"
