"""Queued runs start behind the first batch of each table: after a crash, new events are waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

import hybrid
from hybrid.serve.pipeline import Pipeline
from tests.catalog.test_database import request


@pytest.fixture
def pipeline(home: Path) -> Iterator[Pipeline]:
    with closing(hybrid.connect(home)) as here:
        found = Pipeline(here, threading.Event())
        yield found
        found._writes.close()


def test_runs_wait_for_the_first_batches(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr("hybrid.serve.pipeline.carry_out", lambda home, run, works: started.append(run.id))
    pipeline._home.context.catalog.runs.enqueue(request(1))
    tables = {"orders": SimpleNamespace(has_begun=True), "others": SimpleNamespace(has_begun=False)}
    pipeline._ingesters = tables  # type: ignore[assignment]
    assert not pipeline._start_waiting() and started == []
    tables["others"].has_begun = True
    assert pipeline._start_waiting()
    pipeline._workers["run_1"].join()
    assert started == ["run_1"]


def test_a_table_that_cannot_be_ingested_holds_nothing_back_for_long(pipeline: Pipeline) -> None:
    assert not pipeline._awaits_first_batches(), "no table has a stream"
    pipeline._ingesters = {"orders": SimpleNamespace(has_begun=False)}  # type: ignore[dict-item]
    assert pipeline._awaits_first_batches()
    pipeline._began_at -= 60
    assert not pipeline._awaits_first_batches()
