"""How segments of OFFLINE are merged, as Pinot's table configs say it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.table_config import Aggregation, MergeLevel, MergeType, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.table.names import times_in_name

DATA = Path(__file__).resolve().parents[2] / "data"
HOUR, DAY = 3_600_000, 86_400_000
DAILY = {"1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "2d"}


def parsed(task: dict[str, Any], recipe: str = "orders", where: str = "OFFLINE", **offline: Any) -> TableSpec:
    """The table of a recipe with this MergeRollupTask; `offline` goes into its OFFLINE config."""
    schema, *configs = (
        json.loads((DATA / recipe / f"orders_{part}.json").read_text()) for part in ("schema", "table", "offline_table")
    )
    for config in map(copy.deepcopy, configs):
        tasks = config.setdefault("task", {}).setdefault("taskTypeConfigsMap", {})
        if config["tableType"] == where:
            tasks[MERGE_TASK] = task
        if config["tableType"] == "OFFLINE":
            config.update(offline)
        configs[config["tableType"] == "OFFLINE"] = config
    return parse_table(schema, "s.json", [(config, "t.json") for config in configs])


def test_levels_from_short_to_long_buckets() -> None:
    hourly = {"1hour.bucketTimePeriod": "1h", "1hour.bufferTimePeriod": "3h", "1hour.mergeType": "dedup"}
    bounds = {
        "1day.maxNumRecordsPerSegment": "1000",
        "1day.maxNumRecordsPerTask": 7000,
        "1day.maxNumParallelBuckets": "3",
    }
    spec = parsed({**DAILY, **bounds, **hourly, "schedule": "0 15 * * * ?", "tableMaxNumTasks": "5"})
    assert spec.merge_levels == (
        MergeLevel(HOUR, 3 * HOUR, MergeType.DEDUP, name="1hour"),
        MergeLevel(DAY, 2 * DAY, MergeType.CONCAT, 1000, 7000, name="1day"),
    )
    assert spec.merge_schedule is not None and spec.merge_schedule.text == "0 15 * * * ?"
    assert not spec.warnings


def test_without_the_task_nothing_is_merged() -> None:
    spec = parsed(DAILY, where="neither")
    assert (spec.merge_levels, spec.merge_schedule) == ((), None)


def test_upsert_tables_keep_the_latest_row_of_a_key() -> None:
    assert parsed(DAILY, "orders_upsert").merge_levels[0].merge_type is MergeType.LATEST
    assert parsed({**DAILY, "1day.mergeType": "CONCAT"}, "orders_upsert").merge_levels[0].merge_type is MergeType.CONCAT


@pytest.mark.parametrize(
    ("task", "place", "words"),
    [
        ({}, "", "names no level"),
        ({"schedule": "0 15 * * * ?"}, "", "names no level"),
        ({"1day.bucketTimePeriod": "1d"}, ".1day.bufferTimePeriod", "is missing"),
        ({"1day.bufferTimePeriod": "1d"}, ".1day.bucketTimePeriod", "is missing"),
        ({**DAILY, "1day.bucketTimePeriod": "0d"}, ".1day.bucketTimePeriod", "too short"),
        ({**DAILY, "1day.mergeType": "sum"}, ".1day.mergeType", "'sum' is not known"),
        ({**DAILY, "1day.roundBucketTimePeriod": "7h"}, ".1day.roundBucketTimePeriod", "does not divide"),
        ({**DAILY, "1day.amount.aggregationType": "sum"}, ".1day.amount.aggregationType", "'amount.aggregationType'"),
        ({**DAILY, "amount.aggregationType": "median"}, ".amount.aggregationType", "'median' is not known"),
        ({**DAILY, "amounts.aggregationType": "sum"}, ".amounts.aggregationType", "Did you mean 'amount'?"),
        ({**DAILY, "amount.aggregationType": "count"}, ".amount.aggregationType", "'amount' is FLOAT"),
        ({**DAILY, "1day.maxNumRecordsPerTask": "0"}, ".1day.maxNumRecordsPerTask", "from 1 on"),
        ({**DAILY, "schedule": "often"}, ".schedule", "often"),
    ],
)
def test_wrong_tasks_are_refused_where_they_stand(task: dict[str, Any], place: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        parsed(task)
    message = str(caught.value)
    assert f"t.json: task.taskTypeConfigsMap.{MERGE_TASK}{place}: " in message and words in message


def test_tables_that_cannot_have_it() -> None:
    ingestion = {"batchIngestionConfig": {"segmentIngestionType": "REFRESH", "segmentIngestionFrequency": "DAILY"}}
    with pytest.raises(SpecError, match="cannot run on a REFRESH table"):
        parsed(DAILY, ingestionConfig=ingestion)
    schema = {"schemaName": "plain", "dimensionFieldSpecs": [{"name": "a", "dataType": "INT"}]}
    config = {"tableName": "plain", "tableType": "OFFLINE", "task": {"taskTypeConfigsMap": {MERGE_TASK: DAILY}}}
    with pytest.raises(SpecError, match="segments are merged by buckets of time"):
        parse_table(schema, "s.json", [(config, "t.json")])


def test_keys_without_effect_warn() -> None:
    spec = parsed({**DAILY, "1day.bucketPeriod": "1d", "skedule": "x"})
    assert [warning.split(": ")[1] for warning in spec.warnings] == [
        f"task.taskTypeConfigsMap.{MERGE_TASK}.skedule",
        f"task.taskTypeConfigsMap.{MERGE_TASK}.1day.bucketPeriod",
    ]
    (warning,) = parsed(DAILY, where="REALTIME").warnings
    assert warning.endswith(f"{MERGE_TASK}: it has no effect here; write it in the OFFLINE config.")


def test_aggregations_need_a_level_that_rolls_up() -> None:
    (warning,) = parsed({**DAILY, "amount.aggregationType": "MAX"}).warnings
    assert warning.endswith(".amount.aggregationType: has no effect without a level with mergeType 'rollup'.")


def test_names_of_merged_segments() -> None:
    spec = parsed({**DAILY, "1day.segmentNamePrefix": "days", "1day.segmentNamePostfix": "v2"})
    (level,) = spec.merge_levels
    assert not spec.warnings and (level.name_prefix, level.name_postfix) == ("days", "v2")
    assert times_in_name(spec, "days_1632434400000_1632435400000_v2_0") == (1632434400000, 1632435400000)


ROLLED = {**DAILY, "1day.mergeType": "rollup", "1day.roundBucketTimePeriod": "1h"}


def test_levels_roll_up_and_round() -> None:
    (level,) = parsed(ROLLED).merge_levels
    assert (level.merge_type, level.round_ms, level.aggregations) == (
        MergeType.ROLLUP, HOUR, (("amount", Aggregation.SUM),),
    )  # fmt: skip
    (level,) = parsed({**ROLLED, "amount.aggregationType": "MAX"}).merge_levels
    assert level.aggregations == (("amount", Aggregation.MAX),)
    assert not parsed({**ROLLED, "amount.aggregationType": "MAX"}).warnings


def test_what_was_rounded_is_rounded_to_multiples_of_that() -> None:
    hours = {"1hour.bucketTimePeriod": "1h", "1hour.bufferTimePeriod": "1h", "1hour.roundBucketTimePeriod": "20m"}
    fits = {**hours, **DAILY, "1day.roundBucketTimePeriod": "1h"}
    assert [level.round_ms for level in parsed(fits).merge_levels] == [HOUR // 3, HOUR]
    assert [level.round_ms for level in parsed({**hours, **DAILY}).merge_levels] == [HOUR // 3, None]
    with pytest.raises(SpecError, match=r"1day\.roundBucketTimePeriod: '30m' is no multiple of what has rounded"):
        parsed({**fits, "1day.roundBucketTimePeriod": "30m"})


def test_upsert_tables_are_not_rolled_up_nor_rounded() -> None:
    with pytest.raises(SpecError, match="'rollup' cannot be honoured on an upsert table"):
        parsed({**DAILY, "1day.mergeType": "rollup"}, "orders_upsert")
    with pytest.raises(SpecError, match="'1h' cannot be honoured on an upsert table"):
        parsed({**DAILY, "1day.roundBucketTimePeriod": "1h"}, "orders_upsert")
