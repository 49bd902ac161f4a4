"""A cache with less memory than its table: the rest lies on disk, and what finds no room is asked of the files."""

from __future__ import annotations

import json
import logging
import random
import threading
from logging.handlers import QueueHandler
from pathlib import Path
from queue import Queue
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest

from hybrid.errors import NotFoundError, QueryError
from hybrid.query.cache import cache_reader as answers
from hybrid.query.cache.cache import CachedTable
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, run
from hybrid.query.query_table import QueryTable
from hybrid.query.tail import NoTail, TailMessage
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS = 1_632_700_000_000
ROWS = 1_000_000
BOUND = 60_000_000
RETRY_SOON = CacheTuning(backoff_s=(0.01, 0.01))
STATEMENTS = [
    "select count(*), sum(amount), min(customer), max(customer) from orders",
    "select * from orders where order_id = 77",
    "select customer, ts from orders order by ts desc limit 10",
    "select floor(ts / 1000), count(*), max(customer) from orders group by floor(ts / 1000) order by 1 limit 1000",
]
# Each group is a text of its own.
HEAVY = "select customer, count(*), max(amount) from orders group by customer order by customer limit 5"
# A text cannot lie on disk while it grows.
HEAVIER = "select " + " + ".join(f"length(listagg(customer, '{by}'))" for by in ",;+-") + " from orders"


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    built = Halves.create(tmp_path_factory.mktemp("home"), orders_spec(upsert=True))
    chance = random.Random(3)
    numbers = list(range(ROWS))
    chance.shuffle(numbers)
    columns = {
        "order_id": pa.array(numbers, pa.int32()),
        "customer": pa.array([f"{7919 * n % 1_000_003} of {n}, a customer of the shop since" for n in numbers]),
        "amount": pa.array([n % 1000 / 4 for n in numbers], pa.float32()),
        "ts": pa.array(range(ROWS)),
        "_hy_time": pa.array(range(ROWS)),
    }
    built.commit_many(Row({}, None, None), columns)
    return built


def empty(folder: Path) -> QueryTable:
    return Halves.create(folder, orders_spec()).open("orders")


@pytest.mark.slow
def test_memory_stays_within_its_bound_and_the_answers_are_the_same(halves: Halves, tmp_path: Path) -> None:
    free, bound = SteppedCache(halves, NOW_MS), SteppedCache(halves, NOW_MS, bytes_max=BOUND, spill=tmp_path)
    for sql in STATEMENTS:
        expected, found = free.ask(sql), bound.ask(sql)
        assert expected is not None and found is not None and found.rows == expected.rows, sql
        assert _sum(bound, 1) <= BOUND
    assert _sum(free, 1) > BOUND and _sum(free, 2) == 0
    assert _sum(bound, 2) > 0
    assert {kind for kind, memory, _ in free.answers.sizes() if memory} >= {"in_memory_table", "art_index"}


@pytest.mark.slow
def test_a_statement_that_finds_no_room_is_asked_of_the_files(halves: Halves, tmp_path: Path) -> None:
    bound = SteppedCache(halves, NOW_MS, bytes_max=BOUND, spill=tmp_path)
    assert bound.ask(HEAVY) is not None
    assert bound.ask(HEAVIER) is None
    assert run(HEAVIER, halves, QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS)).rows
    assert bound.ask(HEAVY) is not None


@pytest.mark.slow
@pytest.mark.parametrize("error", [duckdb.OutOfMemoryException, duckdb.IOException, duckdb.FatalException])
@pytest.mark.parametrize("is_told", [True, False])
def test_when_memory_or_disk_fail_the_files_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[duckdb.Error], is_told: bool
) -> None:
    """Raised by DuckDB itself, or told as an error of the statement's."""
    small = Halves.create(tmp_path, orders_spec(upsert=True))
    small.commit_realtime([Row({"order_id": 1, "customer": "a", "amount": 1.0, "ts": 1}, 1, 0)], offsets={KEY: 1})
    free = SteppedCache(small, NOW_MS)
    assert free.ask(STATEMENTS[0]) is not None

    def fail(*_: object) -> None:
        if not is_told:
            raise error("no space left on device")
        raise QueryError("no space left on device") from error("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(answers, "fetch", fail)
        assert free.ask(STATEMENTS[0]) is None
    assert free.ask(STATEMENTS[0]) is not None


@pytest.mark.parametrize("was_laid", [True, False])
def test_a_table_that_was_laid_is_laid_again_soon_when_its_room_was_taken(tmp_path: Path, was_laid: bool) -> None:
    """One that does not fit is left to the files for long: to fill the memory takes a core."""
    follower = _NoRoom(was_laid)
    table = CachedTable(empty(tmp_path), "", follower, tuning=RETRY_SOON)  # type: ignore[arg-type]
    table.start()
    again = follower.second.wait(20 if was_laid else 0.5)
    table.stop.set()
    table.join()
    assert again is was_laid


class _NoRoom:
    """A follower whose table finds no room: after it was laid, or while it is."""

    has_stream = False

    def __init__(self, was_laid: bool) -> None:
        self._was_laid, self._starts = was_laid, 0
        self.rows = SimpleNamespace(current=object() if was_laid else None)
        self.second = threading.Event()

    def start(self) -> None:
        self._starts += 1
        if self._starts == 2:
            self.second.set()
        if not self._was_laid:
            raise duckdb.OutOfMemoryException("no room")

    def step(self) -> bool:
        raise duckdb.OutOfMemoryException("no room")

    def lose(self, *, forget: bool = False) -> None:
        assert forget

    def close(self) -> None:
        return None


@pytest.mark.slow
def test_a_statement_over_files_takes_so_much_memory_and_the_rest_lies_on_disk(halves: Halves, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    free = QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS)
    few = QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS, memory_bytes=BOUND)
    with pytest.raises(QueryError, match=r"(?i)memory"):
        run(HEAVY, halves, few)
    more = QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS, memory_bytes=BOUND, spill=spill)
    assert run(HEAVY, halves, more).rows == run(HEAVY, halves, free).rows
    assert not list(spill.glob("duckdb_temp*"))


@pytest.mark.slow
def test_rows_of_the_stream_that_find_no_room_are_told_like_any_others(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    rows = ({"order_id": n, "customer": f"{n:0200}", "amount": 1.0, "ts": n} for n in range(20_000))
    tail = ListTail([TailMessage(KEY, n, 0, json.dumps(row).encode()) for n, row in enumerate(rows)])
    options = QueryOptions(tail=tail, now_ms=lambda: NOW_MS, memory_bytes=1_000_000)
    with pytest.raises(QueryError, match="needs more memory"):
        run("select count(*) from orders", halves, options)


def _sum(cache: SteppedCache, place: int) -> int:
    return sum(one[place] for one in cache.answers.sizes())


class _Dropped:
    """A follower whose table has no files any more."""

    has_stream, starts = False, 0
    rows = SimpleNamespace(current=None)

    def start(self) -> None:
        self.starts += 1
        raise NotFoundError("gone")

    def lose(self, forget: bool = False) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is open."""


def test_a_dropped_table_is_followed_no_longer_and_warns_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings = Queue[logging.LogRecord]()
    handler = QueueHandler(warnings)
    handler.setLevel(logging.WARNING)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    follower = _Dropped()
    table = CachedTable(empty(tmp_path), "", follower, lambda: None, RETRY_SOON)  # type: ignore[arg-type]
    table.start()
    table.join(30)
    assert not table.is_alive() and follower.starts == 1
    assert warnings.empty()
