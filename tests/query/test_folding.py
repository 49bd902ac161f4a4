"""PARTIAL upsert and several comparison columns: the rows of a key are folded alike wherever they lie."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import MessageFormat, Partial, Strategy, StreamConfig, TableSpec, UpsertConfig
from hybrid.errors import QueryError
from hybrid.query.cache import cached_rows as rows
from hybrid.query.engine import QueryOptions, run
from hybrid.query.prune import prunable_columns
from hybrid.query.tail import TailMessage
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.replays import FIRST_EPOCH
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, replacement_topic
from tests.examples import seeds
from tests.folding import folded, folding_spec, some_values
from tests.oracle import Event, Oracle
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import PacedFold
from tests.query.test_cached import BothWays
from tests.query.test_simulation import BUCKET, PARTITIONS, Life, all_but_one_slow

# As after a reset of partition 0, and after two replays.
RESET = KEY._replace(epoch=1)
REPLAYS = [KEY._replace(connector="replay/kafka", epoch=FIRST_EPOCH + number) for number in range(2)]
STREAMS = [*PARTITIONS, RESET, *REPLAYS]
FORMS = {"one": {}, "several": {"several": True}, "full": {"several": True, "partial": False}}


@pytest.fixture(autouse=True)
def paced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Background rebuilds read when they are looked at."""
    monkeypatch.setattr(rows, "BackgroundRebuild", PacedFold)


class FoldingLife(Life):
    """A table that folds, with values drawn for its columns."""

    def produce(self) -> None:
        key = self.dice.choice(STREAMS)
        self.ends.setdefault(key, 0)
        self.committed.setdefault(key, 0)
        for _ in range(self.dice.randrange(1, 6)):
            self.ends[key] += self.dice.choice([0, 0, 1])
            ts, of, gone = self.dice.randrange(8) * BUCKET, self.dice.randrange(4), self.dice.random() < 0.15
            payload = some_values(self.dice, self.halves.spec, of, ts, gone)
            place, timestamp = (*key, self.ends[key]), self.dice.randrange(4)
            bad = self.dice.random() < 0.1
            self.oracle.produce(Event(place, ts, of, ts, timestamp, gone, bad, payload))
            self.ends[key] += 1

    def replace(self) -> None:
        """A segment of corrected rows beside the others: they arrive last."""
        offline = [event for of_one in self.oracle.offline.values() for event in of_one if not event.is_delete]
        if not offline:
            return
        number = len(self.oracle.offline)
        top = max(event.timestamp for event in self.oracle.committed)
        chosen = self.dice.sample(offline, min(2, len(offline)))
        corrected = [
            replace(event, place=(REPLACEMENT_CONNECTOR, replacement_topic(number), 0, 0, place), timestamp=top)
            for place, event in enumerate(chosen)
        ]
        self.oracle.offline[f"orders_{number}"] = corrected
        self.halves.commit_offline([self.row(event, f"orders_{number}") for event in corrected])

    def values(self, event: Event) -> dict[str, object]:
        found: Any = event.payload
        return found

    def check(self, ask: Any) -> None:
        spec, names = self.halves.spec, sorted(self.halves.spec.schema.column_names)
        key, low = self.dice.randrange(4), self.dice.randrange(8) * BUCKET
        offline = [event.payload for of_one in self.oracle.offline.values() for event in of_one if not event.is_delete]
        faces: dict[str, list[Any]] = {
            "orders": folded(spec, self.oracle.stored()),
            "orders_REALTIME": folded(spec, [event for event in self.oracle.produced if not event.is_bad]),
            "orders_OFFLINE": offline,
        }
        for table, expected in faces.items():
            for where, keep in (
                ("", lambda row: True),
                (f"WHERE order_id = {key}", lambda row: row["order_id"] == key),
                (f"WHERE ts < {low}", lambda row: row["ts"] < low),
                (f"WHERE customer = 'a' AND order_id <> {key}",
                 lambda row: row["customer"] == "a" and row["order_id"] != key),
            ):  # fmt: skip
                found = ask(self.halves, f"SELECT * FROM {table} {where} LIMIT 100000", self.tail())
                wanted = [tuple(row[name] for name in names) for row in expected if keep(row)]
                assert sorted(map(repr, found.rows)) == sorted(map(repr, wanted)), (table, where)
            counted = ask(self.halves, f"SELECT count(*), max(n) FROM {table}", self.tail()).rows
            assert counted == [
                (len(expected), max((row["n"] for row in expected if row["n"] is not None), default=None))
            ]


@pytest.mark.slow
@pytest.mark.parametrize("form_of", all_but_one_slow(FORMS, "several"))
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_table_folds_its_rows_as_the_oracle_does(tmp_path: Path, form_of: str, seed: int) -> None:
    """Tail, REALTIME and OFFLINE in any mix, from the files and from the cache."""
    live(tmp_path, form_of, seed)


