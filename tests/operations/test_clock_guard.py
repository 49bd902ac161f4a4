"""Tasks that go by the clock do nothing while it is doubted, and say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.run_record import RunOutcome
from hybrid.clock import ClockReading, wall_clock_ms
from hybrid.config.settings import load_settings
from hybrid.config.table_documents import TableDocuments
from hybrid.doctor.examine import examine
from hybrid.errors import ConflictError
from hybrid.home.home import ServerTask
from hybrid.home.input_access import rules_of
from hybrid.operations import clock_guard
from hybrid.operations.clock_guard import doubt_of, is_clock_believed, observe_clock
from hybrid.progress import Silent
from hybrid.rpc.verbs import VERBS

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
DAY = 86_400_000
TASKS = ("RetentionManager", "VacuumTask")


class Clock:
    """The machine's clocks, as they are and ahead of that."""

    def __init__(self) -> None:
        self.ahead_ms = self.ran_ms = 0

    def __call__(self) -> ClockReading:
        return ClockReading(wall_clock_ms() + self.ahead_ms, self.ran_ms, "a")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    shown = Clock()
    monkeypatch.setattr(clock_guard, "read_clock", shown)
    return shown


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hybrid:
    from hybrid.kafka.streams import StreamView
    from hybrid.operations.tables import create as creation

    monkeypatch.setattr(creation, "view_stream", lambda *_: StreamView({}, {}, {}))
    found = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    offline = json.loads((DATA / "orders_offline_table.json").read_text())
    offline["segmentsConfig"] |= {"retentionTimeUnit": "DAYS", "retentionTimeValue": "30"}
    (tmp_path / "offline.json").write_text(json.dumps(offline))
    configs = [DATA / "orders_table.json", tmp_path / "offline.json"]
    found.create_table(TableDocuments.read(DATA / "orders_schema.json", configs))
    return found


def run_task(home: Hybrid, name: str, **options: object) -> str:
    return str(VERBS["task_run"].call(home, table="orders", type=name, **options)["sentence"])


@pytest.mark.process
def test_what_goes_by_a_clock_that_has_leapt_does_nothing_and_says_so(home: Hybrid, clock: Clock) -> None:
    """23: the run fails with the sentence, the check-up warns."""
    assert is_clock_believed(home.context)
    clock.ahead_ms = 3650 * DAY
    for name in TASKS:
        with pytest.raises(ConflictError, match=r"clock is 3650 days ahead: it says .* did nothing\.") as caught:
            run_task(home, name)
        assert "--yes" in caught.value.hint
    run = home.runs("orders")[0]
    assert run.state == "FAILED" and "3650 days ahead" in str(run.result)
    finding = next(one for one in examine(home) if one.check == "clock")
    assert "3650 days ahead" in finding.message
    clock.ahead_ms = 0
    assert "Nothing to" in run_task(home, "RetentionManager")
    assert doubt_of(home.context) is None and not [one for one in examine(home) if one.check == "clock"]


@pytest.mark.slow
def test_a_person_may_believe_it(home: Hybrid, clock: Clock) -> None:
    """23: the explicit yes; from then on schedules go by it, too."""
    observe_clock(home.context)
    clock.ahead_ms = 90 * DAY
    assert "Nothing to remove" in run_task(home, "VacuumTask", dry_run=True), "it only looks"
    with pytest.raises(ConflictError):
        run_task(home, "VacuumTask")
    assert "Nothing to remove" in run_task(home, "VacuumTask", yes=True)
    assert "Nothing to drop" in run_task(home, "RetentionManager")


def test_a_clock_that_was_handed_in_is_believed(home: Hybrid) -> None:
    given = Hybrid(home.settings, Silent(), now_ms=lambda: wall_clock_ms() + 3650 * DAY)
    assert observe_clock(given.context) is None and is_clock_believed(given.context)


def test_only_a_schedules_run_is_bounded_to_a_share(home: Hybrid) -> None:
    assert home.context.share_max is None
    for scheduled, share in ((True, 0.5), (False, None)):
        task = ServerTask("run-1", RunOutcome(), rules_of(home.settings, "admin"), scheduled)
        assert home.context.for_task(task, Silent()).share_max == share
