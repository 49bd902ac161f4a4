"""How moves round times, roll rows up and name segments, as Pinot's table configs say it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.table_config import Aggregation, MergeType, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import SpecError
from hybrid.schema.rounding import rounded_down, why_not_rounded
from hybrid.schema.timeformat import MIN_MS, TimeFormat
from hybrid.schema.types import DataType

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
SCHEMA, REALTIME, OFFLINE = (
    json.loads((DATA / f"orders_{part}.json").read_text()) for part in ("schema", "table", "offline_table")
)
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ROLLUP = {"mergeType": "rollup"}


def parsed(
    task: dict[str, Any], metrics: dict[str, str] | None = None, merges: dict[str, Any] | None = None, **ts: Any
) -> TableSpec:
    """The recipe's table with these keys of the move, metrics by type, merges, and keys of its time field."""
    schema, realtime, offline = copy.deepcopy([SCHEMA, REALTIME, OFFLINE])
    realtime["task"]["taskTypeConfigsMap"][MOVE_TASK].update(task)
    schema["metricFieldSpecs"] += [{"name": name, "dataType": kind} for name, kind in (metrics or {}).items()]
    schema["dateTimeFieldSpecs"][0].update(ts)
    if merges:
        offline["task"] = {"taskTypeConfigsMap": {MERGE_TASK: merges}}
    return parse_table(schema, "s.json", [(realtime, "r.json"), (offline, "o.json")])


def test_a_move_rolls_up_rounds_and_names() -> None:
    metrics = {"n": "LONG", "price": "DOUBLE", "price_sum": "BIG_DECIMAL", "price_count": "INT"}
    task = {
        **ROLLUP, "roundBucketTimePeriod": "1m", "amount.aggregationType": "MAX", "n.aggregationType": "count",
        "price.aggregationType": "avg", "segmentNamePrefix": "web-sales_1", "segmentNamePostfix": "v2",
    }  # fmt: skip
    spec = parsed(task, metrics)
    move = spec.move
    assert move is not None and not spec.warnings
    assert (move.merge_type, move.round_ms, move.name_prefix, move.name_postfix) == (
        MergeType.ROLLUP, MINUTE, "web-sales_1", "v2",
    )  # fmt: skip
    assert move.aggregations == (
        ("amount", Aggregation.MAX), ("n", Aggregation.COUNT), ("price", Aggregation.AVG),
        ("price_sum", Aggregation.SUM), ("price_count", Aggregation.SUM),
    )  # fmt: skip
    assert (spec.step_ms, move.step_ms, move.keeps_rows) == (MINUTE, MINUTE, False)


def test_metrics_are_summed_unless_something_else_is_said() -> None:
    move = parsed(ROLLUP).move
    assert move is not None and move.aggregations == (("amount", Aggregation.SUM),)
    assert move.round_ms is None and move.step_ms == 1 and not move.keeps_rows


def test_an_aggregation_without_a_rollup_is_said_to_have_no_effect() -> None:
    spec = parsed({"amount.aggregationType": "max"})
    (warning,) = spec.warnings
    assert warning.endswith(".amount.aggregationType: has no effect without mergeType 'rollup'.")
    assert spec.move is not None and spec.move.keeps_rows


