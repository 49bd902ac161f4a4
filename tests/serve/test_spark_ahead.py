"""A standby's Spark: its JVM is ready, its session comes and goes with the expectation of a take-over."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hybrid.operations.warehouse import writer_sign
from hybrid.operations.warehouse.writer_sign import SignWatch, WriterSign
from hybrid.serve.spark_ahead import SparkAhead
from tests.soak.harness import JVM_OPTIONS


def test_a_sign_that_is_overdue_is_looked_for_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now, sign = [0.0], ["a"]
    claim = SimpleNamespace(epoch=1, owner=SimpleNamespace(id="writer"))
    mirror = SimpleNamespace(ownership=SimpleNamespace(look=lambda: claim))
    monkeypatch.setattr(writer_sign, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(writer_sign, "read_sign", lambda mirror: WriterSign("writer", sign[0]))
    watch = SignWatch(cast("Any", mirror), 9.0)
    seen = []
    for at_s, given in [(3, "a"), (6, "b"), (9, "b"), (10, "b"), (11, "b"), (12, "c"), (15, "c"), (16, "c"), (17, "c")]:
        now[0], sign[0] = float(at_s), given
        assert watch.silent_claim() is None
        seen.append((at_s, watch.pause_s, watch.is_overdue))
    assert seen == [
        (3, 3.0, False), (6, 3.0, False), (9, 1.0, False), (10, 1.0, False), (11, 1.0, True),
        (12, 3.0, False), (15, 1.0, False), (16, 1.0, False), (17, 1.0, True),
    ]  # fmt: skip
    for now[0] in (18.0, 19.0, 20.0):
        assert watch.silent_claim() is None
    now[0] = 21.0
    assert cast("Any", watch.silent_claim()) is claim


def test_each_step_is_taken_once_and_none_before_the_jvm(caplog: pytest.LogCaptureFixture) -> None:
    steps: list[str] = []

    class Bench:
        @property
        def session(self) -> None:
            steps.append("session")

        def end_session(self) -> None:
            steps.append("end")
            raise ValueError("the cluster is gone")

    home = SimpleNamespace(start_jvm=lambda: steps.append("jvm"), bench=Bench())
    ahead = SparkAhead(cast("Any", home))
    ahead.follow(expects_take_over=True)
    assert steps == [], "a server that is no standby has no JVM"
    ahead.start_jvm()
    for expected in (False, True, True, False, False, True):
        ahead.wait()
        ahead.follow(expects_take_over=expected)
    ahead.wait()
    assert steps == ["jvm", "session", "end", "session"]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "Spark could not be made ready for a take-over: the cluster is gone" in warnings


STEPS = """
import sys
import hybrid
from hybrid.lake.spark import is_running, jvm_pid
from hybrid.lake.spark_connect import make_columns
from hybrid.serve.spark_ahead import SparkAhead

make_columns(for_server=True)  # as for a Spark Connect server: a JVM starts after it all the same
home = hybrid.connect(sys.argv[1]).context
ahead, pids = SparkAhead(home), []
ahead.start_jvm()
for expected in (True, False, True):
    ahead.wait()
    ahead.follow(expects_take_over=expected)
    ahead.wait()
    assert is_running() is expected
    if expected:
        assert home.bench.session.range(3).count() == 3
        pids.append(jvm_pid(home.bench.session))
assert len(set(pids)) == 1, pids
"""


@pytest.mark.spark
@pytest.mark.process
def test_a_session_after_a_false_alarm_is_in_the_same_jvm(home: Path) -> None:
    """It starts after work for a Spark Connect server, too."""
    words = [sys.executable, "-c", STEPS, str(home)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=150, env={**os.environ, **JVM_OPTIONS})
    assert done.returncode == 0, done.stderr[-3000:]
