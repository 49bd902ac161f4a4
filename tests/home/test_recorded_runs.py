"""`Home.run_recorded`: a run ends with its report; a dry run leaves no record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.api import Hybrid
from hybrid.config.settings import load_settings
from hybrid.errors import DataError, StoreError
from hybrid.home.home import Home
from hybrid.lake.workers import fault_in_text
from hybrid.progress import Silent
from hybrid.rpc.verbs import run_hints


@dataclass(frozen=True)
class _Report:
    sentence: str
    did_something: bool


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(load_settings(home=tmp_path, environ={}), Silent())
    yield made
    made.close()


@pytest.mark.parametrize(("did_something", "state"), [(True, "DONE"), (False, "NOTHING")])
def test_a_run_ends_with_its_report(home: Home, did_something: bool, state: str) -> None:
    report = _Report("It did what it could.", did_something)
    assert home.run_recorded("orders", "move", lambda: report) is report
    (run,) = home.catalog.runs.list()
    assert (run.table_name, run.type, run.state, run.result) == ("orders", "move", state, report.sentence)


def test_an_error_ends_the_run(home: Home) -> None:
    def work() -> _Report:
        raise DataError("A row is wrong.")

    with pytest.raises(DataError):
        home.run_recorded("orders", "move", work)
    (run,) = home.catalog.runs.list()
    assert run.state == "FAILED" and run.result is not None and "A row is wrong." in run.result


def test_a_failed_run_keeps_the_hint_of_its_error(home: Home) -> None:
    def work() -> _Report:
        raise DataError("A row is wrong.", hint="Correct the file.")

    with pytest.raises(DataError):
        home.run_recorded("orders", "move", work)
    home.run_recorded("orders", "move", lambda: _Report("Moved.", True))
    (failed,) = (run for run in home.catalog.runs.list() if run.state == "FAILED")
    assert run_hints(Hybrid.of(home)) == {failed.id: "Correct the file."}


def test_an_error_that_a_worker_raised_is_raised_as_it_was(home: Home) -> None:
    def work() -> _Report:
        raise RuntimeError(
            f"Job aborted: {fault_in_text(StoreError('The store is silent.', hint='Ask again.'))}\nStack."
        )

    for dry_run in (True, False):
        with pytest.raises(StoreError, match="The store is silent") as raised:
            home.run_recorded("orders", "replay", work, dry_run=dry_run)
        assert raised.value.hint == "Ask again."


def test_a_dry_run_is_not_recorded(home: Home) -> None:
    assert home.run_recorded("orders", "move", lambda: _Report("Would move.", False), dry_run=True).sentence
    assert home.catalog.runs.list() == []
