"""A client of one prefix in an object store, with conditional writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from hybrid.errors import MachineError
from hybrid.store.conditional_put import (
    ConditionalPut,
    ObjectContent,
    Patience,
    PutResult,
    RequestFailedError,
    WrittenObject,
    repeated,
)
from hybrid.store.store_clock import StoreTime, read_store_time
from hybrid.store.store_faults import Fault, classify, store_error
from hybrid.store.store_location import StoreLocation, check_endpoint, parse_location

if TYPE_CHECKING:
    import obstore
    from obstore.store import S3Store

T = TypeVar("T")

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
# The smallest part of S3 but for the last one.
PART_BYTES = 5 << 20
_RANGE_BYTES = 8 << 20


@dataclass(frozen=True)
class StoreTuning:
    """Seconds: for a connection, for one request, and for an operation that repeats its requests after silence."""

    connect_s: float = 5.0
    request_s: float = 20.0
    patience_s: float = 45.0


@dataclass(frozen=True)
class ListedObject:
    """An object of a list, without its bytes. `key` is relative to the store's prefix, `modified` in whole seconds."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True)
class StoreFolder:
    """What a list by delimiter shows of a prefix: the next parts of longer keys, and the objects right below it."""

    folders: tuple[str, ...]
    objects: tuple[ListedObject, ...]


def open_store(url: str, tuning: StoreTuning | None = None) -> StoreClient:
    """A client of the store at `s3://bucket/prefix`; nothing is requested yet.

    Keys, region, endpoint and the style of addresses come from the environment, by the names that AWS gives them. A
    plain http endpoint is used if it is named as one. SpecError for a URL or an endpoint that cannot be, MachineError
    when obstore is not installed.
    """
    tuning = tuning or StoreTuning()
    location = parse_location(url)
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise MachineError(
            f"The object store {location.url} needs the package obstore, which is not installed.",
            hint="pip install 'hybrid[store]'",
        ) from error
    endpoint = next((check_endpoint(os.environ[name]) for name in _ENDPOINTS if os.environ.get(name)), "")
    store = S3Store(
        location.bucket,
        prefix=location.prefix or None,
        # The rest is in the environment. One object a request: a list of objects to delete has no order.
        config={"conditional_put": "etag", "disable_bulk_delete": True},
        client_options={
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=tuning.connect_s),
            "timeout": timedelta(seconds=tuning.request_s),
        },
        retry_config={"max_retries": 0},  # a conditional write is repeated here, where its outcome is compared
    )
    return StoreClient(location, store, tuning)


