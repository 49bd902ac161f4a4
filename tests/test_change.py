"""What `table apply` says of a change before it does anything: no JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api import Hybrid, TableDocuments
from hybrid.change import _check_kept
from hybrid.errors import SpecError
from hybrid.spec.table_config import StreamConfig
from hybrid.verbs import VERBS
from tests.query.halves import Halves, orders_spec
from tests.serve.app import OFFLINE, SCHEMA


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
    table = Halves(here.spec("orders"), here.layout("orders"))
    table.commit_task(table.spec.merge_levels[0])
    with pytest.raises(SpecError, match="'amount' of table 'orders' cannot be rolled up with 'max'"):
        here.apply_table(merging("max"), dry_run=True)
    here.apply_table(given("INT"))
    with pytest.raises(SpecError, match="rows of OFFLINE hold what 'sum' made of it"):
        here.apply_table(merging("max"))


def test_a_change_that_did_not_end_is_found(here: Hybrid) -> None:
    definition = here.definitions.find("orders")
    assert definition is not None
    here.definitions.replace(replace(definition, schema_doc=given("LONG").schema[0]))
    told = here.apply_table(given("LONG"), dry_run=True)
    assert list(told.changes) == ["columns of OFFLINE: an earlier change of them did not end"]


def test_a_change_beside_one_that_did_not_end_says_which(home: Path) -> None:
    here = hybrid.connect(home)
    here.create_table(given("LONG"))
    definition = here.definitions.find("orders")
    assert definition is not None
    here.definitions.replace(replace(definition, schema_doc=given("INT").schema[0]))  # a half is wider than it
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
