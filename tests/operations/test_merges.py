"""Merges of segments as a task of the API: by its type, recorded, and refused where a table has none. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.merge_json import MERGE_TASK
from hybrid.errors import NotFoundError, SpecError
from hybrid.rpc.json_views import table_details
from hybrid.rpc.verbs import VERBS
from hybrid.table.lineage import MERGE
from tests.query.halves import Halves, Row

TIME = {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
TASK = {"1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "2d", "schedule": "0 15 * * * ?"}


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    found = hybrid.connect(home)
    yield found
    found.close()


def created(here: Hybrid, **keys: Any) -> None:
    """An empty OFFLINE table."""
    schema = {"schemaName": "pushed", "dateTimeFieldSpecs": [TIME]}
    section = {"schemaName": "pushed", "timeColumnName": "ts"}
    config = {"tableName": "pushed", "tableType": "OFFLINE", "segmentsConfig": section, **keys}
    here.create_table(TableDocuments((schema, "schema"), [(config, "config")]))


def task_run(here: Hybrid, **options: Any) -> Any:
    return VERBS["task_run"].call(here, table="pushed", type=MERGE_TASK, **options)


def test_it_is_recorded_with_its_sentence(here: Hybrid) -> None:
    created(here, task={"taskTypeConfigsMap": {MERGE_TASK: TASK}})
    dry = task_run(here, dry_run=True)
    assert list(dry) == ["merged", "kept", "rows_read", "rows_written", "sentence", "dry_run"]
    assert dry["dry_run"] and not here.runs("pushed")
    found = task_run(here)
    assert found["sentence"] == "Nothing to merge in 'pushed': no closed bucket of '1day' holds segments to merge."
    (run,) = here.runs("pushed")
    assert (run.type, run.state, run.result) == (MERGE_TASK, "NOTHING", found["sentence"])
    schedules = {one.type: one.cron for one in here.schedules("pushed")}
    assert schedules[MERGE_TASK] == "0 15 * * * ?"
    (level,) = table_details(here.spec("pushed"))["merge_levels"]
    assert (level["level"], level["merge"]) == ("1day", "concat")
    assert (level["bucket_ms"], level["buffer_ms"], level["round_ms"]) == (86_400_000, 172_800_000, None)
    assert level["aggregations"] == {}


def test_a_table_without_it_says_so(here: Hybrid) -> None:
    created(here)
    for options in ({}, {"dry_run": True}):
        with pytest.raises(SpecError, match="has no MergeRollupTask in its OFFLINE table config"):
            task_run(here, **options)
    assert not here.runs("pushed") and table_details(here.spec("pushed"))["merge_levels"] == []


def test_a_segment_that_was_merged_away_says_what_it_became(here: Hybrid) -> None:
    created(here)
    table = here.table("pushed")
    halves = Halves(table.spec, table.layout)
    halves.commit_offline([Row({"ts": 5}, 5, 0, segment="ab")])
    act = halves.commit_entry(MERGE, segments_from=["a", "b"], segments_to=["ab"], version_before=0, rows_before=2,
                              rows_after=2, added=0, removed=0, changed=0, result="Merged.", source=None)  # fmt: skip
    with pytest.raises(NotFoundError, match=f"Segment 'a' was merged into 'ab' by '{act}'") as caught:
        table.segment("a")
    assert caught.value.hint == f"To have it back: hybrid replacement revert pushed {act}"
    with pytest.raises(NotFoundError, match="Segment 'c' does not exist"):
        table.segment("c")
