"""Conditional writes whose outcome is known: repeated with the same bytes until the store says what holds.

A write is undecided from the moment it was sent until the store answers: it may be carried out minutes later. So it is
never reported as "not written" after silence. It is sent again under the same condition, and when the store says that
the condition does not hold, the bytes that lie there tell whose write it was. This needs bytes that no other write of
the key ever has: each writer puts an identifier of its own into them. ETags of equal bytes are equal, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from hybrid.errors import StoreError
from hybrid.runtime.backoff import Backoff
from hybrid.store.store_faults import Fault, StoreFailure

T = TypeVar("T")

_PAUSE_LONGEST_S = 2.0


class PutOutcome(StrEnum):
    """`MADE`: the store has carried out the write. `EXISTS`, `CHANGED`: other bytes lie there, or none.

    `UNKNOWN`: the store has stayed silent. The write may be there, or come yet: only what lies there later tells.
    """

    MADE = "made"
    EXISTS = "exists"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ObjectContent:
    """The bytes of an object; `modified` is the store's time of its last write, in whole seconds.

    `etag` is what a condition names: the ETag, or Google's generation. `version` only if the store keeps versions.
    """

    data: bytes
    etag: str
    modified: datetime
    version: str | None = None


@dataclass(frozen=True)
class WrittenObject:
    """What the store says of a write: `etag` and `version` as of `ObjectContent`."""

    etag: str
    version: str | None = None


@dataclass(frozen=True)
class PutResult:
    """How a conditional write ended.

    `etag` and `version` are of the object that was made. `present` is the object that lies there instead; None: none,
    or not known. `cause` says why the outcome is unknown.
    """

    outcome: PutOutcome
    etag: str | None = None
    version: str | None = None
    present: ObjectContent | None = None
    cause: str = ""
    was_silent: bool = False


def refuse_silence(result: PutResult, url: str, key: str) -> None:
    """StoreError when the store has not said whether it carried out the write of a key."""
    if result.outcome is PutOutcome.UNKNOWN:
        raise StoreError(f"{url}: the store did not say whether it wrote {key}: {result.cause}.")


class RequestFailedError(Exception):
    """A request that failed; `failure` says how."""

    def __init__(self, failure: StoreFailure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


class Patience:
    """The time for which an operation repeats its requests. Pauses grow from `pause_s` to 2 s."""

    def __init__(self, seconds: float, pause_s: float = 0.05) -> None:
        self._until = time.monotonic() + seconds
        self._backoff = Backoff(pause_s, _PAUSE_LONGEST_S)

    def is_left_after_pause(self) -> bool:
        """Pause, unless the time is over after it; whether another attempt may begin."""
        pause_s = self._backoff.next_s()
        if time.monotonic() + pause_s >= self._until:
            return False
        time.sleep(pause_s)
        return True


def repeated(request: Callable[[], T], patience: Patience) -> T:
    """The result of a request that may be sent again, whatever became of it. RequestFailedError at the end."""
    while True:
        try:
            return request()
        except RequestFailedError as error:
            if not error.failure.is_passing or not patience.is_left_after_pause():
                raise


class ConditionalPut:
    """One conditional write of `data`. `etag` is that of the object to replace; None: there must be no object.

    `send` sends the write once, and `read` reads the key; both raise RequestFailedError.
    """

    def __init__(
        self,
        data: bytes,
        etag: str | None,
        send: Callable[[], WrittenObject],
        read: Callable[[], ObjectContent | None],
    ) -> None:
        self._data, self._etag = data, etag
        self._send, self._read = send, read
        self._is_undecided = False

    def run(self, patience: Patience) -> PutResult:
        """Send the write until its outcome is known, or the time is over.

        Raises RequestFailedError when the store refuses the write, or was never reached: then nothing was written.
        """
        while True:
            try:
                made = self._send()
                return self._result(PutOutcome.MADE, made.etag, made.version)
            except RequestFailedError as error:
                failure = error.failure
            if failure.fault in {Fault.CONDITION, Fault.MISSING}:
                result = self._compared(patience, failure)
            else:
                result = self._refused(failure)
            if result is not None:
                return result
            if not patience.is_left_after_pause():
                return self._given_up(failure)

    def _compared(self, patience: Patience, failure: StoreFailure) -> PutResult | None:
        """Whose object keeps the condition from holding; None: none does any more, so the write is sent again."""
        try:
            present = repeated(self._read, patience)
        except RequestFailedError as error:
            return self._result(PutOutcome.UNKNOWN, cause=error.failure.cause)
        if present is not None and present.data == self._data:  # an attempt without an answer, or a proxy that repeats
            return self._result(PutOutcome.MADE, present.etag, present.version)
        if self._etag is None:
            return self._result(PutOutcome.EXISTS, present=present) if present is not None else None
        is_still_it = present is not None and present.etag == self._etag
        return None if is_still_it else self._result(PutOutcome.CHANGED, present=present)

    def _refused(self, failure: StoreFailure) -> PutResult | None:
        """None when the write may be sent again. Raises RequestFailedError if no attempt can have been carried out."""
        self._is_undecided |= failure.may_be_done
        if failure.is_passing:
            return None
        return self._given_up(failure)

    def _given_up(self, failure: StoreFailure) -> PutResult:
        if not self._is_undecided:
            raise RequestFailedError(failure)
        return self._result(PutOutcome.UNKNOWN, cause=failure.cause)

    def _result(
        self,
        outcome: PutOutcome,
        etag: str | None = None,
        version: str | None = None,
        present: ObjectContent | None = None,
        cause: str = "",
    ) -> PutResult:
        return PutResult(outcome, etag, version, present, cause, self._is_undecided)
