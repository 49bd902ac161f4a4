"""Samples of differences and of expectations: instants at both ends of time, on a machine of any zone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hybrid.config.schema_json import parse_schema
from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.commit_context import CommitContext
from hybrid.replace.check_rows import sample_of
from hybrid.replace.diff import differences
from hybrid.runtime.json_values import json_value

pytestmark = pytest.mark.spark

FIELDS = [{"name": "id", "dataType": "INT"}, {"name": "at", "dataType": "TIMESTAMP"}]
FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Tokyo"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone of this process."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_instants_at_both_ends_of_time_are_shown_in_utc(workbench: CommitContext) -> None:
    schema = parse_schema({"schemaName": "x", "dimensionFieldSpecs": FIELDS}, "x.json")
    spec = TableSpec("x", schema, frozenset({Half.OFFLINE}), None, None, None, None, null_handling=True)
    before, after = (
        workbench.spark.sql(
            f"select 1 as id, timestamp_micros({micros}L) as at, 'row' as _hy_op, 0 as bucket, 0L as _hy_offset"
        )
        for micros in (-62_135_596_800_000_000, 253_402_300_799_999_999)
    )
    assert json_value(sample_of(spec, after, "TRUE")) == [{"id": 1, "at": LAST}]
    samples = differences(spec, before, after, "bucket")[0].samples
    shown = {str(row["at"]) for one in samples for row in (one.before, one.after) if row for row in [json_value(row)]}
    assert shown == {FIRST, LAST}