@pytest.mark.slow
@pytest.mark.parametrize("form_of", FORMS)
def test_many_tables_fold_their_rows_as_the_oracle_does(tmp_path: Path, form_of: str) -> None:
    for seed in seeds(2, 1):
        live(tmp_path / str(seed), form_of, seed)


def live(folder: Path, form_of: str, seed: int) -> None:
    dice = random.Random(f"fold-{form_of}-{seed}")
    ask = BothWays()
    life = FoldingLife(Halves.create(folder, folding_spec(dice, **FORMS[form_of])), Oracle(upsert=True), dice)
    acts = [life.produce, life.commit, life.move, life.replace]
    for step, _ in groupby(dice.choices(acts, [4, 3, 2, 1], k=16)):
        step()
        if dice.random() < 0.2:
            life.check(ask)
    life.check(ask)
    assert ask.cached > 0


def folding(*columns: tuple[str, DataType, Strategy, bool], **options: Any) -> TableSpec:
    """The orders table compared by ts, with a column for each strategy given: name, type, strategy, one value."""
    extra = [FieldSpec(name, kind, FieldKind.METRIC, single) for name, kind, _, single in columns]
    partial = Partial({name: strategy for name, _, strategy, _ in columns})
    spec = orders_spec(upsert=True, deletes=True, extra=extra, **options)
    return replace(spec, upsert=UpsertConfig("ts", "gone", partial=partial), null_handling=True)


def rows_of(*rows: dict[str, Any]) -> list[Row]:
    """Rows of key 1 in order of their offsets; `at` is the Kafka timestamp, `op` what they are."""
    return [
        Row(
            {"order_id": 1, "customer": None, "amount": None, "gone": False, **one},
            one["ts"],
            offset,
            timestamp_ms=one.pop("at", 0),
            op=one.pop("op", "row"),
        )
        for offset, one in enumerate(rows)
    ]


def table_of(folder: Path, spec: TableSpec, rows: list[Row]) -> Halves:
    halves = Halves.create(folder, spec)
    halves.commit_realtime(rows, offsets={KEY: len(rows)})
    return halves


@pytest.mark.slow
def test_a_late_row_below_the_value_of_its_key_is_ignored(tmp_path: Path) -> None:
    """Also when its producer gives it an early Kafka timestamp: it arrived where its offset says."""
    spec = folding(("n", DataType.LONG, Strategy.INCREMENT, True))
    rows = rows_of(*({"ts": ts, "n": ts, "at": ts} for ts in (10, 30, 20)))
    halves = table_of(tmp_path, spec, rows)
    sql = "select ts, n, $offset, $segmentName from orders"
    ask = BothWays()
    assert ask(halves, "select ts, n from orders").rows == [(30, 40)]
    found = run(sql, halves, QueryOptions(tail=ListTail()))
    assert found.rows == [(30, 40, 1, "orders__0__0__20210924T0602Z")], "the last row that counts"


@pytest.mark.slow
def test_after_a_reset_rows_arrive_after_those_from_before_it(tmp_path: Path) -> None:
    """Producers that give event times as timestamps: 10 and 30, a reset, then a late 20."""
    spec = folding(("n", DataType.LONG, Strategy.INCREMENT, True), ("m", DataType.LONG, Strategy.OVERWRITE, True))
    first, second, late = rows_of(*({"ts": ts, "n": ts, "m": ts, "at": ts} for ts in (10, 30, 20)))
    halves = Halves.create(tmp_path, spec)
    halves.commit_realtime([first, second, replace(late, offset=0, key=RESET)], offsets={KEY: 2, RESET: 1})
    assert BothWays()(halves, "select ts, n, m from orders").rows == [(30, 40, 30)]
    again = rows_of({"ts": 30, "n": 1, "m": 1, "at": 5})
    halves.commit_realtime([replace(again[0], offset=1, key=RESET)], offsets={KEY: 2, RESET: 2})
    assert BothWays()(halves, "select ts, n, m from orders").rows == [(30, 41, 1)]


@pytest.mark.slow
def test_a_later_replay_that_brings_lower_offsets_is_a_stream_of_its_own(tmp_path: Path) -> None:
    """What it brings has the timestamps of its origin, which nothing of the replay before it delays."""
    spec = folding(("n", DataType.LONG, Strategy.INCREMENT, True))
    rows = rows_of(*({"ts": ts, "n": ts, "at": ts} for ts in (10, 20, 30)))
    halves = Halves.create(tmp_path, spec)
    stored = [replace(rows[0], key=REPLAYS[1]), rows[1], replace(rows[2], key=REPLAYS[0])]
    halves.commit_realtime(stored, offsets={KEY: 3, REPLAYS[0]: 3, REPLAYS[1]: 1})
    assert BothWays()(halves, "select ts, n from orders").rows == [(30, 60)]


