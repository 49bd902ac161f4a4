"""Time columns inferred from files: formats, the likeliest one, nulls, and buckets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import DataError
from tests.operations.inference.test_files import notes, of_records, types


@pytest.mark.parametrize(
    ("name", "values", "type_", "form"),
    [
        ("ts", [1764045855], "LONG", "1:SECONDS:EPOCH"),
        ("flight_time", [800000000], "LONG", "1:SECONDS:EPOCH"),
        ("x", [1764045855732], "LONG", "1:MILLISECONDS:EPOCH"),
        ("x", [1764045855732000], "LONG", "1:MICROSECONDS:EPOCH"),
        ("x", [1764045855732000123], "LONG", "1:NANOSECONDS:EPOCH"),
        ("ts", ["1764045855732"], "LONG", "1:MILLISECONDS:EPOCH"),
        ("day", [20251124], "LONG", "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd"),
        ("x", ["2025-11-24T10:00:00Z", "2025-11-24 10:00:00.123+01:00"], "TIMESTAMP", "TIMESTAMP"),
        ("x", ["2025-11-24"], "STRING", "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd"),
        ("x", ["24.11.2025 10:11:12"], "STRING", "1:SECONDS:SIMPLE_DATE_FORMAT:dd.MM.yyyy HH:mm:ss"),
        ("x", ["24/Nov/2025:10:11:12 +0100"], "STRING", "1:SECONDS:SIMPLE_DATE_FORMAT:dd/MMM/yyyy:HH:mm:ss Z"),
        ("x", ["13/01/2025", "01/02/2025"], "STRING", "1:DAYS:SIMPLE_DATE_FORMAT:dd/MM/yyyy"),
    ],
)
def test_formats_of_times(tmp_path: Path, name: str, values: list[Any], type_: str, form: str) -> None:
    found = of_records(tmp_path, [{name: value, "other": "a"} for value in values], without_time=False)
    assert (found.time_column, types(found)[name], found.rejected) == (name, type_, 0)
    (field,) = found.schema["dateTimeFieldSpecs"]
    assert field["format"] == form


def test_a_pattern_that_may_be_another_is_named(tmp_path: Path) -> None:
    found = of_records(tmp_path, [{"day": "01/02/2025"}], without_time=False)
    assert "fit the pattern dd/MM/yyyy and also MM/dd/yyyy" in notes(found)


def test_the_likeliest_time_is_taken_and_others_are_named(tmp_path: Path) -> None:
    moment = 1764045855732
    row = {"updated_at": moment, "created_at": moment, "delivered": moment, "n": 1}
    found = of_records(tmp_path, [row, {**row, "delivered": None}], without_time=False)
    assert found.time_column == "created_at" and "'updated_at', 'delivered': --time" in notes(found)
    assert of_records(tmp_path, [row], time_column="updated_at").time_column == "updated_at"


def test_ids_are_no_times(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No column of .* looks like a time. Columns are: id, n") as error:
        of_records(tmp_path, [{"id": 1764045855, "n": 3}], without_time=False)
    assert error.value.hint is not None and "--no-time" in error.value.hint
    found = of_records(tmp_path, [{"id": 1764045855, "n": 3}])
    assert found.time_column is None and "moves by offsets" not in notes(found) and "no time column" in notes(found)
    assert of_records(tmp_path, [{"id": 1764045855, "n": 3}], time_column="id").time_column == "id"


def test_a_time_with_nulls_is_not_taken_unasked(tmp_path: Path) -> None:
    records = [{"ts": 1764045855732, "a": 1}, {"a": 2}]
    with pytest.raises(DataError, match=r"time in every record: 'ts' \(null in 1\)"):
        of_records(tmp_path, records, without_time=False)
    found = of_records(tmp_path, records, time_column="ts")
    assert found.rejected == 1 and "line 2: Column 'ts' is missing or null" in notes(found)


@pytest.mark.parametrize(("days", "bucket"), [(1, "1h"), (3, "1d"), (400, "1d"), (500, "7d"), (4000, "30d")])
def test_the_bucket_follows_the_span(tmp_path: Path, days: int, bucket: str) -> None:
    begin = 1_500_000_000_000
    records = [{"ts": begin}, {"ts": begin + days * 86_400_000}]
    found = of_records(tmp_path, records, without_time=False, topic="t")
    assert found.realtime is not None
    (task,) = found.realtime["task"]["taskTypeConfigsMap"].values()
    assert task == {"bucketTimePeriod": bucket, "schedule": "0 10 * * * ?"}
    assert f"Buckets are {bucket} long" in notes(found)
    chosen = of_records(tmp_path, records, without_time=False, topic="t", bucket="12h")
    assert chosen.realtime is not None and "12h" in json.dumps(chosen.realtime)