@pytest.mark.parametrize(
    ("task", "metrics", "place", "words"),
    [
        (ROLLUP, {"tags": "STRING"}, "mergeType", "cannot combine the metric 'tags', which is STRING"),
        (ROLLUP, {"raw": "BYTES"}, "mergeType", "cannot combine the metric 'raw', which is BYTES"),
        ({"raw.aggregationType": "max"}, {"raw": "BYTES"}, "raw.aggregationType", "is BYTES and cannot be combined"),
        ({"amount.aggregationType": "distinctCountHLL"}, {}, "amount.aggregationType", "Known are: sum, min, max"),
        ({"amout.aggregationType": "sum"}, {}, "amout.aggregationType", "Did you mean 'amount'?"),
        ({"order_id.aggregationType": "sum"}, {}, "order_id.aggregationType", "is a dimension field"),
        ({"amount.aggregationType": "count"}, {}, "amount.aggregationType", "a count is a whole number"),
        ({"n.aggregationType": "avg"}, {"n": "LONG"}, "n.aggregationType", "Make it DOUBLE or BIG_DECIMAL"),
        ({"amount.aggregationType": "avg"}, {}, "amount.aggregationType", "has no metric 'amount_sum' of numbers"),
        ({"amount.aggregationType": "avg"}, {"amount_sum": "DOUBLE", "amount_count": "DOUBLE"},
         "amount.aggregationType", "no metric 'amount_count' of numbers that are whole"),
        ({"amount.aggregationType": "avg", "amount_sum.aggregationType": "max"},
         {"amount_sum": "DOUBLE", "amount_count": "LONG"}, "amount_sum.aggregationType", "it is a sum"),
        ({"roundBucketTimePeriod": "7m"}, {}, "roundBucketTimePeriod", "'7m' does not divide the bucketTimePeriod"),
        ({"roundBucketTimePeriod": "1d"}, {}, "roundBucketTimePeriod", "'1d' does not divide the bucketTimePeriod"),
        ({"roundBucketTimePeriod": "0s"}, {}, "roundBucketTimePeriod", "too short"),
        ({"roundBucketTimePeriod": 60}, {}, "roundBucketTimePeriod", "is not a period"),
        ({"segmentNamePrefix": "a/b"}, {}, "segmentNamePrefix", "letters, digits, '_' and '-'"),
        ({"segmentNamePostfix": "ä"}, {}, "segmentNamePostfix", "letters, digits, '_' and '-'"),
        ({"segmentNamePrefix": "x" * 61}, {}, "segmentNamePrefix", "at most 60"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_where_it_stands(
    task: dict[str, Any], metrics: dict[str, str], place: str, words: str
) -> None:
    with pytest.raises(SpecError) as caught:
        parsed({**ROLLUP, **task}, metrics)
    message = str(caught.value)
    assert f"r.json: task.taskTypeConfigsMap.{MOVE_TASK}.{place}: " in message and words in message


DAILY = {"1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "2d", "1day.mergeType": "rollup"}


def test_merges_combine_metrics_as_moves_do_and_add_up_what_these_counted() -> None:
    task = {**ROLLUP, "amount.aggregationType": "min", "n.aggregationType": "count"}
    (level,) = parsed(task, {"n": "LONG"}, DAILY).merge_levels
    assert level.aggregations == (("amount", Aggregation.MIN), ("n", Aggregation.SUM))
    (level,) = parsed(task, {"n": "LONG"}, {**DAILY, "n.aggregationType": "count"}).merge_levels
    assert level.aggregations == (("amount", Aggregation.MIN), ("n", Aggregation.SUM))


@pytest.mark.parametrize(
    ("task", "merges", "words"),
    [
        ({}, {"n.aggregationType": "count"}, "'count' is for rows that a move has counted"),
        ({**ROLLUP, "n.aggregationType": "max"}, {"n.aggregationType": "count"}, "for rows that a move has counted"),
        ({**ROLLUP, "n.aggregationType": "max"}, {"n.aggregationType": "sum"}, "'sum' is not 'max', which moves make"),
        ({"roundBucketTimePeriod": "1h"}, {"1day.roundBucketTimePeriod": "30m"}, "no multiple of what has rounded"),
    ],
)
def test_merges_that_would_undo_what_moves_did(task: dict[str, Any], merges: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        parsed(task, {"n": "LONG"}, {**DAILY, **merges})


@pytest.mark.parametrize(
    ("kind", "form", "period", "why"),
    [
        (DataType.LONG, "1:DAYS:EPOCH", HOUR, None),
        (DataType.LONG, "1:MINUTES:EPOCH", 90_000, "counts in steps"),
        (DataType.LONG, "7:MINUTES:EPOCH", HOUR, "counts in steps"),
        (DataType.TIMESTAMP, "TIMESTAMP", 7, None),
        (DataType.STRING, "SIMPLE_DATE_FORMAT|yyyy-MM", DAY, None),
        (DataType.STRING, "SIMPLE_DATE_FORMAT|yyyy-MM", 7 * DAY, "cannot write such times"),
        (DataType.STRING, "SIMPLE_DATE_FORMAT|yyyy-MM-dd", 7 * DAY, None),
        (DataType.STRING, "SIMPLE_DATE_FORMAT|yyyy-MM-dd", 36 * HOUR, "cannot write such times"),
        (DataType.STRING, "SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm:ss.S", 40, "cannot write such times"),
        (DataType.STRING, "SIMPLE_DATE_FORMAT|yyyy-MM-dd|Europe/Berlin", DAY, "is written in the zone Europe/Berlin"),
    ],
)
def test_columns_that_can_hold_rounded_times(kind: DataType, form: str, period: int, why: str | None) -> None:
    found = why_not_rounded(TimeFormat.parse(form, "s", "f", kind), period)
    assert found is None if why is None else found is not None and why in found


def test_a_column_that_cannot_hold_them_is_named() -> None:
    with pytest.raises(SpecError, match=r"'1h' cannot be honoured: the time column 'ts' counts in steps"):
        parsed({"roundBucketTimePeriod": "1h"}, format="7:MINUTES:EPOCH")


def test_rounded_down() -> None:
    assert [rounded_down(time, 10) for time in (-11, -10, -1, 0, 9, 10)] == [-20, -10, -10, 0, 0, 10]
    assert rounded_down(MIN_MS + 1, 7 * DAY) == MIN_MS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (ROLLUP, "mergeType: 'rollup' would change what deletes leave"),
        ({"mergeType": "dedup"}, "mergeType: 'dedup' would change what deletes leave"),
        ({"roundBucketTimePeriod": "1m"}, "roundBucketTimePeriod: '1m' would change what deletes leave"),
    ],
)
def test_where_deletes_take_equal_rows_away_rows_stay_as_they_came(changes: dict[str, Any], words: str) -> None:
    for half in ("r", "o"):
        schema, realtime, offline = copy.deepcopy([SCHEMA, REALTIME, OFFLINE])
        del realtime["tableIndexConfig"]["streamConfigs"]
        config = {"bootstrap.servers": "k:9092", "topic": "orders", "start_from": "earliest"}
        form = {"name": "json", "config": {"update_format": "insert_delete"}}
        realtime["connectors"] = [{"transport": {"name": "kafka_input", "config": config}, "format": form}]
        if half == "r":
            realtime["task"]["taskTypeConfigsMap"][MOVE_TASK].update(changes)
        else:
            level = {**DAILY, "1day.mergeType": "concat", **{f"1day.{key}": value for key, value in changes.items()}}
            offline["task"] = {"taskTypeConfigsMap": {MERGE_TASK: level}}
        with pytest.raises(SpecError) as caught:
            parse_table(schema, "s.json", [(realtime, "r.json"), (offline, "o.json")])
        assert str(caught.value).startswith(f"{half}.json: ") and words in str(caught.value)
