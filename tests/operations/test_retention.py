"""Retention as a task of the API: by its type, recorded, and refused where nothing has an age. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.retention_json import RETENTION_TASK
from hybrid.errors import NotFoundError, SpecError
from hybrid.operations.tasks import check_task
from hybrid.rpc.json_views import table_details
from hybrid.rpc.queue import enqueue
from hybrid.rpc.verbs import VERBS
from tests.operations.test_compaction import documents as upserts

TIME = {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    found = hybrid.connect(home)
    yield found
    found.close()


def created(here: Hybrid, name: str = "aging", **keys: Any) -> None:
    """An empty OFFLINE table with these keys in its segmentsConfig."""
    schema = {"schemaName": name, "dateTimeFieldSpecs": [TIME]}
    section = {"schemaName": name, **keys}
    config = {"tableName": name, "tableType": "OFFLINE", "segmentsConfig": section}
    here.create_table(TableDocuments((schema, "schema"), [(config, "config")]))


def task_run(here: Hybrid, **options: Any) -> Any:
    return VERBS["task_run"].call(here, table="aging", type=RETENTION_TASK, **options)


def test_it_is_recorded_with_its_sentence(here: Hybrid) -> None:
    created(here, timeColumnName="ts", retentionTimeUnit="DAYS", retentionTimeValue="3")
    dry = task_run(here, dry_run=True)
    assert list(dry) == [
        "segments", "rows", "bytes", "markers", "kept", "floor_ms", "versions", "sentence", "dry_run", "floor",
    ]  # fmt: skip
    assert dry["dry_run"] and not here.runs("aging")
    found = task_run(here)
    assert found["sentence"].startswith("Nothing to drop in 'aging': no segment of OFFLINE ends before ")
    assert found["sentence"].endswith(", it holds no rows.") and found["versions"] == {}
    (run,) = here.runs("aging")
    assert (run.type, run.state, run.result) == (RETENTION_TASK, "NOTHING", found["sentence"])
    (schedule,) = (one for one in here.schedules("aging") if one.type == RETENTION_TASK)
    assert (schedule.type, schedule.cron, run.id in schedule.result) == (RETENTION_TASK, "0 0 0/6 * * ?", True)
    assert table_details(here.spec("aging"))["retention_ms"] == {"OFFLINE": 3 * 86_400_000}


def test_what_has_no_age_is_refused_and_not_recorded(here: Hybrid) -> None:
    created(here, retentionTimeUnit="DAYS", retentionTimeValue="3")
    for options in ({}, {"dry_run": True}):
        with pytest.raises(SpecError, match="no time column: its rows have no age"):
            task_run(here, **options)
    assert not here.runs("aging") and RETENTION_TASK not in {one.type for one in here.schedules("aging")}


def test_a_server_queues_it_by_its_type(here: Hybrid) -> None:
    created(here, timeColumnName="ts", retentionTimeUnit="DAYS", retentionTimeValue="3")
    arguments = {"table": "aging", "type": RETENTION_TASK}
    run = enqueue(here, "task_run", arguments, "http")
    assert run is not None and run.type == RETENTION_TASK and run.id.startswith(f"Task_{RETENTION_TASK}_")
    assert enqueue(here, "task_run", arguments, "http") is None
    with pytest.raises(NotFoundError, match="Did you mean 'RetentionManager'"):
        VERBS["task_run"].call(here, table="aging", type="RetentionManage")


def test_a_retention_without_effect_is_refused_with_its_reason(here: Hybrid) -> None:
    """The same text with a server, which checks before it queues, and without one."""
    keys = {"timeColumnName": "ts", "retentionTimeUnit": "DAYS", "retentionTimeValue": "3"}
    created(here, "pushed", segmentPushType="REFRESH", **keys)
    created(here, "kept", timeColumnName="ts")
    reasons = {"pushed": "but with REFRESH each push replaces the data", "kept": "no retention: it keeps"}
    for name, reason in reasons.items():
        with pytest.raises(SpecError, match=reason) as alone:
            here.table(name).upkeep.drop_expired()
        with pytest.raises(SpecError) as queued:
            check_task(here.context, {"table": name, "type": RETENTION_TASK})
        assert (str(queued.value), queued.value.hint) == (str(alone.value), alone.value.hint)


def test_a_run_without_kafka_says_so(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version of a key that waits in Kafka counts: whether it was read must not be left out."""
    keys = {"timeColumnName": "ts", "retentionTimeUnit": "DAYS", "retentionTimeValue": "3"}
    here.create_table(upserts(upsertConfig={"mode": "FULL"}, segmentsConfig={"schemaName": "pushed", **keys}))
    monkeypatch.setattr("hybrid.operations.maintenance.catch_up", lambda *_: ["Went on without Kafka."])
    report = here.table("pushed").upkeep.drop_expired()
    assert report.sentence.endswith("it holds no rows. Went on without Kafka.")
    assert here.runs("pushed")[0].result == report.sentence
    assert "Kafka" not in here.table("pushed").upkeep.drop_expired(dry_run=True).sentence
