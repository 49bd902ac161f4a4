"""What makes tests short that start no process, without changing what they see.

- Few databases are started, few Delta tables opened, and few catalogs created: `tests.shared_duckdb`,
  `tests.shared_delta`, `tests.shared_catalog`.
- The garbage collector leaves out what the imports brought, and runs less often.
- A worker of pytest-xdist reports a test by one message instead of five; each wakes the controller.
- A worker ends without freeing what the operating system frees at once.
- Nothing is synced to the device: a process that is killed loses nothing that it wrote. Recipes sync, as users do, and
  so do tests that cut the power. Tests of syncing watch `os.fsync` and set it themselves.

In `make unit` besides:

- Property tests try a part of their examples (`tests.examples`), and no constants of the source.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis.internal.conjecture import providers

from hybrid.runtime import durable
from hybrid.runtime.folder_setting import FolderSetting

# New objects until the youngest are looked at, and how many times that until the next generation is.
_COLLECT_AFTER = (50_000, 20, 50)
# A set-up or tear-down that takes longer is reported, so that it is among the longest.
_LONG_S = 1.0


def share_what_is_opened(is_shared: bool = True) -> None:
    """Share databases, Delta tables and catalogs between tests, or stop to."""
    from tests.shared_catalog import share_catalog
    from tests.shared_delta import share_delta_tables
    from tests.shared_duckdb import share_duckdb

    share_duckdb(is_shared)
    share_delta_tables(is_shared)
    share_catalog(is_shared)


def leave_unsynced() -> None:
    """Sync no file, whatever home it lies in, unless a test says so."""
    os.environ.setdefault("HYBRID_DURABLE", "false")
    durable._ENABLED = FolderSetting(False)


def leave_constants() -> None:
    """Let Hypothesis draw no constant of the product's source: reading it takes a second, for few examples."""
    providers._get_local_constants = lambda: providers._local_constants


@contextmanager
def in_process() -> Iterator[None]:
    """Share databases, Delta tables and catalogs while a test runs that starts no process."""
    share_what_is_opened()
    try:
        yield
    finally:
        share_what_is_opened(False)


def collect_garbage_seldom() -> None:
    """Look for garbage after more objects than usual: there is little of it."""
    gc.set_threshold(*_COLLECT_AFTER)


def keep_what_exists() -> None:
    """Let the garbage collector leave out modules and collected tests. Call it after the collection of tests."""
    gc.collect()
    gc.freeze()


def collect_once() -> None:
    """Collect garbage a last time. pytest does so five times at its end, and finds what is new since."""
    gc.collect()
    gc.freeze()


def end_quickly() -> None:
    """Let a worker of pytest-xdist end without freeing each object: it has reported, and others registered later."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        atexit.register(os._exit, 0)


def report_briefly(config: pytest.Config) -> None:
    """Let a worker of pytest-xdist send what the controller needs: nothing of a passed set-up or tear-down."""
    for worker in config.pluginmanager.get_plugins():
        if type(worker).__name__ == "WorkerInteractor":
            _drop_idle_events(worker)


def _drop_idle_events(worker: Any) -> None:
    send = worker.sendevent

    def send_needed(name: str, **details: Any) -> None:
        if not _is_idle(name, details.get("data", {})):
            send(name, **details)

    worker.sendevent = send_needed


def _is_idle(name: str, report: Mapping[str, Any]) -> bool:
    if name in {"logstart", "logfinish"}:
        return True
    is_passed = name == "testreport" and report["outcome"] == "passed" and report["when"] != "call"
    return is_passed and report["duration"] < _LONG_S
