"""Erasures: afterwards no byte below the home holds a value of the person, and the certificate says what was done."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.erasures import ErasureCertificate, ErasureStore
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.operations import erasure_attempt
from hybrid.operations.backfill_change import BackfillChange
from tests.operations.erasure_home import (
    HOUR,
    NAME,
    NEW,
    PAYER,
    WHERE,
    drop_copy,
    fill,
    fill_places,
    new_table,
    open_home,
    places_of,
)
from tests.replace.backfill.lab import Lab, row
from tests.replace.purge.erasing import holding, stream

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
BOTH = {"orders": WHERE, "payments": PAYER}


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the person's rows in both halves of orders: made once, copied for each test."""
    folder = tmp_path_factory.mktemp("erasures") / "home"
    home = open_home(folder, workbench)
    fill(home, new_table(home))
    home.close()
    return folder


@pytest.fixture
def home(template: Path, tmp_path: Path, workbench: CommitContext) -> Hybrid:
    shutil.copytree(template, tmp_path / "home")
    return open_home(tmp_path / "home", workbench)


def lab_of(home: Hybrid) -> Lab:
    from tests.query.halves import Halves

    table = home.table("orders")
    return Lab(home.context.bench, Halves(table.spec, table.layout), home.home)


def customers(home: Hybrid, table: str = "orders", column: str = "customer") -> list[str]:
    return sorted(one[0] for one in home.query(f"SELECT {column} FROM {table} LIMIT 100").rows)


def test_every_byte_of_two_tables(home: Hybrid) -> None:
    lab = lab_of(home)
    ids = fill_places(home, lab)
    fields = [{"name": name, "dataType": kind} for name, kind in (("order_id", "INT"), ("payer", "STRING"))]
    payments = new_table(home, (Half.OFFLINE,), schemaName="payments", dimensionFieldSpecs=fields)
    rows = [row(1, 10), row(2, 20)]
    for one, payer in zip(rows, (NAME, "b"), strict=True):
        vars(one)["values"] = {"order_id": one.values["order_id"], "payer": payer, "amount": 1.0, "ts": one.time_ms}
    payments.halves.commit_offline(rows)
    copied = drop_copy(home)
    assert len(places_of(home.home)) > 15

    begun = home.erasures.begin(BOTH)
    with pytest.raises(ConflictError, match=r"which has .* such rows. Nothing was removed"):
        home.erasures.run(begun.id)
    assert copied.exists() and home.erasures.state(home.erasures.show(begun.id)) == "FAILED"
    looked = home.erasures.look(begun.id)
    assert {name for one in looked.readings for name in one["by"]} == {*ids, copied.name}
    done = home.erase(BOTH, dropped_copies=True, reason="request 17", user="ada")
    assert done.id == begun.id and home.erasures.state(done) == "DONE"

    assert places_of(home.home) == []
    assert customers(home) == ["a", "a", "a"] and customers(home, "payments", "payer") == ["b"]
    assert not copied.exists() and home.backfills.status(ids[0]).state == "CANCELLED"
    assert [table.condition for table in done.tables] == ["customer = ?", "payer = ?"]
    assert home.erasures.is_about(done.id, BOTH) and not home.erasures.is_about(done.id, {**BOTH, "orders": "x"})
    orders = done.tables[0]
    found = {(place["place"], place["current"]): place["matching"] for place in orders.before}
    assert found[("OFFLINE", True)] == 3 and found[("REALTIME", True)] == 5 and found[("staged", False)] == 4
    assert all(place["matching"] == 0 for table in done.tables for place in table.after) and orders.undecided == 0
    (message,) = [one for one in orders.messages if one["partition"] == 0]
    assert message["topic"] == "orders" and message["first"] == 1 and message["last"] == NEW + 2
    assert [step["step"] for step in done.steps if step["table"] == "payments"] == ["delete", "purge"]
    assert "none is left in" in done.sentence
    where = {place["place"] for place in done.outside}
    assert {"backups", "exports", "messages that arrive later", "topic 'orders', partition 0"} <= where
    assert home.erase(BOTH).id != done.id, "a new request is a new erasure"
    logged = json.loads((home.home / "logs" / "cli.log").read_text())
    assert logged["message"] == "delete where customer = '********'"
    home.close()


class Killed(BaseException):
    """A process that ends here."""


