"""Runs that fell with the process before start again behind the first batches of its successor."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

import hybrid
from hybrid.serve.pipeline import Pipeline
from tests.catalog.test_database import request


def test_runs_that_fell_wait_for_the_first_batches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.serve.pipeline.may_start", lambda run, busy: True)  # not the pause after a fall
    with closing(hybrid.connect(home)) as here:
        runs = here.context.catalog.runs
        runs.enqueue(request(1))
        assert runs.claim() is not None
        pipeline = Pipeline(here, threading.Event())
        pipeline._take_up_fallen()
        tables = [SimpleNamespace(has_begun=True), SimpleNamespace(has_begun=False)]
        pipeline._ingesters = dict(zip(("orders", "others"), tables, strict=True))  # type: ignore[arg-type]

        def claimed() -> str | None:
            pipeline._queue_read_at = float("-inf")
            run = pipeline._next_run(set())
            return run.id if run is not None else None

        assert claimed() is None
        runs.enqueue(request(2))
        assert claimed() == "run_2", "others are not held back"
        tables[1].has_begun = True
        assert claimed() == "run_1"
        pipeline._writes.close()


def test_a_table_that_cannot_be_ingested_holds_nothing_back_for_long(home: Path) -> None:
    with closing(hybrid.connect(home)) as here:
        pipeline = Pipeline(here, threading.Event())
        assert not pipeline._awaits_first_batches(), "no table has a stream"
        pipeline._ingesters = {"orders": SimpleNamespace(has_begun=False)}  # type: ignore[dict-item]
        assert pipeline._awaits_first_batches()
        pipeline._began_at -= 60
        assert not pipeline._awaits_first_batches()
        pipeline._writes.close()