class StoreClient:
    """The objects below one prefix. Keys are relative to it. Thread-safe.

    Each operation repeats its requests after silence for the time of `tuning.patience_s`, then raises StoreError with
    the kind of the failure as its `fault`.
    """

    def __init__(self, location: StoreLocation, store: S3Store, tuning: StoreTuning) -> None:
        import obstore

        self.location, self.tuning = location, tuning
        self._store, self._obstore = store, obstore

    def get(self, key: str, patience_s: float | None = None) -> ObjectContent | None:
        """The object, or None if there is none. `patience_s` bounds the patience of this request further."""
        return self._repeated(f"read {key}", lambda: self._read(key), patience_s)

    def create(self, key: str, data: bytes) -> PutResult:
        """Write an object where there is none (If-None-Match): `MADE`, `EXISTS` or `UNKNOWN`.

        The bytes must be unlike those of every other write of the key: see `hybrid.store.conditional_put`.
        """
        return self._put(key, data, None)

    def replace(self, key: str, data: bytes, etag: str) -> PutResult:
        """Write over the object with this ETag (If-Match): `MADE`, `CHANGED` or `UNKNOWN`; bytes as for `create`."""
        return self._put(key, data, etag)

    def upload(self, key: str, data: bytes, part_bytes: int = PART_BYTES) -> WrittenObject:
        """Write an object without condition, in several parts if it is longer than one: for names never used twice."""
        return self._repeated(
            f"write {key}",
            lambda: _written(
                self._obstore.put(self._store, key, data, use_multipart=len(data) > part_bytes, chunk_size=part_bytes)
            ),
        )

    def size_of(self, key: str) -> int | None:
        """The bytes of an object, or None if there is none, or no bucket: an answer to HEAD does not say which."""

        def look() -> int | None:
            try:
                return int(self._obstore.head(self._store, key)["size"])
            except FileNotFoundError:
                return None

        return self._repeated(f"look at {key}", look)

    def upload_file(self, key: str, path: Path, part_bytes: int = PART_BYTES) -> None:
        """Write an object with the bytes of a file, in parts if it is longer than one; as `upload`, not in memory."""
        is_long = path.stat().st_size > part_bytes
        self._repeated(
            f"write {key}",
            lambda: self._obstore.put(self._store, key, path, use_multipart=is_long, chunk_size=part_bytes),
        )

    def download(self, key: str, path: Path) -> bool:
        """Write an object's bytes to a file, replacing what is there; False if there is no object.

        After an error the file may hold the beginning.
        """
        size = self.size_of(key)
        if size is None:
            return False
        with path.open("wb") as file:
            for start in range(0, size, _RANGE_BYTES):  # each within the time of a request, however long the object is
                _write(file, self._range(key, start, min(_RANGE_BYTES, size - start)))
        return True

    def delete(self, key: str) -> None:
        """Delete the object; no error if there is none."""

        def delete() -> None:
            try:
                self._obstore.delete(self._store, key)
            except FileNotFoundError as error:
                if classify(error).fault is not Fault.MISSING:
                    raise

        self._repeated(f"delete {key}", delete)

    def list_below(self, prefix: str = "", *, offset: str | None = None) -> list[ListedObject]:
        """The objects whose keys begin with `prefix/`, in the store's order; only those behind the key `offset`."""
        return self._repeated(
            f"list '{prefix}'",
            lambda: [
                _listed(meta) for meta in self._obstore.list(self._store, prefix or None, offset=offset).collect()
            ],
        )

    def list_folder(self, prefix: str = "") -> StoreFolder:
        """The objects right below a prefix, and the prefixes below it (delimiter `/`)."""

        def look() -> StoreFolder:
            found = self._obstore.list_with_delimiter(self._store, prefix or None)
            return StoreFolder(tuple(found["common_prefixes"]), tuple(map(_listed, found["objects"])))

        return self._repeated(f"list '{prefix}'", look)

    def time(self) -> StoreTime:
        """The store's time beside this machine's: `Date` of an answer to a request without signature."""
        signed = self._repeated(
            "read the time", lambda: self._obstore.sign(self._store, "GET", "-", timedelta(seconds=1))
        )
        return self._repeated("read the time", lambda: read_store_time(signed.partition("?")[0], self.tuning.request_s))

    def _put(self, key: str, data: bytes, etag: str | None) -> PutResult:
        mode: obstore.PutMode = "create" if etag is None else {"e_tag": etag}

        def send() -> WrittenObject:
            return _written(_asking(lambda: self._obstore.put(self._store, key, data, mode=mode, use_multipart=False)))

        write = ConditionalPut(data, etag, send, lambda: _asking(lambda: self._read(key)))
        try:
            return write.run(Patience(self.tuning.patience_s))
        except RequestFailedError as error:
            raise store_error(self.location, f"write {key}", error.failure) from error

    def _read(self, key: str) -> ObjectContent | None:
        try:
            answer = self._obstore.get(self._store, key)
            meta = answer.meta
            return ObjectContent(bytes(answer.bytes()), meta["e_tag"] or "", meta["last_modified"], meta["version"])
        except FileNotFoundError as error:
            if classify(error).fault is Fault.MISSING:
                return None
            raise

    def _range(self, key: str, start: int, length: int) -> bytes:
        return self._repeated(
            f"read {key}", lambda: bytes(self._obstore.get_range(self._store, key, start=start, length=length))
        )

    def _repeated(self, deed: str, call: Callable[[], T], patience_s: float | None = None) -> T:
        """The result of requests that may be sent again whatever has become of them."""
        patience = Patience(min(self.tuning.patience_s, self.tuning.patience_s if patience_s is None else patience_s))
        try:
            return repeated(lambda: _asking(call), patience)
        except RequestFailedError as error:
            raise store_error(self.location, deed, error.failure) from error


def _asking(call: Callable[[], T]) -> T:
    """The result of a call of obstore. Raises RequestFailedError, which shows nothing of a request."""
    from obstore.exceptions import BaseError

    try:
        return call()
    except (BaseError, OSError) as error:
        failure = classify(error)
    raise RequestFailedError(failure)


def _write(file: IO[bytes], chunk: bytes) -> None:
    """Write to a local file. Its disk's errors are not the store's: repeating the request would not help."""
    try:
        file.write(chunk)
    except OSError as error:
        raise MachineError(f"{file.name}: {error.strerror}.") from error


def _written(result: obstore.PutResult) -> WrittenObject:
    return WrittenObject(result["e_tag"] or "", result["version"])


def _listed(meta: obstore.ObjectMeta) -> ListedObject:
    return ListedObject(meta["path"], meta["size"], meta["e_tag"] or "", meta["last_modified"])
