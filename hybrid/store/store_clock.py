"""The clock of an object store, by the `Date` of its answers."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class StoreTime:
    """Seconds since 1970 by the store's clock and by this machine's, at the same moment but for `within_s`."""

    store_s: float
    machine_s: float
    within_s: float

    @property
    def ahead_s(self) -> float:
        """By how many seconds this machine's clock is ahead of the store's."""
        return self.machine_s - self.store_s


def read_store_time(url: str, timeout_s: float) -> StoreTime:
    """The time of the server at `url`. An answer that refuses the request tells it, too.

    OSError when the server does not answer, or its answer has no time.
    """
    request = urllib.request.Request(url, method="HEAD")
    began, started = time.time(), time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as refusal:
        headers = refusal.headers
        refusal.close()
    except http.client.HTTPException as error:
        raise OSError("the answer is none of HTTP") from error
    took_s = time.monotonic() - started
    # A `Date` has no fractions: on average half a second has passed since.
    return StoreTime(_date(headers) + 0.5, began + took_s / 2, took_s / 2 + 0.5)


def _date(headers: Message) -> float:
    try:
        return parsedate_to_datetime(headers["Date"] or "").timestamp()
    except ValueError as error:
        raise OSError("the answer has no Date") from error
