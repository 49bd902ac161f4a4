"""Requests of S3 that obstore does not have. obstore signs them, so keys, roles and tokens are found as for all others.

It signs an address below its endpoint, and the endpoint may end with a query (docs/adr/0072). What it adds behind the
endpoint becomes the value of a parameter `x-id`: S3 ignores parameters that begin with `x-`.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Literal
from urllib.parse import quote, urlencode

from hybrid.store.conditional_put import Patience, RequestFailedError, repeated
from hybrid.store.store_backend import StoreTuning, open_s3_at
from hybrid.store.store_faults import classify
from hybrid.store.store_location import StoreLocation

Method = Literal["GET", "DELETE"]

_SIGNED_FOR = timedelta(minutes=15)


class S3Requests:
    """Signed requests to one bucket, each sent again after silence for the time of `tuning.patience_s`. Thread-safe."""

    def __init__(self, location: StoreLocation, tuning: StoreTuning) -> None:
        self._location, self._tuning = location, tuning

    def send(self, method: Method, key: str, query: Mapping[str, str]) -> bytes:
        """The answer's bytes. `key` is relative to the bucket; empty: the bucket itself. RequestFailedError."""
        return repeated(lambda: self._sent(method, key, query), Patience(self._tuning.patience_s))

    def _sent(self, method: Method, key: str, query: Mapping[str, str]) -> bytes:
        from obstore.exceptions import BaseError

        try:
            request = urllib.request.Request(self._signed(method, key, query), method=method)
            with urllib.request.urlopen(request, timeout=self._tuning.request_s) as answer:
                data: bytes = answer.read()
                return data
        except urllib.error.HTTPError as refusal:
            words = f"status code: {refusal.code} {refusal.read(1 << 16).decode('utf-8', 'replace')}"
            failure = classify(BaseError(words))
        except http.client.HTTPException as error:
            failure = classify(OSError(str(error)))
        except (BaseError, OSError) as error:
            failure = classify(error)
        raise RequestFailedError(failure)

    def _signed(self, method: Method, key: str, query: Mapping[str, str]) -> str:
        from obstore import sign

        path = f"/{quote(key, safe='/~')}" if key else ""
        endpoint = f"{self._bucket}{path}?{urlencode(query, quote_via=quote)}&x-id="
        return sign(open_s3_at(self._location.bucket, self._tuning, endpoint), method, "-", _SIGNED_FOR)

    @cached_property
    def _bucket(self) -> str:
        """The bucket's address, as obstore makes it from the environment."""
        from obstore import sign

        url = sign(open_s3_at(self._location.bucket, self._tuning), "GET", "-", _SIGNED_FOR)
        return url.partition("?")[0].removesuffix("/-")
