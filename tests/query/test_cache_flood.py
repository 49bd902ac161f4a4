"""Under a flood of rows the cache is behind its stream: it answers, says how far, and holds all that is committed."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.query.cache.cache import CachedTable
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.follower import Follower
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, QueryResult, run
from hybrid.query.execution import Limits
from hybrid.query.tail import NoTail, TailMessage
from tests.query.halves import KEY, Halves, ListTail, Row, act, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS = 1_632_700_000_000


def message(offset: int) -> TailMessage:
    value = b'{"order_id": %d, "customer": "a", "amount": 1.0, "ts": 1632463351000}' % offset
    return TailMessage(KEY, offset, NOW_MS, value)


def stored(offset: int) -> Row:
    values = {"order_id": offset, "customer": "a", "amount": 1.0, "ts": 1_632_463_351_000}
    return Row(values, 1_632_463_351_000, offset)


BEHIND = CacheTuning(fresh_s=0.0)
IMPATIENT = CacheTuning(await_fresh_s_max=0.05)


def seen_two(folder: Path, tuning: CacheTuning) -> SteppedCache:
    """A cache that has seen two rows of its stream."""
    tail = ListTail([message(0), message(1)])
    cache = SteppedCache(Halves.create(folder, orders_spec()), NOW_MS, tail, tuning=tuning)
    cache.step()
    cache.step()
    return cache


@pytest.fixture
def behind(tmp_path: Path) -> SteppedCache:
    """A cache that has seen two rows of its stream, long ago."""
    return seen_two(tmp_path, BEHIND)


def table_of(cache: SteppedCache, tuning: CacheTuning = IMPATIENT) -> CachedTable:
    return CachedTable(cache.opened, 1, cache.followed.follower, tuning=tuning)


def counted(cache: SteppedCache) -> int | None:
    found = cache.answers.answer("select count(*) from orders", NOW_MS, Limits(), lambda interrupt: None)
    return None if found is None else int(found.rows[0][0])


@pytest.mark.slow
def test_it_answers_and_tells_how_old_its_rows_are(behind: SteppedCache) -> None:
    found = behind.answers.answer("select count(*) from orders", NOW_MS, Limits(), lambda interrupt: None)
    assert found is not None
    assert found.rows == [(2,)]
    assert NOW_MS - 1000 < found.stats.fresh_ms <= NOW_MS


def test_who_takes_no_steps_any_more_does_not_answer(tmp_path: Path) -> None:
    assert counted(seen_two(tmp_path, replace(BEHIND, step_s_max=0.0))) is None


@pytest.mark.slow
def test_nobody_answers_who_has_never_been_fresh(behind: SteppedCache) -> None:
    behind.followed.follower.lose()
    assert counted(behind) is None


@pytest.mark.slow
def test_what_is_committed_is_awaited(behind: SteppedCache) -> None:
    behind.source.commit_realtime([stored(number) for number in range(5)], offsets={KEY: 5})
    assert table_of(behind).meet() is None

    def step_later() -> None:
        time.sleep(0.2)
        behind.step()

    stepping = threading.Thread(target=step_later)
    stepping.start()
    assert table_of(behind, CacheTuning(await_fresh_s_max=20.0)).meet() is not None
    stepping.join()
    assert counted(behind) == 5


@pytest.fixture
def shown_less(tmp_path: Path) -> SteppedCache:
    return shown_one_less(tmp_path, CacheTuning())


def shown_one_less(folder: Path, tuning: CacheTuning) -> SteppedCache:
    """A cache that has one row of its stream, of which the files have shown two."""
    cache = SteppedCache(Halves.create(folder, orders_spec()), NOW_MS, ListTail([message(0)]), tuning=tuning)
    cache.step()
    cache.step()
    cache.tail.messages = [message(0), message(1)]
    assert from_files(cache, "select $segmentName from orders").source == "files"
    return cache


def from_files(cache: SteppedCache, sql: str, **options: Any) -> QueryResult:
    given = QueryOptions(tail=cache.tail, now_ms=lambda: NOW_MS, cache=cache.answers)
    return run(sql, cache.source, replace(given, **options))


@pytest.mark.slow
def test_what_the_files_have_shown_is_awaited(shown_less: SteppedCache) -> None:
    """They read the stream to its end, and who asks both sees no rows go away."""
    table = table_of(shown_less)
    assert table.meet() is None
    shown_less.step()
    assert table.meet() is not None and counted(shown_less) == 2
    shown_less.tail.messages.append(message(2))
    from_files(shown_less, "select $segmentName from orders")
    assert table.meet() is None


@pytest.mark.slow
def test_behind_a_flood_what_the_files_have_shown_is_awaited_and_no_more(tmp_path: Path) -> None:
    """Memory answers again as soon as it has that, however much the stream holds beyond it."""
    cache = shown_one_less(tmp_path, BEHIND)
    table = table_of(cache)
    assert table.meet() is None
    cache.step()
    cache.tail.messages.append(message(2))
    assert table.meet() is not None and counted(cache) == 2


@pytest.mark.slow
def test_what_was_shown_survives_a_build_from_the_files(tmp_path: Path) -> None:
    """The build has only what is committed; neither the files nor memory may show less than before."""
    cache = seen_two(tmp_path, BEHIND)
    follower = cache.followed.follower
    assert follower.served == {KEY: 2}
    follower.start()
    assert follower.rows.shown == {} and follower.served == {KEY: 2}
    assert table_of(cache).meet() is None
    cache.step()
    assert table_of(cache).meet() is not None and counted(cache) == 2
    assert not follower._noted


@pytest.mark.slow
def test_what_the_files_have_shown_survives_a_build_too(shown_less: SteppedCache) -> None:
    follower = shown_less.followed.follower
    follower.start()
    assert follower.served == {KEY: 2}


@pytest.mark.slow
def test_what_was_shown_of_a_dropped_table_is_not_awaited_of_its_namesake(shown_less: SteppedCache) -> None:
    follower = shown_less.followed.follower
    successor = Follower(follower.rows, follower._open_stream, lambda: NOW_MS)
    successor.inherit(follower)
    assert successor.served == {KEY: 2}
    successor.start()
    assert successor.served == {KEY: 2}, "the same table, whose definition has changed"
    successor._table_id = "another"
    successor.start()
    assert successor.served == {}


def test_an_answer_of_rows_that_are_given_up_meanwhile_is_not_given(behind: SteppedCache) -> None:
    """A successor has taken over what was shown until then, and no answer may show more after that."""
    assert counted(behind) == 2
    behind.followed.stop.set()
    assert counted(behind) is None


def test_what_was_shown_of_an_earlier_epoch_is_not_awaited(behind: SteppedCache) -> None:
    next_epoch = KEY._replace(epoch=1)
    behind.source.commit_realtime([], offsets={KEY: 2, next_epoch: 0}, kind="reset")
    behind.followed.follower.start()
    assert KEY not in behind.followed.follower._noted


@pytest.mark.slow
def test_what_was_shown_of_a_stream_that_is_no_longer_read_is_dropped(behind: SteppedCache) -> None:
    """Another connector, another topic, a partition that the table leaves out now: nothing will bring their rows."""
    follower, others = behind.followed.follower, [KEY._replace(connector="gone"), KEY._replace(topic="gone")]
    follower.note({other: 9 for other in (*others, KEY._replace(partition=7))})
    follower.start()
    assert set(follower.served) == {KEY, KEY._replace(partition=7)}
    stream, table = follower.rows.table.spec.stream, follower.rows.table
    assert stream is not None
    follower.rows.table = replace(table, spec=replace(table.spec, stream=replace(stream, partitions=(0,))))
    follower.start()
    assert set(follower.served) == {KEY}
    follower.rows.table = replace(table, spec=replace(table.spec, stream=None))
    follower.start()
    assert not follower.served


def test_rows_that_were_never_complete_were_not_shown(tmp_path: Path) -> None:
    cache = SteppedCache(Halves.create(tmp_path, orders_spec()), NOW_MS, ListTail([message(0)]))
    cache.followed.follower.start()
    assert cache.followed.follower.served == {}
    cache.followed.follower.lose()
    assert not cache.followed.follower._noted


@pytest.mark.slow
def test_answers_that_show_less_do_not_end_the_wait(shown_less: SteppedCache) -> None:
    table = table_of(shown_less)
    from_files(shown_less, "select count(*) from orders_OFFLINE")
    from_files(shown_less, "select $segmentName from orders", tail=NoTail())
    assert table.meet() is None


@pytest.mark.slow
def test_what_was_committed_is_awaited_where_the_tail_cannot_be_read(behind: SteppedCache) -> None:
    behind.source.commit_realtime([stored(number) for number in range(5)], offsets={KEY: 5})
    from_files(behind, "select $segmentName from orders", tail=NoTail())
    assert not behind.followed.follower._has_noted(behind.followed.follower._noted)
    behind.step()
    assert behind.followed.follower._has_noted(behind.followed.follower._noted)


@pytest.mark.parametrize("unknown_s", [3600.0, 0.0])
def test_what_the_stream_does_not_hold_any_more_is_not_awaited_for_ever(tmp_path: Path, unknown_s: float) -> None:
    """A topic that was made anew, or has lost its end."""
    shown_less = shown_one_less(tmp_path, CacheTuning(unknown_partition_s=unknown_s))
    shown_less.followed.follower.note({KEY: 1000})
    shown_less.step()
    assert (table_of(shown_less).meet() is None) is (unknown_s > 0)


def test_a_pause_holds_what_the_files_have_shown_before_it(shown_less: SteppedCache) -> None:
    table = table_of(shown_less)
    shown_less.rows.table = replace(shown_less.opened, pause_offsets={KEY.place: 1})
    shown_less.followed.follower._noted = {}
    shown_less.followed.follower.note({KEY: 2})
    assert table.meet() is not None


@pytest.mark.slow
def test_what_was_shown_of_another_time_is_not_awaited(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    halves.commit_realtime([stored(0)], offsets={KEY: 1})
    cache = SteppedCache(halves, NOW_MS)
    cache.step()
    cache.step()
    then = from_files(cache, "select count(*) from orders").revision
    assert from_files(cache, "select count(*) from orders", as_of=str(then)).rows == [(1,)]
    assert from_files(cache, f"SET asOf = '{then}'; select count(*) from orders").rows == [(1,)]
    assert not cache.followed.follower._noted


@pytest.mark.slow
def test_rows_that_are_lost_after_they_were_met_are_not_there(
    shown_less: SteppedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are laid anew between a statement's wait and its read: as the commits have them, without the stream's."""
    shown_less.step()
    assert counted(shown_less) == 2
    follower = shown_less.followed.follower

    def meet(until: float) -> int | None:
        found = follower.fresh_ms
        follower.start()
        return found

    monkeypatch.setattr(shown_less.followed, "meet", meet)
    assert counted(shown_less) is None


