"""A signal that comes while the main thread holds the lock of what the signal is to set."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from hybrid.runtime.signals import act_on_signals

NUMBER = signal.SIGUSR1


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(NUMBER)
    yield
    signal.signal(NUMBER, before)


def test_an_event_is_set_though_the_main_thread_is_inside_of_its_wait() -> None:
    stop = threading.Event()
    act_on_signals(stop.set, NUMBER)
    with stop._cond:  # type: ignore[attr-defined] # as inside of `wait`, before it sleeps and after it woke up
        os.kill(os.getpid(), NUMBER)  # a handler that called `set` would not return
        assert not stop.is_set()
    assert stop.wait(10)


def test_each_signal_is_acted_on() -> None:
    count = threading.Semaphore(0)
    act_on_signals(count.release, NUMBER)
    for _ in range(3):
        os.kill(os.getpid(), NUMBER)
        assert count.acquire(timeout=10)
