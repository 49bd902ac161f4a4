"""`Home.run_recorded`: a run ends with its report; a dry run leaves no record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.config.settings import load_settings
from hybrid.errors import DataError
from hybrid.home.home import Home
from hybrid.progress import Silent


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


def test_a_dry_run_is_not_recorded(home: Home) -> None:
    assert home.run_recorded("orders", "move", lambda: _Report("Would move.", False), dry_run=True).sentence
    assert home.catalog.runs.list() == []
