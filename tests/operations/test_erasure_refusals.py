"""What an erasure refuses before it removes anything, and what its errors say. Needs no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.erasures import ErasedTable, ErasureStore
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, HybridError, NotFoundError, UsageError
from hybrid.home.accounts import ASKING_RIGHT, Right
from hybrid.operations import erasure_attempt, erasures
from hybrid.operations.erasure import ErasureOptions
from hybrid.operations.erasure_outside import outside_places
from hybrid.operations.purge import CopyWithRows
from hybrid.progress import Silent
from hybrid.replace.purge.report import PurgeReading
from hybrid.rpc.json_views import erasure_readings
from hybrid.rpc.verbs import VERBS
from hybrid.sql.redaction import Redaction
from hybrid.table.boundary import Boundary
from tests.operations.erasure_home import NAME, WHERE, new_table
from tests.query.halves import KEY
from tests.replace.purge.erasing import holding

ORDERS = {"orders": WHERE}
PLACE = PurgeReading("OFFLINE", True, 1, 1, 0)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Hybrid]:
    found = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    new_table(found)
    yield found
    found.close()


@pytest.mark.slow
def test_what_is_refused_before_anything_is_written(home: Hybrid) -> None:
    wrong: list[tuple[dict[str, str], type[HybridError]]] = [
        ({}, UsageError), ({"orders": "customer ="}, UsageError), ({"nosuch": WHERE}, NotFoundError),
        ({"orders": "ts < now()"}, UsageError),
    ]  # fmt: skip
    for conditions, kind in wrong:
        with pytest.raises(kind):
            home.erase(conditions)
    with pytest.raises(UsageError, match="--reason names a value"):
        home.erase(ORDERS, reason=f"{NAME} asked")
    assert home.erasures.all() == [] and not list(home.home.rglob("*.request"))


@pytest.mark.slow
def test_names_of_one_table_in_two_spellings_are_refused(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a DDL table, whose name is read without case: the second condition must not replace the first."""
    spec = home.context.spec
    monkeypatch.setattr(home.context, "spec", lambda name: spec(name.lower()))
    with pytest.raises(UsageError, match="'Orders' and 'orders' are one table"):
        home.erase({"Orders": WHERE, "orders": "customer = 'b'"})
    assert home.erasures.all() == []


@pytest.mark.slow
def test_the_same_request_takes_up_the_open_one(home: Hybrid) -> None:
    begun = home.erasures.begin(ORDERS)
    again = home.erasures.begin({"orders": f" {WHERE} "}, ErasureOptions(reason="request 17", undecided=True))
    assert again == begun == home.erasures.show(begun.id), "only a run changes an erasure that is open"
    store = ErasureStore(home.home)
    with store.alone(begun.id):
        assert home.erasures.begin(ORDERS, ErasureOptions(dropped_copies=True)).id == begun.id
        with pytest.raises(ConflictError, match="is running"):
            home.erasures.run(begun.id, ErasureOptions(dropped_copies=True))
        with pytest.raises(ConflictError, match=r"is running\. Nothing was changed"):
            home.erasures.discard(begun.id)
    assert not home.erasures.show(begun.id).dropped_copies
    assert home.erasures.begin({"orders": "customer = 'b'"}).id != begun.id
    assert [path for path in holding(home.home, NAME) if not path.endswith(".request")] == []


