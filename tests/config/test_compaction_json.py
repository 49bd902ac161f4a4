"""When superseded rows are left out, as Pinot's table configs say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.table_config import CompactionConfig, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError

DATA = Path(__file__).resolve().parents[2] / "data"
DAY = 86_400_000
SOME = {"invalidRecordsThresholdPercent": "30"}


def parsed(
    task: dict[str, Any], recipe: str = "orders_upsert", where: tuple[str, ...] = ("REALTIME",), alone: bool = False
) -> TableSpec:
    """The table of a recipe with this task in some of its configs; `alone`: without its OFFLINE config."""
    schema, *configs = (
        json.loads((DATA / recipe / f"orders_{part}.json").read_text()) for part in ("schema", "table", "offline_table")
    )
    for config in configs:
        if config["tableType"] in where:
            config.setdefault("task", {}).setdefault("taskTypeConfigsMap", {})[COMPACTION_TASK] = task
    return parse_table(schema, "s.json", [(config, "t.json") for config in (configs[:1] if alone else configs)])


def test_settings_and_what_they_are_without_being_given() -> None:
    full = {**SOME, "invalidRecordsThresholdCount": "100000", "bufferTimePeriod": "1d", "schedule": "0 15 * * * ?"}
    found = parsed({**full, "validDocIdsType": "SNAPSHOT"})
    assert found.compaction is not None and not found.warnings
    assert found.compaction == CompactionConfig(DAY, 30, 100_000, found.compaction.schedule)
    assert found.compaction.schedule is not None and found.compaction.schedule.text == "0 15 * * * ?"
    assert parsed(SOME, where=("OFFLINE",)).compaction == CompactionConfig(7 * DAY, 30, 1)
    assert parsed({"invalidRecordsThresholdCount": 5}).compaction == CompactionConfig(7 * DAY, 0, 5)
    assert parsed(SOME, where=()).compaction is None
    (warning,) = parsed({**SOME, "invalidRecords": 1}).warnings
    assert f"{COMPACTION_TASK}.invalidRecords: this key is not implemented" in warning


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        ({}, {}, "invalidRecordsThresholdPercent: is missing, and invalidRecordsThresholdCount too"),
        ({"invalidRecordsThresholdPercent": "101"}, {}, "is more than 100"),
        ({**SOME, "bufferTimePeriod": "soon"}, {}, "soon"),
        (SOME, {"recipe": "orders"}, "needs upsert"),
        (SOME, {"where": ("REALTIME", "OFFLINE")}, "stands in t.json already"),
        (SOME, {"alone": True}, "needs an OFFLINE half"),
    ],
)
def test_wrong_tasks_are_refused(task: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        parsed(task, **options)
    assert COMPACTION_TASK in str(caught.value) and words in str(caught.value)
