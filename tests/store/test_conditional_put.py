"""Conditional writes against a scripted key: whatever becomes of requests and answers, the outcome told is true."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from hybrid.store.conditional_put import (
    ConditionalPut,
    ObjectContent,
    Patience,
    PutOutcome,
    PutResult,
    RequestFailedError,
    WrittenObject,
)
from hybrid.store.store_faults import Fault, StoreFailure

SILENCE = StoreFailure(Fault.UNREACHABLE, "no answer in time", may_be_done=True)
REFUSED = StoreFailure(Fault.UNREACHABLE, "connection refused")
DENIED = StoreFailure(Fault.PERMISSION, "AccessDenied")
CONFLICT = StoreFailure(Fault.CONFLICT, "ConditionalRequestConflict")


class Key:
    """One key of a store. A step is how an attempt goes: `ok`, a failure before it is carried out, or a function."""

    def __init__(self, *steps: object, present: bytes | None = None) -> None:
        self.steps, self.present = list(steps), present
        self.sent = 0
        self.is_silent = False

    def etag(self) -> str:
        return f"etag of {self.present!r}"

    def put(self, data: bytes, etag: str | None) -> Callable[[], WrittenObject]:
        def send() -> WrittenObject:
            self.sent += 1
            step = self.steps.pop(0) if self.steps else "ok"
            if callable(step):
                step = step(lambda: self._carry_out(data, etag))
            if isinstance(step, StoreFailure):
                raise RequestFailedError(step)
            return self._carry_out(data, etag)

        return send

    def read(self) -> ObjectContent | None:
        if self.is_silent:
            raise RequestFailedError(SILENCE)
        return ObjectContent(self.present, self.etag(), datetime.now(UTC)) if self.present is not None else None

    def _carry_out(self, data: bytes, etag: str | None) -> WrittenObject:
        holds = self.present is None if etag is None else self.present is not None and self.etag() == etag
        if not holds:
            raise RequestFailedError(StoreFailure(Fault.CONDITION, "PreconditionFailed"))
        self.present = data
        return WrittenObject(self.etag())


def lost(carry_out: Callable[[], WrittenObject]) -> StoreFailure:
    """Carried out, without an answer."""
    carry_out()
    return SILENCE


def repeated(carry_out: Callable[[], WrittenObject]) -> str:
    """Carried out twice by something in between; the second answer arrives."""
    carry_out()
    return "ok"


def create(key: Key, patience_s: float = 5.0) -> PutResult:
    return ConditionalPut(b"ours", None, key.put(b"ours", None), key.read).run(Patience(patience_s, 0.001))


def replace(key: Key, patience_s: float = 5.0) -> PutResult:
    etag = "etag of b'old'"
    return ConditionalPut(b"ours", etag, key.put(b"ours", etag), key.read).run(Patience(patience_s, 0.001))


@pytest.mark.parametrize(
    "steps", [(), (SILENCE,), (lost,), (lost, SILENCE), (repeated,), (CONFLICT, CONFLICT), (REFUSED, lost, REFUSED)]
)
def test_a_write_that_was_carried_out_is_made(steps: tuple[object, ...]) -> None:
    for write, key in ((create, Key(*steps)), (replace, Key(*steps, present=b"old"))):
        result = write(key)
        assert result.outcome is PutOutcome.MADE and result.etag == key.etag() and key.present == b"ours"
        assert result.was_silent == bool({SILENCE, lost} & set(steps))


@pytest.mark.parametrize("steps", [(), (SILENCE,), (CONFLICT,), (REFUSED,)])
def test_another_object_is_there(steps: tuple[object, ...]) -> None:
    for write, outcome in ((create, PutOutcome.EXISTS), (replace, PutOutcome.CHANGED)):
        key = Key(*steps, present=b"theirs")
        result = write(key)
        assert result.outcome is outcome and result.present is not None and result.present.data == b"theirs"
        assert key.present == b"theirs" and result.was_silent == (SILENCE in steps)


def test_the_object_to_replace_is_gone() -> None:
    result = replace(Key())
    assert result.outcome is PutOutcome.CHANGED and result.present is None


def test_an_object_that_is_gone_when_it_is_read_is_no_hindrance() -> None:
    key = Key(present=b"theirs")
    read = key.read

    def vanish() -> ObjectContent | None:
        key.present = None
        return read()

    result = ConditionalPut(b"ours", None, key.put(b"ours", None), vanish).run(Patience(5.0, 0.001))
    assert result.outcome is PutOutcome.MADE and key.sent == 2


def test_a_refused_condition_that_holds_is_tried_again() -> None:
    """Some stores answer concurrent writes with 412 where others say 409: the object is still the one to replace."""
    key = Key(StoreFailure(Fault.CONDITION, "PreconditionFailed"), present=b"old")
    assert replace(key).outcome is PutOutcome.MADE and key.sent == 2


def test_silence_to_the_end_is_unknown() -> None:
    for write in (create, replace):
        result = write(Key(*[SILENCE] * 100, present=b"old"), 0.05)
        assert result.outcome is PutOutcome.UNKNOWN and result.cause == "no answer in time"


def test_a_condition_that_fails_before_a_silent_read_is_unknown() -> None:
    """A gateway may have repeated our write: only what lies there tells."""
    key = Key(present=b"theirs")
    key.is_silent = True
    assert create(key, 0.05).outcome is PutOutcome.UNKNOWN


def test_a_refusal_after_silence_does_not_say_that_nothing_was_written() -> None:
    for write in (create, replace):
        key = Key(lost, DENIED, present=b"old" if write is replace else None)
        result = write(key)
        assert result.outcome is PutOutcome.UNKNOWN and result.cause == "AccessDenied" and key.present == b"ours"


@pytest.mark.parametrize("steps", [(DENIED,), (CONFLICT, DENIED), (REFUSED,) * 100, (CONFLICT,) * 100])
def test_a_write_that_never_reached_the_store_fails(steps: tuple[object, ...]) -> None:
    key = Key(*steps)
    with pytest.raises(RequestFailedError) as caught:
        create(key, 0.05)
    assert caught.value.failure == steps[-1] and key.present is None