@pytest.mark.slow
def test_a_run_adds_its_options_and_a_look_does_not(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of a dry run or of a declined question are not left armed for the next `resume`."""
    begun = home.erasures.begin(ORDERS, ErasureOptions(reason="request 17"))
    asked: list[bool] = []

    def looks(attempt: erasure_attempt.ErasureAttempt, _: object) -> None:
        asked.append(attempt._certificate.dropped_copies)
        raise HybridError("seen")

    options = ErasureOptions(dropped_copies=True, undecided=True)
    monkeypatch.setattr(erasure_attempt.ErasureAttempt, "look", looks)
    with pytest.raises(HybridError, match="seen"):
        home.erasures.look(begun.id, options)
    assert asked == [True] and home.erasures.show(begun.id) == begun
    monkeypatch.setattr(erasure_attempt.ErasureAttempt, "run", lambda self: self._certificate)
    with pytest.raises(UsageError, match="--reason names a value"):
        home.erasures.run(begun.id, ErasureOptions(reason=f"{NAME} asked"))
    done = home.erasures.run(begun.id, options)
    assert done.dropped_copies and done.undecided and done.reason == "request 17"


@pytest.mark.slow
def test_what_was_only_looked_at_is_given_back(home: Hybrid) -> None:
    """Also beside another erasure that runs; not when somebody else has taken it up."""
    store = ErasureStore(home.home)
    looked, is_new = home.erasures.take_up(ORDERS)
    with store.alone("erasure-other"):
        assert is_new and home.erasures.give_back(looked.id).state == "DISCARDED"
    assert home.erasures.all() == [] and holding(home.home, NAME) == []

    begun, _ = home.erasures.take_up(ORDERS)
    assert home.erasures.take_up(ORDERS) == (begun, False)
    assert home.erasures.give_back(begun.id).state == "OPEN" and home.erasures.all() == [begun]
    with store.alone("erasure-other"):
        assert home.erasures.discard(begun.id).state == "DISCARDED"
    assert home.erasures.give_back(begun.id).state == "DISCARDED", "what was discarded keeps its certificate"
    assert sorted(path.name for path in (home.home / "erasures").iterdir()) == [
        ".begin", ".lock", f"{begun.id}.json"
    ]  # fmt: skip


@pytest.mark.slow
def test_the_same_request_closes_what_is_proven(home: Hybrid) -> None:
    """Killed between the proof and the removal of its request: no second erasure leaves the request behind."""
    begun, store = home.erasures.begin(ORDERS), ErasureStore(home.home)
    store.save(replace(begun, state=erasures.ErasureState.PROVEN))
    assert home.erasures.take_up(ORDERS)[0].id == begun.id
    done = home.erase(ORDERS)
    assert (done.id, done.state) == (begun.id, "DONE") and holding(home.home, NAME) == []
    assert home.erasures.begin(ORDERS).id != begun.id


@pytest.mark.slow
def test_an_error_names_no_value_and_leaves_it_open(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise ValueError(f"[CAST] the value '{NAME}' of customer cannot be cast, where {WHERE}")

    monkeypatch.setattr(erasure_attempt, "copies_with_rows", fails)
    with pytest.raises(HybridError, match=r"the value '\?' of customer") as failed:
        home.erase(ORDERS)
    assert failed.value.__cause__ is None and failed.value.__suppress_context__
    (kept,) = home.erasures.all()
    assert failed.value.hint == f"hybrid erase resume {kept.id}"
    assert NAME not in json.dumps(kept.to_json()) and home.erasures.state(kept) == "FAILED" and kept.attempts == 1
    home.context.catalog.forget_journal()
    assert [path for path in holding(home.home, NAME) if not path.endswith(".request")] == []


@pytest.mark.slow
def test_copies_that_cannot_be_looked_at_stay(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what they have, so --dropped-copies does not remove them, and a dry run shows no 0."""
    folder = home.home / "warehouse" / ".dropped"
    damaged, known = (folder / f"orders@2021092{day}T000000.000000Z" for day in (4, 5))
    for path in (damaged, known):
        path.mkdir(parents=True)
    found = [CopyWithRows(damaged, None, "damaged"), CopyWithRows(known, 2)]
    monkeypatch.setattr(erasure_attempt, "copies_with_rows", lambda *_: found)
    monkeypatch.setattr(erasure_attempt.ErasureAttempt, "look", lambda *_: SimpleNamespace(before=(PLACE,), staged={}))
    begun = home.erasures.begin(ORDERS, ErasureOptions(dropped_copies=True))
    preview = home.erasures.look(begun.id)
    assert [one["matching"] for one in preview.readings] == [0, None, 2]
    assert [refusal.hint.startswith(f"hybrid table drop {damaged.name}") for refusal in preview.refusals] == [True]
    sentence = erasure_readings(begun.id, preview)["sentence"]
    assert f"Dropped copies have such rows: {known.name}." in sentence and sentence.startswith("2 stored rows in 1")
    assert f"Dropped copies cannot be looked at: {damaged.name}." in sentence
    with pytest.raises(ConflictError, match=r"cannot be looked at \(damaged\). Nothing was removed") as refused:
        home.erasures.run(begun.id)
    assert refused.value.hint == f"hybrid table drop {damaged.name} --purge, or hybrid table undrop {damaged.name}"
    attempt = erasure_attempt.ErasureAttempt(
        home.context, ErasureStore(home.home), home.erasures.show(begun.id), ORDERS
    )
    attempt._remove_copies()
    assert damaged.exists() and not known.exists()


@pytest.mark.slow
def test_a_look_says_what_the_run_refuses(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words, with the options that the run would be given; another erasure that runs refuses it too."""
    copies = [CopyWithRows(Path("orders@20210924T000000.000000Z"), 2)]
    monkeypatch.setattr(erasure_attempt, "copies_with_rows", lambda *_: copies)
    monkeypatch.setattr(erasure_attempt.ErasureAttempt, "look", lambda *_: SimpleNamespace(before=(PLACE,), staged={}))
    begun, store = home.erasures.begin(ORDERS), ErasureStore(home.home)
    (refusal,) = home.erasures.look(begun.id).refusals
    with pytest.raises(ConflictError) as refused:
        home.erasures.run(begun.id)
    assert (str(refused.value), refused.value.hint) == (f"{refusal.message} Nothing was removed.", refusal.hint)
    assert home.erasures.look(begun.id, ErasureOptions(dropped_copies=True)).refusals == []
    with store.alone("erasure-other"):
        running, _ = home.erasures.look(begun.id).refusals
    assert running.message == "Another erasure is running: 'erasure-other'."
    with pytest.raises(UsageError, match="--reason names a value"):
        home.erasures.look(begun.id, ErasureOptions(reason=f"{NAME} asked"))


@pytest.mark.slow
def test_a_boundary_that_is_set_by_hand_refuses_before_anything_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its purge would be refused, after the rows were deleted by a backfill."""
    monkeypatch.setattr(erasure_attempt, "copies_with_rows", lambda *_: [])
    monkeypatch.setattr(erasure_attempt.ErasureAttempt, "look", lambda *_: SimpleNamespace(before=(PLACE,), staged={}))
    monkeypatch.delattr(erasure_attempt.ErasureAttempt, "_erase_all")
    with Hybrid(load_settings(home=tmp_path / "home"), Silent()) as home:
        new_table(home).halves.commit_offline([], Boundary(9000, {KEY: 1}, override_ms=5000))
        begun = home.erasures.begin(ORDERS)
        (refusal,) = home.erasures.look(begun.id).refusals
        assert "The boundary of 'orders' is set by hand" in refusal.message
        assert refusal.hint == "hybrid boundary clear orders"
        with pytest.raises(ConflictError, match=r"set by hand.*Nothing was removed") as refused:
            home.erasures.run(begun.id)
        assert refused.value.hint == refusal.hint


@pytest.mark.slow
def test_the_other_tables_are_read_again_before_the_proof(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one table is worked on, rows come to another, or it is dropped and created again."""
    new_table(home, (Half.OFFLINE,), schemaName="payments")
    both, erased = {"orders": WHERE, "payments": WHERE}, list[str]()
    begun = home.erasures.begin(both)
    found = iter([3, 0, *[1] * 9])
    copies: list[CopyWithRows] = []

    def erases(_: Any, table: ErasedTable) -> list[str]:
        erased.append(table.table)
        return [f"not {table.table}"]

    def looks(*_: Any) -> Any:
        return SimpleNamespace(before=(replace(PLACE, matching=next(found)),), staged={})

    monkeypatch.setattr(erasure_attempt.ErasureAttempt, "_erase", erases)
    monkeypatch.setattr(erasure_attempt.ErasureAttempt, "look", looks)
    monkeypatch.setattr(erasure_attempt, "copies_with_rows", lambda *_: copies)
    attempt = erasure_attempt.ErasureAttempt(home.context, ErasureStore(home.home), begun, both)
    assert attempt._erase_all() == ["not orders", "not payments"] and erased == ["orders", "payments", "orders"]
    with pytest.raises(ConflictError, match="match keep arriving"):
        attempt._erase_all()
    copy = home.home / "warehouse" / ".dropped" / "payments@20210924T000000.000000Z"
    copies.append(CopyWithRows(copy, 2))
    with pytest.raises(ConflictError, match=r"has 2 such rows. It came while the erasure ran, which stays open"):
        attempt._erase_all()

    copy.mkdir(parents=True)
    (payments,) = (table for table in begun.tables if table.table == "payments")
    masks = Redaction.of_conditions([(WHERE, ["customer"])])
    assert str(copy) in {place["place"] for place in outside_places(home.context, [payments], [], masks)}


@pytest.mark.slow
def test_who_may_only_read_gets_no_digest(home: Hybrid) -> None:
    begun = home.erasures.begin(ORDERS)
    layout = home.table("orders").layout
    layout.purges.mkdir()
    (layout.purges / "purge-1.json").write_text(json.dumps({"created_at": "x", "condition_sha256": "00"}))
    shown = VERBS["erasure"].call(home, erasure=begun.id)["tables"][0]
    assert shown["condition_digest"].startswith("scrypt:") and VERBS["purges"].call(home, table="orders") != []
    right = ASKING_RIGHT.set(Right.READ)
    try:
        (listed,) = VERBS["erasures"].call(home)
        assert not {"condition_digest", "salt", "digest"} & {*listed["tables"][0]}
        assert VERBS["purges"].call(home, table="orders") == [{"created_at": "x"}]
    finally:
        ASKING_RIGHT.reset(right)


@pytest.mark.slow
def test_a_database_error_while_masking_replaces_no_error(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise ValueError(f"no '{NAME}'")

    monkeypatch.setattr(erasure_attempt, "copies_with_rows", fails)
    monkeypatch.setattr(erasure_attempt, "mask_texts", fails)
    with pytest.raises(HybridError, match=r"no '\?'"):
        home.erase(ORDERS)


@pytest.mark.slow
def test_a_discarded_erasure_is_over(home: Hybrid) -> None:
    begun = home.erasures.begin(ORDERS)
    assert home.erasures.state(home.erasures.discard(begun.id)) == "DISCARDED"
    assert holding(home.home, NAME) == []
    for refused in (home.erasures.run, home.erasures.discard, home.erasures.look):
        with pytest.raises(ConflictError, match=r"DISCARDED|discarded"):
            refused(begun.id)


@pytest.mark.slow
def test_a_request_that_somebody_removed(home: Hybrid) -> None:
    begun = home.erasures.begin(ORDERS)
    next(home.home.rglob("*.request")).unlink()
    with pytest.raises(DataError, match="is gone"):
        home.erasures.run(begun.id)
    assert home.erasures.discard(begun.id).state == "DISCARDED"


@pytest.mark.slow
def test_it_is_closed_when_the_journal_is_empty(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the catalog has forgotten is in its journal while others read it: the erasure is not done before."""
    begun = home.erasures.begin(ORDERS)
    monkeypatch.setattr("hybrid.operations.erasures.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(erasures.ErasureAttempt, "run", lambda self: proven(self))
    monkeypatch.setattr(home.context.catalog, "forget_journal", lambda: False)

    def proven(attempt: Any) -> Any:
        attempt._save(state=erasures.ErasureState.PROVEN)
        return attempt._certificate

    with pytest.raises(ConflictError, match="journal cannot be emptied"):
        home.erasures.run(begun.id)
    assert home.erasures.show(begun.id).state == "PROVEN" and not list(home.home.rglob("*.request"))
    monkeypatch.undo()
    assert home.erasures.run(begun.id).state == "DONE"
