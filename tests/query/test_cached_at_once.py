"""What the serving cache answers in a moment, and what it leaves to a thread that may wait."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.query.cache import cache_reader as answers
from hybrid.query.cache.template import Template, cut
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.execution import Limits
from hybrid.query.result import QueryResult
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import Boundary
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS, COUNT = 1_632_700_000_000, 10
SQL = "select count(*), sum(order_id) from orders where order_id < 100"
MANY = "select count(*) from orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h, orders i"
NEW = {"order_id": 77, "customer": "eve", "amount": 1.0, "ts": 7}

OPTIMISTIC = CacheTuning(optimistic_s_max=math.inf, optimistic_gap_share=math.inf)
# On a busy machine the briefest statement may take longer than a server waits for it.
PATIENT = replace(OPTIMISTIC, brief_ms_max=1000)


@pytest.fixture
def cache(tmp_path: Path) -> SteppedCache:
    """That answers from its newest commit, however long ago that was."""
    return cache_in(tmp_path, PATIENT)


def cache_in(tmp_path: Path, tuning: CacheTuning) -> SteppedCache:
    halves = Halves.create(tmp_path, orders_spec())
    found = [
        Row({"order_id": n, "customer": "ada", "amount": n * 1.5, "ts": n * 100}, n * 100, n) for n in range(COUNT)
    ]
    halves.commit_realtime(found, offsets={KEY: COUNT})
    stepped = SteppedCache(halves, NOW_MS, waits=False, tuning=tuning)
    ran_before(stepped, SQL)
    return stepped


def ran_before(cache: SteppedCache, sql: str, took_s: float = 0.001) -> Template:
    """Its template, as if its last run had taken so long."""
    assert cache.ask(sql) is not None
    template = cache.answers._templates._known[cut(sql)[0]]
    assert template is not None
    template.took_s = took_s
    return template


def at_once(cache: SteppedCache, sql: str = SQL, limits: Limits | None = None) -> QueryResult | None:
    return cache.answers.at_once(sql, limits or Limits())


def answered(cache: SteppedCache, sql: str = SQL, limits: Limits | None = None) -> QueryResult | None:
    return cache.answers.answer(sql, NOW_MS, limits or Limits(), lambda interrupt: None)


def test_what_took_a_moment_is_answered_at_once(cache: SteppedCache) -> None:
    for sql, number in ((SQL, COUNT), (SQL.replace("100", "4"), 4)):
        found, expected = at_once(cache, sql), answered(cache, sql)
        assert found is not None and expected is not None
        assert found.rows == expected.rows == [(number, sum(range(number)))]
        assert (found.revision, found.column_types, found.source) == (expected.revision, expected.column_types, "cache")
        assert found.stats.time_used_ms < 1000


def test_its_time_counts_from_when_it_was_asked(cache: SteppedCache) -> None:
    asked = Limits(began=time.monotonic() - 5)
    for found in (at_once(cache, limits=asked), answered(cache, limits=asked)):
        assert found is not None and found.stats.time_used_ms >= 5000
    with pytest.raises(QueryError) as raised:
        answered(cache, limits=Limits(timeout_ms=1000, began=asked.began))
    assert raised.value.pinot_code == 250


def test_what_is_new_or_slow_or_has_little_time_is_not_tried(cache: SteppedCache) -> None:
    assert at_once(cache, "select max(order_id) from orders") is None
    assert at_once(cache, f"SET timeoutMs = 5000; {SQL}") is None
    assert at_once(cache, limits=Limits(timeout_ms=PATIENT.brief_ms_max)) is None
    assert at_once(cache, limits=Limits(timeout_ms=2000)) is not None
    for took_s in (0.011, math.inf):
        ran_before(cache, SQL, took_s)
        assert at_once(cache) is None


def _note(cache: SteppedCache) -> None:
    cache.followed.follower.note({KEY: COUNT + 1})


def _move(cache: SteppedCache) -> None:
    moved = [Row({**NEW, "order_id": n}, n * 100, n, segment="moved") for n in range(3)]
    cache.source.commit_offline(moved, Boundary(201, {KEY: 3}))


def _lose(cache: SteppedCache) -> None:
    cache.followed.follower.lose()


def _redefine(cache: SteppedCache) -> None:
    cache.followed.table = replace(cache.opened, spec=replace(cache.opened.spec))


def _drop(cache: SteppedCache) -> None:
    cache.current = lambda name: None  # type: ignore[method-assign]


@pytest.mark.parametrize("change", [_note, _move, _lose, _redefine, _drop])
def test_what_would_have_to_wait_is_left_to_a_thread(
    cache: SteppedCache, change: Callable[[SteppedCache], None]
) -> None:
    assert at_once(cache) is not None
    change(cache)
    assert at_once(cache) is None


def test_a_table_whose_definition_the_catalog_is_asked_for_is_left(cache: SteppedCache) -> None:
    spec = cache.opened.spec
    vars(spec)["connectors"] = (None,)
    assert at_once(cache) is None and answered(cache) is not None


def test_a_commit_that_goes_on_is_not_waited_for(cache: SteppedCache) -> None:
    with cache.database.commits:  # who waited would wait for ever
        cache.rows._pace.begins()
        assert at_once(cache) is None
        cache.rows._pace.ended()
    assert at_once(cache) is not None


@pytest.mark.slow
def test_an_answer_that_a_commit_came_between_is_not_given(
    cache: SteppedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = answers.fetch

    def fetch(*given: Any) -> Any:
        cache.tail.messages = [TailMessage(KEY, COUNT, 7, json.dumps(NEW).encode())]
        cache.followed.follower.step()
        return real(*given)

    with monkeypatch.context() as between:
        between.setattr(answers, "fetch", fetch)
        assert at_once(cache) is None
    ran_before(cache, SQL)
    found = at_once(cache)
    assert found is not None and found.rows == [(COUNT + 1, sum(range(COUNT)) + 77)]
    assert found.revision.tables[0].tail == {KEY: COUNT + 1}


def test_an_answer_whose_rows_were_lost_meanwhile_is_not_given(
    cache: SteppedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = answers.fetch

    def fetch(*given: Any) -> Any:
        found = real(*given)
        cache.followed.follower.lose()
        return found

    monkeypatch.setattr(answers, "fetch", fetch)
    assert at_once(cache) is None


@pytest.mark.slow
def test_what_takes_too_long_now_is_interrupted_and_not_tried_again(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, replace(OPTIMISTIC, brief_ms_max=100))
    template = ran_before(cache, MANY)
    assert at_once(cache, MANY) is None and template.took_s == math.inf
    assert at_once(cache, MANY) is None  # before it runs
    found = at_once(cache)  # on the same connection: the interrupt was for the other one
    assert found is not None and found.rows == [(COUNT, sum(range(COUNT)))]
    whole = answered(cache, MANY)
    assert whole is not None and whole.rows == [(COUNT**9,)]


@pytest.mark.slow
def test_what_fails_is_told_by_who_runs_it_next(cache: SteppedCache) -> None:
    few = Limits(rows_max=3)
    sql = "select order_id from orders limit 100"
    ran_before(cache, sql)
    assert at_once(cache, sql, few) is None
    with pytest.raises(QueryError, match="more than 3 rows"):
        answered(cache, sql, few)
