"""What an erasure refuses before it removes anything, and what its errors say. Needs no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.erasures import ErasureStore
from hybrid.config.settings import load_settings
from hybrid.errors import ConflictError, DataError, HybridError, NotFoundError, UsageError
from hybrid.operations import erasures
from hybrid.operations.erasure import ErasureOptions
from hybrid.progress import Silent
from tests.operations.erasure_home import NAME, WHERE, new_table
from tests.replace.purge.erasing import holding

ORDERS = {"orders": WHERE}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Hybrid]:
    found = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    new_table(found)
    yield found
    found.close()


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


def test_the_same_request_takes_up_the_open_one(home: Hybrid) -> None:
    begun = home.erasures.begin(ORDERS)
    again = home.erasures.begin({"orders": f" {WHERE} "}, ErasureOptions(reason="request 17", undecided=True))
    assert again.id == begun.id and (again.reason, again.undecided) == ("request 17", True)
    assert home.erasures.begin(ORDERS).undecided, "an option that was given stays"
    store = ErasureStore(home.home)
    with store.alone(begun.id):
        assert home.erasures.begin(ORDERS).id == begun.id
        with pytest.raises(ConflictError, match="is running"):
            home.erasures.begin(ORDERS, ErasureOptions(dropped_copies=True))
    assert home.erasures.begin({"orders": "customer = 'b'"}).id != begun.id
    assert [path for path in holding(home.home, NAME) if not path.endswith(".request")] == []


def test_an_error_names_no_value_and_leaves_it_open(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise ValueError(f"[CAST] the value '{NAME}' of customer cannot be cast, where {WHERE}")

    monkeypatch.setattr(erasures, "copies_with_rows", fails)
    with pytest.raises(HybridError, match=r"the value '\?' of customer") as failed:
        home.erase(ORDERS)
    assert failed.value.__cause__ is None and failed.value.__suppress_context__
    (kept,) = home.erasures.all()
    assert failed.value.hint == f"hybrid erase resume {kept.id}"
    assert NAME not in json.dumps(kept.to_json()) and home.erasures.state(kept) == "FAILED" and kept.attempts == 1
    home.context.catalog.forget_journal()
    assert [path for path in holding(home.home, NAME) if not path.endswith(".request")] == []


def test_a_discarded_erasure_is_over(home: Hybrid) -> None:
    begun = home.erasures.begin(ORDERS)
    assert home.erasures.state(home.erasures.discard(begun.id)) == "DISCARDED"
    assert holding(home.home, NAME) == []
    for refused in (home.erasures.run, home.erasures.discard, home.erasures.look):
        with pytest.raises(ConflictError, match=r"DISCARDED|discarded"):
            refused(begun.id)


def test_a_request_that_somebody_removed(home: Hybrid) -> None:
    begun = home.erasures.begin(ORDERS)
    next(home.home.rglob("*.request")).unlink()
    with pytest.raises(DataError, match="is gone"):
        home.erasures.run(begun.id)
    assert home.erasures.discard(begun.id).state == "DISCARDED"


def test_it_is_closed_when_the_journal_is_empty(home: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the catalog has forgotten is in its journal while others read it: the erasure is not done before."""
    begun = home.erasures.begin(ORDERS)
    monkeypatch.setattr(erasures, "_POLL_S", 0.0)
    monkeypatch.setattr(erasures._Attempt, "run", lambda self: proven(self))
    monkeypatch.setattr(home.context.catalog, "forget_journal", lambda: False)

    def proven(attempt: Any) -> Any:
        attempt._save(state=erasures.ErasureState.PROVEN)
        return attempt._certificate

    with pytest.raises(ConflictError, match="journal cannot be emptied"):
        home.erasures.run(begun.id)
    assert home.erasures.show(begun.id).state == "PROVEN" and not list(home.home.rglob("*.request"))
    monkeypatch.undo()
    assert home.erasures.run(begun.id).state == "DONE"
