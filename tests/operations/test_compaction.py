"""Compaction as a task of the API, and what of an upsert table's settings may change. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.errors import SpecError
from hybrid.rpc.verbs import VERBS
from tests.operations.test_merges import TIME


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    found = hybrid.connect(home)
    yield found
    found.close()


def documents(**keys: Any) -> TableDocuments:
    """An OFFLINE table with a key."""
    key = {"name": "id", "dataType": "INT"}
    schema = {
        "schemaName": "pushed", "primaryKeyColumns": ["id"], "dimensionFieldSpecs": [key], "dateTimeFieldSpecs": [TIME],
    }  # fmt: skip
    section = {"schemaName": "pushed", "timeColumnName": "ts"}
    config = {"tableName": "pushed", "tableType": "OFFLINE", "segmentsConfig": section, **keys}
    return TableDocuments((schema, "schema"), [(config, "config")])


@pytest.mark.slow
def test_how_long_markers_stay_may_change_and_what_rows_are_compared_by_may_not(here: Hybrid) -> None:
    task = {"taskTypeConfigsMap": {COMPACTION_TASK: {"invalidRecordsThresholdCount": "1"}}}
    here.create_table(documents(upsertConfig={"mode": "FULL"}, task=task))
    changed = here.apply_table(documents(upsertConfig={"mode": "FULL", "deletedKeysTTL": 86_400_000}, task=task))
    assert "/upsertConfig/deletedKeysTTL: (none) -> 86400000" in str(changed.changes)
    upsert = here.spec("pushed").upsert
    assert upsert is not None and upsert.deleted_keys_ttl == 86_400_000
    found = VERBS["task_run"].call(here, table="pushed", type=COMPACTION_TASK)
    assert found["sentence"] == "Nothing to compact in 'pushed': no segment was last written before the buffer."
    others = ({"upsertConfig": {"mode": "FULL", "comparisonColumn": "id"}}, {"dedupConfig": {"dedupEnabled": True}}, {})
    for other in others:
        with pytest.raises(SpecError, match="its upsert settings, which cannot be changed"):
            here.apply_table(documents(task=task if other else {}, **other))
