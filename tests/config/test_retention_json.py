"""How long a half keeps its rows, as Pinot's table configs say it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
SCHEMA, REALTIME, OFFLINE = (
    json.loads((DATA / f"orders_{part}.json").read_text()) for part in ("schema", "table", "offline_table")
)
HOUR = 3_600_000


def parsed(
    realtime: dict[str, Any] | None = None,
    offline: dict[str, Any] | None = None,
    schedule: str | None = None,
    **more: Any,
) -> TableSpec:
    """The orders table with these keys in the segmentsConfig of its halves; `more` goes into the OFFLINE config."""
    documents = [copy.deepcopy(REALTIME), copy.deepcopy(OFFLINE)]
    for document, keys in zip(documents, (realtime, offline), strict=True):
        document["segmentsConfig"].update(keys or {})
        document.update({key: value for key, value in more.items() if document["tableType"] == "OFFLINE"})
        if schedule is not None:
            document["metadata"] = {"customConfigs": {"hybrid.retentionSchedule": schedule}}
    return parse_table(SCHEMA, "s.json", [(document, "t.json") for document in documents])


def pair(unit: Any, value: Any) -> dict[str, Any]:
    return {"retentionTimeUnit": unit, "retentionTimeValue": value}


@pytest.mark.parametrize(
    ("unit", "value", "millis"),
    [
        ("DAYS", "5", 120 * HOUR),
        ("hours", 7, 7 * HOUR),
        ("MINUTES", "90", 90 * 60_000),
        ("SECONDS", "1", 1000),
        ("MILLISECONDS", "3", 3),
        ("MICROSECONDS", "2500", 2),
        ("NANOSECONDS", "1000000", 1),
    ],
)
def test_units_of_java(unit: str, value: Any, millis: int) -> None:
    spec = parsed(offline=pair(unit, value))
    assert dict(spec.retention) == {Half.OFFLINE: millis} and not spec.warnings


def test_each_half_has_its_own() -> None:
    found = parsed(pair("DAYS", "1"), pair("DAYS", "365"))
    assert dict(found.retention) == {Half.REALTIME: 24 * HOUR, Half.OFFLINE: 365 * 24 * HOUR}
    assert found.retention_schedule is not None and found.retention_schedule.text == "0 0 0/6 * * ?"


@pytest.mark.parametrize("keys", [{}, pair(None, None), pair("", "")])
def test_without_it_rows_are_kept_for_ever(keys: dict[str, Any]) -> None:
    found = parsed(keys, keys, schedule="0 0 2 * * ?")
    assert not found.retention and found.retention_schedule is None and not found.warnings


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (pair("DAYS", None), "segmentsConfig.retentionTimeValue: is missing: retentionTimeUnit alone says no time"),
        (pair("", "5"), "segmentsConfig.retentionTimeUnit: is missing"),
        (pair("DAYS", "0"), "retentionTimeValue: '0' is not a whole number from 1 on"),
        (pair("DAYS", "-5"), "retentionTimeValue: '-5' is not a whole number"),
        (pair("DAYS", 0), "retentionTimeValue: 0 is not a whole number from 1 on"),
        (pair("DAYS", "5d"), "retentionTimeValue: '5d' is not a whole number"),
        (pair("DAY", "5"), "retentionTimeUnit: 'DAY' is not known. Did you mean 'DAYS'?"),
        (pair("WEEKS", "5"), "retentionTimeUnit: 'WEEKS' is not known"),
        (pair("NANOSECONDS", "5"), "retentionTimeValue: is shorter than a millisecond"),
    ],
)
def test_a_bad_pair_is_an_error(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parsed(offline=keys)
    assert message in str(caught.value)


def test_what_cannot_have_one_warns() -> None:
    refresh = {"batchIngestionConfig": {"segmentIngestionType": "REFRESH"}}
    found = parsed(pair("DAYS", "1"), pair("DAYS", "5"), ingestionConfig=refresh)
    assert dict(found.retention) == {Half.REALTIME: 24 * HOUR}
    assert [warning.split(": ", 2)[2] for warning in found.warnings] == [
        "with REFRESH each push replaces the data, as in Pinot; nothing is dropped by age."
    ]
    untimed = copy.deepcopy(OFFLINE)
    del untimed["segmentsConfig"]["timeColumnName"]
    untimed["segmentsConfig"].update(pair("DAYS", "5"))
    alone = parse_table(SCHEMA, "s.json", [(untimed, "t.json")])
    assert not alone.retention and "without a timeColumnName rows have no age" in alone.warnings[-1]


@pytest.mark.slow
def test_its_schedule() -> None:
    found = parsed(offline=pair("DAYS", "5"), schedule="0 30 2 * * ?")
    assert found.retention_schedule is not None and found.retention_schedule.text == "0 30 2 * * ?"
    assert not found.warnings
    with pytest.raises(SpecError, match=r"customConfigs\.hybrid\.retentionSchedule: '99' is not a cron expression"):
        parsed(schedule="99")
    assert parsed(offline=pair("DAYS", "5"), schedule=" Never ").retention_schedule is None


def test_schedules_of_tasks_that_no_config_names() -> None:
    def found(realtime: str | None, offline: str | None) -> TableSpec:
        configs = []
        for document, text in ((REALTIME, realtime), (OFFLINE, offline)):
            custom = {} if text is None else {"hybrid.vacuumSchedule": text, "hybrid.optimizeSchedule": text}
            configs.append(({**copy.deepcopy(document), "metadata": {"customConfigs": custom}}, "t.json"))
        return parse_table(SCHEMA, "s.json", configs)

    def told(spec: TableSpec) -> list[str | None]:
        return [cron.text if cron is not None else None for cron in (spec.vacuum_schedule, spec.optimize_schedule)]

    assert told(found(None, None)) == ["0 17 0/6 * * ?", "0 41 * * * ?"]
    assert told(found("0 5 * * *", None)) == told(found(None, "0 5 * * *")) == ["0 5 * * *"] * 2
    assert told(found("never", "never")) == [None, None] and not found("never", None).warnings
    with pytest.raises(SpecError, match=r"hybrid\.vacuumSchedule: 'never' is another one than in t\.json"):
        found("0 5 * * *", "never")
    alone = parse_table(SCHEMA, "s.json", [(OFFLINE, "t.json")])
    assert told(alone) == ["0 17 0/6 * * ?", None]
