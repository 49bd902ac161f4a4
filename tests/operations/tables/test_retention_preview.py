"""`table apply` says what a changed retention drops, and when. Needs no JVM."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.move.retention import expiry
from hybrid.operations.tables import retention_preview
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from hybrid.table.boundary import Boundary
from hybrid.table.state import Consuming
from tests.query.halves import KEY, Halves
from tests.serve.app import CONSUMING, OFFLINE, REALTIME, SCHEMA, SEALED, row

DAY_MS = 86_400_000
NOW_MS = 10 * DAY_MS
BY_HAND = "hybrid task run orders RetentionManager"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Hybrid]:
    """Orders at day 10. OFFLINE has segments of days 1, 2 and 9; REALTIME moved rows of day 1, late rows of day 2."""
    made = Hybrid(load_settings(home=tmp_path / "home"), Silent(), lambda: NOW_MS)
    spec = made.validate(TableDocuments((SCHEMA, "schema"), [(REALTIME, "realtime"), (OFFLINE, "offline")]))
    halves = Halves.create(made.settings.warehouse, spec)
    rows = [row(1, DAY_MS, 0), row(2, 2 * DAY_MS, 3, "late"), row(4, 9 * DAY_MS, 4, CONSUMING)]
    consuming = Consuming(CONSUMING, 1, 2, 2, 100, NOW_MS)
    halves.commit_realtime(rows, offsets={KEY: 5}, consuming={KEY: consuming}, sequences={KEY: 2})
    for number, day in enumerate((1, 2, 9)):
        halves.commit_offline([row(number, day * DAY_MS, number, f"day{day}")], Boundary(9 * DAY_MS, {KEY: 2}))
    made.context.definitions.add(_definition(spec))
    yield made
    made.close()


def documents(**retention: Any) -> tuple[dict[str, Any], ...]:
    """The documents with this retention of OFFLINE (`days`) and REALTIME (`live`), and a schedule."""
    offline, realtime = copy.deepcopy(OFFLINE), copy.deepcopy(REALTIME)
    for config, days in ((offline, retention.get("days")), (realtime, retention.get("live"))):
        if days is not None:
            config["segmentsConfig"] |= {"retentionTimeUnit": "DAYS", "retentionTimeValue": str(days)}
    if "schedule" in retention:
        for config in (offline, realtime):
            config["metadata"] = {"customConfigs": {"hybrid.retentionSchedule": retention["schedule"]}}
    return SCHEMA, realtime, offline


def preview(home: Hybrid, **retention: Any) -> str:
    made = home.apply_table(*documents(**retention), dry_run=True)
    _, found, words = made.sentence.partition("Nothing was changed.")
    assert found and made.changes
    return words.strip()


@pytest.mark.slow
def test_segments_rows_and_times(home: Hybrid) -> None:
    assert preview(home, days=3) == (
        "Retention of OFFLINE (3d) will drop 2 of 3 segments with 2 rows, in 2 runs from 1970-01-11T06:00:00Z to "
        f"1970-01-11T12:00:00Z on a server, or at once by: {BY_HAND}."
    )
    assert f"1 of 3 segments with 1 row, at 1970-01-11T06:00:00Z on a server, or at once by: {BY_HAND}." in preview(
        home, days=8
    )


@pytest.mark.slow
def test_nothing_is_expired_yet(home: Hybrid) -> None:
    assert preview(home, days=30) == (
        "Retention of OFFLINE (30d) drops nothing now; the first of 3 segments, of 1 row, expires at "
        "1970-02-01T00:00:00.001Z."
    )


@pytest.mark.slow
def test_realtime_rows_that_have_not_moved_wait(home: Hybrid) -> None:
    words = preview(home, live=3)
    assert words.startswith("Retention of REALTIME (3d) will drop 2 of 3 segments with 2 rows, at 1970-01-11T06:00:00Z")
    assert "1 of them is not sealed, or have rows" not in words
    assert words.endswith("1 of them waits: it is not sealed, or has rows that have not moved yet.")
    assert SEALED in {segment.name for segment in home.table("orders").segments()}


@pytest.mark.slow
def test_both_halves_and_no_schedule(home: Hybrid) -> None:
    words = preview(home, days=3, live=3, schedule="never")
    assert words.count(f"when somebody runs: {BY_HAND}.") == 2 and "OFFLINE" in words and "REALTIME" in words


@pytest.mark.slow
def test_a_retention_that_goes_and_what_is_no_retention(home: Hybrid) -> None:
    changed = home.apply_table(*documents(days=3))
    assert changed.sentence.startswith("Changed table 'orders': 2 changes. Retention of OFFLINE (3d) will drop 2 of 3")
    assert preview(home) == "OFFLINE keeps its rows for ever: retention drops none any more."
    schema, realtime, offline = documents(days=3)
    realtime["task"]["taskTypeConfigsMap"]["RealtimeToOfflineSegmentsTask"]["bucketTimePeriod"] = "4h"
    assert "Retention" not in home.apply_table(schema, realtime, offline, dry_run=True).sentence
    assert home.table("orders").segments(), "nothing is dropped by it"


@pytest.mark.slow
def test_it_is_said_through_a_server_and_on_the_command_line(
    home: Hybrid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, realtime, offline = documents(days=3)
    files = []
    for name, document in (("schema", schema), ("realtime", realtime), ("offline", offline)):
        files += ["--schema" if name == "schema" else "--config", str(tmp_path / f"{name}.json")]
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    assert run(["table", "apply", *files, "--dry-run", "--home", str(home.home)]) == 0
    assert "Retention of OFFLINE (3d) will drop 3 of 3 segments with 3 rows" in capsys.readouterr().err, "as of today"


@pytest.mark.slow
def test_segments_without_times(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = expiry.segments_by_age

    def segments_by_age(*given: Any) -> Any:
        return [replace(one, high=None) if one.name == "day9" else one for one in real(*given)]

    monkeypatch.setattr(retention_preview, "segments_by_age", segments_by_age)
    assert preview(home, days=3).endswith("1 segment stays, because its files do not tell its times.")
    assert preview(home, days=30).endswith("1 segment stays, because its files do not tell its times.")