STEPS = ("attempt", "before", "delete", "purge", "PROVEN", "forget", "DONE")


def marks(certificate: ErasureCertificate) -> set[str]:
    """The steps that a certificate has recorded."""
    before = {"before"} if certificate.tables[0].before_at else set()
    return {str(certificate.state), *before, *(str(step["step"]) for step in certificate.steps)}


def kill_at(home: Hybrid, erasure_id: str, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Kills the process when it has done a step and has not recorded it."""
    save = ErasureStore.save

    def dies(self: ErasureStore, certificate: ErasureCertificate) -> None:
        known = home.erasures.show(erasure_id)
        if step in marks(certificate) - marks(known) or step == "attempt":
            raise Killed
        save(self, certificate)

    def dies_too(self: ErasureStore, erasure_id: str) -> None:
        raise Killed

    monkeypatch.setattr(ErasureStore, "save", dies)
    if step == "forget":
        monkeypatch.setattr(ErasureStore, "forget", dies_too)


def test_killed_at_every_step(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two steps; kills inside of commits are in test_erasures_killed."""
    begun, first = home.erasures.begin({"orders": WHERE}), ()
    for step in STEPS:
        with monkeypatch.context() as patched:
            kill_at(home, begun.id, patched, step)
            with pytest.raises(Killed):
                home.erasures.run(begun.id)
        kept = home.erasures.show(begun.id)
        assert home.erasures.state(kept) == {"attempt": "OPEN", "forget": "PROVEN", "DONE": "PROVEN"}.get(
            step, "INTERRUPTED"
        )
        assert first in ((), kept.tables[0].before), "the first reading stays"
        first = kept.tables[0].before
    done = home.erasures.run(begun.id)
    assert home.erasures.state(done) == "DONE" and done == home.erasures.run(begun.id)
    assert places_of(home.home) == [] and customers(home) == ["a", "a", "a"]
    assert sum(place["matching"] for place in done.tables[0].before) > 6
    assert sum(place["matching"] for place in done.tables[0].after) == 0
    home.close()


def _during(home: Hybrid, monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> None:
    """Has something happen once, between the delete and the purge."""
    run_purge, happened = erasure_attempt.run_purge, list[bool]()

    def later(*args: Any) -> Any:
        if not happened:
            happened.append(True)
            then()
        return run_purge(*args)

    monkeypatch.setattr(erasure_attempt, "run_purge", later)


def test_what_comes_between_delete_and_purge(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_of(home)

    def meanwhile() -> None:
        stream(lab, row(50, 9 * HOUR, customer=NAME, offset=NEW + 5), row(51, 9 * HOUR, offset=NEW + 6))
        home.table("orders").move(max_buckets=None)
        home.backfills.plan("orders", BackfillChange(update="amount = 7", where=WHERE))
        with pytest.raises(ConflictError, match="Another erasure is running: 'erasure-"):
            home.erase({"orders": "customer = 'b'"})

    _during(home, monkeypatch, meanwhile)
    done = home.erase({"orders": WHERE})
    assert places_of(home.home) == [] and customers(home) == ["a", "a", "a", "a"]
    assert [step["step"] for step in done.steps].count("delete") == 2 and "cancel" in {s["step"] for s in done.steps}
    (waiting,) = [one for one in home.erasures.all() if one.id != done.id]
    assert home.erasures.state(waiting) == "OPEN"
    assert home.erasures.discard(waiting.id).state == "DISCARDED" and not list(home.home.rglob("*.request"))
    with pytest.raises(ConflictError, match="was discarded"):
        home.erasures.run(waiting.id)
    home.close()


def test_a_table_whose_rows_do_not_move(tmp_path: Path, workbench: CommitContext) -> None:
    """A REALTIME half alone: nothing can be deleted by a backfill, so the purge takes what queries show."""
    home = open_home(tmp_path / "home", workbench)
    lab = new_table(home, (Half.REALTIME,), primaryKeyColumns=["order_id"])
    stream(lab, row(1, 10, customer=NAME), row(2, 20))
    with pytest.raises(SpecError, match="may read order_id only"):
        home.erase({"orders": WHERE})
    home.erase({"orders": "order_id = 1"})
    assert customers(home) == ["a"] and holding(home.home, NAME) == []
    home.close()
