"""Values that are made once for all who want them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hybrid.serve.kept_values import KeptValues

WAIT_S = 10.0


def test_the_last_used_values_are_kept() -> None:
    kept, made = KeptValues[str](2), list[str]()

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    for name in ("a", "b", "a", "c", "a", "b"):
        assert kept.get(name, lambda name=name: make(name)) == name.upper()
    assert made == ["a", "b", "c", "b"]


def test_callers_of_one_value_share_its_making() -> None:
    kept, made, may_end = KeptValues[int](2), list[int](), threading.Event()

    def make() -> int:
        made.append(1)
        assert may_end.wait(WAIT_S)
        return 7

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(kept.get, "a", make) for _ in range(4)]
        while not made:
            time.sleep(0.001)
        may_end.set()
        assert [one.result(WAIT_S) for one in found] == [7] * 4
    assert made == [1]


def test_a_value_that_takes_long_delays_no_other() -> None:
    kept, may_end = KeptValues[int](2), threading.Event()

    def make_slowly() -> int:
        assert may_end.wait(WAIT_S)
        return 1

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(kept.get, "slow", make_slowly)
        assert kept.get("fast", lambda: 2) == 2
        may_end.set()
        assert slow.result(WAIT_S) == 1


def test_a_value_that_could_not_be_made_is_made_by_the_next_caller() -> None:
    kept = KeptValues[int](2)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.get("a", lambda: 3) == 3