@pytest.mark.slow
def test_equal_values_count_in_the_order_in_which_they_arrive(tmp_path: Path) -> None:
    spec = folding(("last", DataType.STRING, Strategy.OVERWRITE, True), ("all", DataType.LONG, Strategy.APPEND, False))
    rows = rows_of({"ts": 5, "last": "a", "all": [2, 1]}, {"ts": 5, "last": None, "all": None}, {"ts": 5, "all": [1]})
    assert BothWays()(table_of(tmp_path, spec, rows), 'select "last", "all" from orders').rows == [("a", [2, 1, 1])]


@pytest.mark.slow
def test_a_deleted_key_begins_anew_and_not_below_what_it_had_reached(tmp_path: Path) -> None:
    spec = folding(("n", DataType.LONG, Strategy.INCREMENT, True))
    shown = []
    rows: list[dict[str, Any]] = []
    for number, (ts, op) in enumerate([(10, "row"), (20, "delete"), (15, "row"), (20, "row"), (19, "delete")]):
        rows.append({"ts": ts, "n": 2**number, "op": op, "gone": op == "delete"})
        halves = table_of(tmp_path / str(number), spec, rows_of(*(dict(one) for one in rows)))
        shown.append(BothWays()(halves, "select n from orders").rows)
    assert shown == [[(1,)], [], [], [(8,)], [(8,)]]


@pytest.mark.slow
def test_a_list_that_nothing_was_united_with_stays_as_it_came(tmp_path: Path) -> None:
    spec = folding(("u", DataType.STRING, Strategy.UNION, False))
    first, second = {"ts": 1, "u": ["b", "a", "b"]}, {"ts": 2, "u": ["c", "a"]}
    one, both = (
        table_of(tmp_path / "1", spec, rows_of(dict(first))),
        table_of(tmp_path / "2", spec, rows_of(first, second)),
    )
    assert BothWays()(one, "select u from orders").rows == [(["b", "a", "b"],)]
    assert BothWays()(both, "select u from orders").rows == [(["a", "b", "c"],)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DataType.INT, DataType.LONG, DataType.BIG_DECIMAL])
def test_a_sum_that_does_not_fit_its_column_is_an_error(tmp_path: Path, kind: DataType) -> None:
    """Pinot wraps it around."""
    most: Any = {DataType.INT: 2**31 - 1, DataType.LONG: 2**63 - 1, DataType.BIG_DECIMAL: Decimal(10) ** 20 - 1}[kind]
    spec = folding(("n", kind, Strategy.INCREMENT, True))
    halves = table_of(tmp_path, spec, rows_of({"ts": 1, "n": most}, {"ts": 2, "n": type(most)(1)}))
    options = QueryOptions(tail=ListTail())
    with pytest.raises(QueryError) as caught:
        run("select n from orders", halves, options)
    assert caught.value.pinot_code == 200
    assert run("select ts from orders", halves, options).rows == [(2,)]


@pytest.mark.slow
def test_only_the_key_rules_files_out(tmp_path: Path) -> None:
    spec = folding(("n", DataType.LONG, Strategy.MAX, True))
    assert prunable_columns(spec) == ["order_id"]
    halves = table_of(tmp_path, spec, rows_of({"ts": 1, "n": 9}))
    halves.commit_realtime([replace(rows_of({"ts": 2, "n": 1})[0], offset=1)], offsets={KEY: 2})
    assert BothWays()(halves, "select n from orders where ts = 2 and order_id = 1").rows == [(9,)]
    assert BothWays()(halves, "select n from orders where n = 1").rows == []


@pytest.mark.slow
def test_updates_are_folded_wherever_they_lie(tmp_path: Path, ask: Any) -> None:
    """Feldera's `update` records: what one does not name stays, in the tail and committed; a new key begins by one."""
    of = StreamConfig("orders", "", message=MessageFormat.CHANGE)
    spec = replace(
        orders_spec(upsert=True), upsert=UpsertConfig("ts", partial=Partial()), null_handling=True, stream=of
    )
    changes = [
        {"insert": {"order_id": 1, "ts": 1, "customer": "ann", "amount": 5}},
        {"update": {"order_id": 1, "ts": 2, "amount": 6}},
        {"update": {"order_id": 2, "ts": 3, "customer": "bob"}},
        {"update": {"order_id": 1, "ts": 4, "customer": None}},
    ]
    messages = [TailMessage(KEY, offset, 0, json.dumps(change).encode()) for offset, change in enumerate(changes)]
    decoder, names = Decoder(spec), spec.schema.column_names
    found = [decoder.decode(message.value) for message in messages]
    rows = [
        Row(dict(zip(names, one.values, strict=True)), one.time_ms, offset)
        for offset, one in enumerate(found)
        if isinstance(one, Decoded)
    ]
    assert len(rows) == 3, "an update to null is a rejected row"
    for committed in range(4):
        halves = Halves.create(tmp_path / f"{committed}", spec)
        if committed:
            halves.commit_realtime(rows[:committed], offsets={KEY: committed})
        tail = ListTail(messages[committed:])
        sql = "select order_id, ts, customer, amount from orders order by order_id"
        assert ask(halves, sql, tail).rows == [(1, 2, "ann", 6.0), (2, 3, "bob", None)], committed
