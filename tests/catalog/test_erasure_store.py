"""The certificate and the request of an erasure, as files."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.catalog.erasures import (
    ErasedTable,
    ErasureCertificate,
    ErasureState,
    ErasureStore,
    condition_digest,
    new_salt,
)
from hybrid.errors import ConflictError, DataError, NotFoundError

WHERE = {"orders": "customer = 'erase-me'"}
TABLE = ErasedTable("orders", ("customer",), "customer = ?", "00", "11", ({"place": "OFFLINE", "matching": 2},))
ONE = ErasureCertificate("erasure-1", "2026-11-26T10:00:00.000+00:00", (TABLE,), steps=({"step": "purge"},))


@pytest.fixture
def store(tmp_path: Path) -> ErasureStore:
    found = ErasureStore(tmp_path)
    found.create(ONE, WHERE)
    return found


def test_a_certificate_is_read_as_it_was_stored(store: ErasureStore, tmp_path: Path) -> None:
    assert store.find("erasure-1") == ONE and store.all() == [ONE] and ONE.state is ErasureState.OPEN
    assert store.conditions("erasure-1") == WHERE
    request = tmp_path / "erasures" / "erasure-1.request"
    assert request.stat().st_mode & 0o777 == 0o600 and request.parent.stat().st_mode & 0o777 == 0o700
    store.forget("erasure-1")
    assert store.conditions("erasure-1") is None and not request.exists()
    store.forget("erasure-1")  # done already


def test_a_request_is_overwritten_before_it_goes(store: ErasureStore, tmp_path: Path) -> None:
    request = tmp_path / "erasures" / "erasure-1.request"
    (tmp_path / "linked").hardlink_to(request)
    store.forget("erasure-1")
    assert set((tmp_path / "linked").read_bytes()) == {0}


def test_a_request_without_a_certificate_was_never_promised(store: ErasureStore, tmp_path: Path) -> None:
    for name in ("erasure-0.request", "erasure-0.request.part"):
        (tmp_path / "erasures" / name).write_text("{}")
    store.create(ErasureCertificate("erasure-2", ONE.created_at, (TABLE,)), WHERE)
    assert sorted(path.name for path in (tmp_path / "erasures").glob("*.request*")) == [
        "erasure-1.request", "erasure-2.request"
    ]  # fmt: skip


def test_a_request_of_an_erasure_that_is_over_goes(store: ErasureStore, tmp_path: Path) -> None:
    for number, state in enumerate(ErasureState):
        store._write_request(f"erasure-{number}", WHERE)
        store.save(replace(ONE, id=f"erasure-{number}", state=state))
    store.create(replace(ONE, id="erasure-9"), WHERE)
    kept = [store.find(path.stem).state.value for path in sorted((tmp_path / "erasures").glob("*.request"))]
    assert kept == ["OPEN", "PROVEN", "OPEN"]


def test_two_begin_at_once_and_both_keep_their_request(store: ErasureStore, tmp_path: Path) -> None:
    """The second waits until the first has its certificate: it takes no request for an orphan."""
    began = threading.Event()

    def second() -> None:
        began.set()
        with store.beginning():
            store.create(replace(ONE, id="erasure-3"), WHERE)

    thread = threading.Thread(target=second)
    with store.beginning():
        store._write_request("erasure-2", WHERE)
        thread.start()
        assert began.wait(10)
        thread.join(0.2)
        assert thread.is_alive()
        store.save(replace(ONE, id="erasure-2"))
    thread.join(10)
    assert {path.stem for path in (tmp_path / "erasures").glob("*.request")} == {"erasure-1", "erasure-2", "erasure-3"}


def test_one_erasure_at_a_time(store: ErasureStore) -> None:
    assert store.running() is None
    with store.alone("erasure-1"):
        assert store.running() == "erasure-1"
        with pytest.raises(ConflictError, match=r"Another erasure is running: 'erasure-1'.*'erasure-2' stays open"):
            store.alone("erasure-2").__enter__()
    assert store.running() is None


def test_wrong_ids_and_damaged_files(store: ErasureStore, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'erasure-1'"):
        store.find("erasure-2")
    with pytest.raises(NotFoundError):
        store.find("../erasures/erasure-1")
    (tmp_path / "erasures" / "erasure-1.request").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        store.conditions("erasure-1")
    (tmp_path / "erasures" / "erasure-1.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be read as a certificate"):
        store.all()


@pytest.mark.slow
def test_a_digest_is_salted() -> None:
    one, other = new_salt(), new_salt()
    assert condition_digest("orders", " id = 7 ", one) == condition_digest("orders", "id = 7", one)
    digests = [condition_digest(*given) for given in (("orders", "id = 7", one), ("orders", "id = 7", other))]
    assert digests[0] != digests[1] and condition_digest("payments", "id = 7", one) != digests[0]
