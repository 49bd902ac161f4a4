"""One form of times in every output: UTC ISO 8601 with a Z, a fraction only where there is one."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from hybrid.cli.cells import text
from hybrid.cli.output import emit
from hybrid.runtime.json_values import json_document, json_value, shown_stamps, stamp, utc

AT = datetime(2026, 11, 4, 11, 30)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (AT, "2026-11-04T11:30:00Z"),
        (AT.replace(tzinfo=UTC), "2026-11-04T11:30:00Z"),
        (AT.replace(tzinfo=timezone(timedelta(hours=2))), "2026-11-04T09:30:00Z"),
        (AT.replace(microsecond=120_000), "2026-11-04T11:30:00.120Z"),
        (AT.replace(microsecond=1), "2026-11-04T11:30:00.000001Z"),
        (datetime(1, 1, 1), "0001-01-01T00:00:00Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_moment(value: datetime, shown: str) -> None:
    assert json_value(value) == shown == text(value)
    assert json_value([value, {"a": value}]) == [shown, {"a": shown}]
    row = json.dumps({"t": shown})
    for form, printed in (("json", f"[{row}]"), ("csv", f"t\n{shown}"), ("jsonl", row)):
        out = io.StringIO()
        emit([{"t": value}], ["t"], fmt=form, stream=out)
        assert out.getvalue().strip() == printed


def test_kept_times_sort_and_are_shown_alike() -> None:
    kept = [stamp(millis) for millis in (0, 1, 999, 1000, 253_402_300_799_999)]
    assert kept == sorted(kept) and {len(one) for one in kept} == {24}
    assert [utc(1000), utc(1001)] == ["1970-01-01T00:00:01Z", "1970-01-01T00:00:01.001Z"]
    for older in ("2021-11-21T10:38:00.000+00:00", "2021-11-21T10:38:00.000Z", "2021-11-21T10:38:00Z"):
        assert shown_stamps({"created_at": older, "reason": older}) == {
            "created_at": "2021-11-21T10:38:00Z", "reason": older,
        }  # fmt: skip
    assert json_document({"finished_at": None, "samples": [{"at": "2021-11-21T10:38:00.000Z"}]}) == {
        "finished_at": None, "samples": [{"at": "2021-11-21T10:38:00.000Z"}],
    }, "rows of users stay"  # fmt: skip
