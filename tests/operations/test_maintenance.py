"""Vacuum and optimize as tasks of the API: by their types, recorded, dry, and switched off. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.task_schedules import OPTIMIZE_TASK, VACUUM_TASK
from hybrid.errors import SpecError
from hybrid.rpc.verbs import VERBS

DOCUMENTS = Path(__file__).resolve().parents[2] / "data" / "orders"
REPORTS = {
    VACUUM_TASK: ["files", "bytes", "commits", "log_bytes", "kept", "sentence", "dry_run"],
    OPTIMIZE_TASK: ["segments", "files", "files_after", "bytes", "left", "versions", "sentence", "dry_run"],
}


@pytest.fixture
def here(home: Path) -> Iterator[Hybrid]:
    found = hybrid.connect(home)
    yield found
    found.close()


def created(here: Hybrid, *halves: str, brokers: str | None = None, **custom: str) -> None:
    """The orders table of some halves, empty, with these custom configs."""
    changes = [f"/metadata/customConfigs/hybrid.{key}={value}" for key, value in custom.items()]
    names = {"REALTIME": "orders_table.json", "OFFLINE": "orders_offline_table.json"}
    configs = [DOCUMENTS / names[half] for half in halves]
    here.create_table(TableDocuments.read(DOCUMENTS / "orders_schema.json", configs, brokers, changes))


def task_run(here: Hybrid, kind: str, **options: Any) -> Any:
    return VERBS["task_run"].call(here, table="orders", type=kind, **options)


@pytest.mark.kafka
@pytest.mark.parametrize("kind", sorted(REPORTS))
def test_both_are_recorded_with_their_sentence(here: Hybrid, broker: str, kind: str) -> None:
    created(here, "REALTIME", brokers=broker)
    dry = task_run(here, kind, dry_run=True)
    assert list(dry) == REPORTS[kind] and dry["dry_run"] and not here.runs("orders")
    found = task_run(here, kind)
    assert found["sentence"].startswith("Nothing to ") and "'orders'" in found["sentence"]
    (run,) = here.runs("orders")
    assert (run.type, run.state, run.result) == (kind, "NOTHING", found["sentence"])
    (schedule,) = (one for one in here.schedules("orders") if one.type == kind)
    assert run.id in schedule.result


def test_an_offline_table_has_vacuum_alone(here: Hybrid) -> None:
    created(here, "OFFLINE")
    assert [one.type for one in here.schedules("orders")] == [VACUUM_TASK]
    assert task_run(here, VACUUM_TASK)["files"] == {"OFFLINE": 0}
    with pytest.raises(SpecError, match="no REALTIME half"):
        task_run(here, OPTIMIZE_TASK)


def test_never_switches_a_schedule_off(here: Hybrid) -> None:
    created(here, "OFFLINE", vacuumSchedule="never")
    assert not here.schedules("orders") and task_run(here, VACUUM_TASK)["commits"] == {"OFFLINE": 0}


@pytest.mark.parametrize("written", ["soon", "0 0 0 30 2 ?"])
def test_a_schedule_that_is_none_is_refused(here: Hybrid, written: str) -> None:
    with pytest.raises(SpecError, match="vacuumSchedule"):
        created(here, "OFFLINE", vacuumSchedule=written)
