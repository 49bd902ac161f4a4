"""Connectors in the check-up, the status and the readiness: a failed one is found, a paused one is as it is wanted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hybrid.api.hybrid import TableDocuments
from hybrid.doctor.findings import Severity
from tests.doctor.conftest import Patient
from tests.serve.app import App

ERROR = "The source cannot be read: it is not there"
DDL = """CREATE TABLE visits (id BIGINT NOT NULL, who VARCHAR) WITH ('connectors' = '[
  {"labels": ["old"], "transport": {"name": "file_input", "config": {"path": "PATH"}}, "format": {"name": "json"}},
  {"labels": ["live"], "start_after": "old", "format": {"name": "json"},
   "transport": {"name": "kafka_input", "config": {"topic": "visits", "bootstrap.servers": "k:1"}}}]');"""
WAITS = "Connector 'live' waits for 'old', which failed. Nothing is read of Kafka until then."


@pytest.fixture
def visits(patient: Patient, tmp_path: Path) -> Patient:
    """A table whose history has not been loaded yet."""
    file = tmp_path / "visits.sql"
    file.write_text(DDL)
    (found,) = TableDocuments.from_ddl(file)
    patient.hybrid().create_table(found.documents)
    return patient


def fail(patient: Patient) -> None:
    patient.hybrid().context.catalog.connectors.failed("visits", "old", ERROR)


def status(patient: Patient) -> str:
    (found,) = patient.hybrid().status()
    return found.state


@pytest.mark.slow
def test_a_failed_connector_is_found_with_its_error_and_those_that_wait_for_it(visits: Patient) -> None:
    assert visits.examine() == [] and status(visits) == "OK"
    fail(visits)
    failed, waits = visits.examine()
    assert (failed.check, failed.table, failed.severity) == ("connector", "visits", Severity.ERROR)
    assert failed.message == f"Connector 'old' failed: {ERROR}"
    assert failed.hint == "Correct what it names, then: hybrid connector start visits old"
    assert (waits.message, waits.severity, waits.is_left) == (WAITS, Severity.NOTE, False)
    assert status(visits) == f"Connector 'old' failed: {ERROR} Waiting for it: 'live'."


@pytest.mark.slow
def test_an_error_that_names_its_connector_is_said_as_it_is(visits: Patient) -> None:
    error = "Connector 'old' of table 'visits': a.json, line 2: Column 'id' is missing. Nothing was loaded."
    visits.hybrid().context.catalog.connectors.failed("visits", "old", error)
    assert visits.examine()[0].message == error
    assert status(visits) == f"{error} Waiting for it: 'live'."
    old, live = visits.hybrid().table("visits").connectors.statuses()
    assert (old.latest_error, live.detail) == (error, error)


@pytest.mark.slow
def test_looking_writes_nothing(visits: Patient) -> None:
    fail(visits)
    visits.examine()
    status(visits)
    assert visits.hybrid().context.catalog.connectors.of("visits")["old"].state is None


@pytest.mark.slow
def test_a_paused_connector_is_no_finding(visits: Patient) -> None:
    fail(visits)
    visits.hybrid().table("visits").connectors.pause("old")
    assert visits.examine() == [] and status(visits) == "OK"


@pytest.mark.slow
def test_readiness_names_it_and_is_not_lost_by_it(visits: Patient) -> None:
    def check() -> tuple[int, bool, str]:
        code, found = served.call("GET", "/readyz")
        one = next(one for one in found["checks"] if one["name"] == "connectors")
        others = [one["ok"] for one in found["checks"] if one["name"] != "connectors"]
        assert (code == 200) == all(others)
        return code, one["ok"], one["detail"]

    with closing(App(visits.path)) as served:
        code, ok, detail = check()
        assert (ok, detail) == (True, "none has failed")
        fail(visits)
        assert check() == (code, False, "1 failed: 'old' of 'visits'. hybrid connector list says why")
        visits.hybrid().table("visits").connectors.pause("old")
        assert check()[1]
