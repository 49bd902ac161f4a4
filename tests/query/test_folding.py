"""PARTIAL upsert and several comparison columns: the rows of a key are folded alike wherever they lie."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hybrid.query.cache import answers, form, rows
from hybrid.table.liveness import REPLACEMENT_CONNECTOR, replacement_topic
from tests.folding import folded, folding_spec, some_values
from tests.oracle import Event, Oracle
from tests.query.halves import Halves
from tests.query.test_cached import BothWays
from tests.query.test_simulation import BUCKET, PARTITIONS, Life

FORMS = {"one": {}, "several": {"several": True}, "full": {"several": True, "partial": False}}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pays on large tables only is done on these small ones too."""
    monkeypatch.setattr(form, "_ENUM_ROWS_MIN", 1)
    monkeypatch.setattr(rows, "_FOLD_ROWS_MIN", 5)
    monkeypatch.setattr(rows, "_BUSY_S", -1.0)
    monkeypatch.setattr(answers, "_SMALL_S", math.inf)


class FoldingLife(Life):
    """A table that folds, with values drawn for its columns."""

    def produce(self) -> None:
        key = self.dice.choice(PARTITIONS)
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


@pytest.mark.parametrize("form_of", FORMS)
@pytest.mark.parametrize("seed", range(2))
def test_a_table_folds_its_rows_as_the_oracle_does(tmp_path: Path, form_of: str, seed: int) -> None:
    """Tail, REALTIME and OFFLINE in any mix, from the files and from the cache."""
    live(tmp_path, form_of, seed)


@pytest.mark.slow
@pytest.mark.parametrize("form_of", FORMS)
def test_many_tables_fold_their_rows_as_the_oracle_does(tmp_path: Path, form_of: str) -> None:
    for seed in range(2, 5):
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