def test_what_the_stream_does_not_bring_is_awaited_by_fresh_readers_too(tmp_path: Path) -> None:
    cache = seen_two(tmp_path, CacheTuning())
    table = table_of(cache)
    cache.source.commit_realtime([stored(0), stored(1)], offsets={KEY: 2})
    assert table.meet() is not None, "ingestion commits what is there"
    cache.source.realtime = replace(cache.source.realtime, act=act("replay", cache.source.realtime.act.number + 1))
    cache.source._append(Half.REALTIME, [stored(7)])
    assert table.meet() is None
    cache.step()
    assert table.meet() is not None


@pytest.mark.slow
def test_a_commit_beyond_the_stream_is_awaited_by_fresh_readers_too(tmp_path: Path) -> None:
    """Many rows may arrive and be committed within the seconds in which rows are fresh."""
    cache = seen_two(tmp_path, CacheTuning())
    table = table_of(cache)
    cache.source.commit_realtime([stored(number) for number in range(5)], offsets={KEY: 5})
    assert cache.followed.follower.is_fresh and table.meet() is None and table.met() is None
    cache.step()
    assert table.meet() is not None and counted(cache) == 5


def test_a_commit_of_delivered_rows_needs_no_wait_behind_a_flood_either(behind: SteppedCache) -> None:
    behind.source.commit_realtime([stored(0), stored(1)], offsets={KEY: 2})
    assert table_of(behind).meet() is not None
    behind.source.commit_realtime([], kind="seal")
    assert table_of(behind).meet() is not None
    behind.source.commit_realtime([stored(2)], offsets={KEY: 3})
    assert table_of(behind).meet() is None


@pytest.mark.slow
def test_a_commit_that_is_being_taken_in_is_not_there_yet(
    behind: SteppedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind.source.commit_realtime([stored(number) for number in range(5)], offsets={KEY: 5})
    seen: list[bool] = []
    merge = CachedRows._merge

    def look(rows: CachedRows) -> int:
        seen.append(behind.followed.follower.await_commits(0.0))
        return merge(rows)

    monkeypatch.setattr(CachedRows, "_merge", look)
    behind.step()
    assert seen == [False]
    assert behind.followed.follower.await_commits(0.0)


def test_behind_a_flood_a_move_is_awaited(behind: SteppedCache) -> None:
    behind.source.commit_offline([])
    assert not behind.followed.follower.await_commits(0.05)
    behind.step()
    assert behind.followed.follower.await_commits(0.05)
