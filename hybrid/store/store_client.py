"""A client of one prefix in an object store, with conditional writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from hybrid.errors import MachineError, StoreError
from hybrid.store.conditional_put import (
    ConditionalPut,
    ObjectContent,
    Patience,
    PutResult,
    RequestFailedError,
    WrittenObject,
    repeated,
)
from hybrid.store.store_backend import StoreBackend, StoreTuning, open_backend
from hybrid.store.store_clock import StoreTime, read_store_time
from hybrid.store.store_faults import Fault, classify, store_error
from hybrid.store.store_location import StoreKind, StoreLocation, check_key, parse_location

if TYPE_CHECKING:
    import obstore

T = TypeVar("T")

# The smallest part of S3 but for the last one.
PART_BYTES = 5 << 20
_RANGE_BYTES = 8 << 20
_ATTEMPTS = 10


@dataclass(frozen=True)
class ListedObject:
    """An object of a list, without its bytes. `key` is relative to the store's prefix, `modified` in whole seconds.

    `etag` is none that a condition of Google names.
    """

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True)
class _ObjectState:
    """What tells whether an object was written again: its bytes, ETag, and version or generation."""

    size: int
    etag: str | None
    version: str | None

    @classmethod
    def of(cls, meta: obstore.ObjectMeta) -> _ObjectState:
        return cls(int(meta["size"]), meta["e_tag"], meta["version"])


@dataclass(frozen=True)
class StoreFolder:
    """What a list by delimiter shows of a prefix: the next parts of longer keys, and the objects right below it."""

    folders: tuple[str, ...]
    objects: tuple[ListedObject, ...]


def open_store(url: str, tuning: StoreTuning | None = None) -> StoreClient:
    """A client of the store at `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`.

    Nothing is requested yet. Keys, account and endpoint come from the environment, by the names that obstore gives
    them. SpecError for a URL or an environment that cannot be, MachineError when obstore is not installed.
    """
    tuning = tuning or StoreTuning()
    location = parse_location(url)
    return StoreClient(location, open_backend(location, tuning), tuning)


class StoreClient:
    """The objects below one prefix. Keys are relative to it. Thread-safe.

    Each operation repeats its requests after silence for the time of `tuning.patience_s`, then raises StoreError with
    the kind of the failure as its `fault`. SpecError for a key that the store cannot have.
    """

    def __init__(self, location: StoreLocation, backend: StoreBackend, tuning: StoreTuning) -> None:
        import obstore

        self.location, self.tuning = location, tuning
        self._store, self._time_url, self._obstore = backend.store, backend.time_url, obstore

    def get(self, key: str, patience_s: float | None = None) -> ObjectContent | None:
        """The object, or None if there is none. `patience_s` bounds the patience of this request further."""
        return self._repeated(f"read {key}", lambda: self._read(key), patience_s)

    def create(self, key: str, data: bytes) -> PutResult:
        """Write an object where there is none (If-None-Match): `MADE`, `EXISTS` or `UNKNOWN`.

        The bytes must be unlike those of every other write of the key: see `hybrid.store.conditional_put`.
        """
        return self._put(key, data, None)

    def replace(self, key: str, data: bytes, etag: str) -> PutResult:
        """Write over the object with this ETag (If-Match; of Google the generation), and no other.

        `MADE`, `CHANGED` or `UNKNOWN`; bytes as for `create`.
        """
        return self._put(key, data, etag)

    def upload(self, key: str, data: bytes, part_bytes: int = PART_BYTES) -> WrittenObject:
        """Write an object without condition, in several parts if it is longer than one: for names never used twice."""
        check_key(self.location, key)
        is_long = len(data) > part_bytes
        return self._repeated(
            f"write {key}",
            lambda: self._written(
                self._obstore.put(self._store, key, data, use_multipart=is_long, chunk_size=part_bytes)
            ),
        )

    def size_of(self, key: str) -> int | None:
        """The bytes of an object, or None if there is none, or no bucket: an answer to HEAD does not say which."""
        state = self._state_of(key)
        return None if state is None else state.size

    def upload_file(self, key: str, path: Path, part_bytes: int = PART_BYTES) -> None:
        """Write an object with the bytes of a file, in parts if it is longer than one; as `upload`, not in memory."""
        check_key(self.location, key)
        is_long = path.stat().st_size > part_bytes
        self._repeated(
            f"write {key}",
            lambda: self._obstore.put(self._store, key, path, use_multipart=is_long, chunk_size=part_bytes),
        )

    def download(self, key: str, path: Path) -> bool:
        """Write an object's bytes to a file, replacing what is there; False if there is no object.

        All bytes are of one state of the object, also while others write it again. StoreError when they do so again
        and again. After an error the file may hold the beginning.
        """
        for _ in range(_ATTEMPTS):
            state = self._state_of(key)
            if state is None:
                return False
            with path.open("wb") as file:
                if self._write_state(key, state, file):
                    return True
        raise StoreError(f"{self.location.url}: somebody else writes {key} just now.", hint="Run it again.")

    def _write_state(self, key: str, state: _ObjectState, file: IO[bytes]) -> bool:
        """Write the bytes of an object's state to a file; False when the object is in another one by then, or gone."""
        # Each range within the time of a request, however long the object is.
        for start in range(0, state.size, _RANGE_BYTES):
            end = min(start + _RANGE_BYTES, state.size)
            try:
                found, data = self._range(key, start, end)
            except StoreError as error:  # such as a range behind the end of an object that is shorter now
                if error.fault is Fault.UNREACHABLE or self._state_of(key) == state:
                    raise
                return False
            if found != state:
                return False
            _write(file, data)
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

        def look() -> list[ListedObject]:
            found = map(_listed, self._obstore.list(self._store, prefix or None, offset=offset).collect())
            # Azure can begin a list with a key since 2026 only; a service that does not know this lists everything.
            is_from = offset is not None and self.location.kind is StoreKind.AZURE
            return [item for item in found if not is_from or item.key > (offset or "")]

        return self._repeated(f"list '{prefix}'", look)

    def list_folder(self, prefix: str = "") -> StoreFolder:
        """The objects right below a prefix, and the prefixes below it (delimiter `/`)."""

        def look() -> StoreFolder:
            found = self._obstore.list_with_delimiter(self._store, prefix or None)
            return StoreFolder(tuple(found["common_prefixes"]), tuple(map(_listed, found["objects"])))

        return self._repeated(f"list '{prefix}'", look)

    def has_replaced(self, key: str, etag: str) -> bool:
        """Whether an object of Google can still be read by a generation that was replaced: it keeps versions then."""

        def look() -> bool:
            try:
                self._obstore.get(self._store, key, options={"version": etag}).bytes()
                return True
            except FileNotFoundError:
                return False

        return self._repeated(f"read an older {key}", look)

    def time(self) -> StoreTime:
        """The store's time beside this machine's: `Date` of an answer to a request without signature."""
        url = self._repeated("read the time", self._time_url)
        return self._repeated("read the time", lambda: read_store_time(url, self.tuning.request_s))

    def _put(self, key: str, data: bytes, etag: str | None) -> PutResult:
        check_key(self.location, key)
        condition: obstore.UpdateVersion = {"version": etag} if self._has_generations else {"e_tag": etag}
        mode: obstore.PutMode = "create" if etag is None else condition

        def send() -> WrittenObject:
            return _asking(
                lambda: self._written(self._obstore.put(self._store, key, data, mode=mode, use_multipart=False))
            )

        write = ConditionalPut(data, etag, send, lambda: _asking(lambda: self._read(key)))
        try:
            return write.run(Patience(self.tuning.patience_s))
        except RequestFailedError as error:
            raise store_error(self.location, f"write {key}", error.failure) from error

    def _read(self, key: str) -> ObjectContent | None:
        try:
            answer = self._obstore.get(self._store, key)
            meta = answer.meta
            etag, version = self._state(meta["e_tag"], meta["version"])
            return ObjectContent(bytes(answer.bytes()), etag, meta["last_modified"], version)
        except FileNotFoundError as error:
            if classify(error).fault is Fault.MISSING:
                return None
            raise

    def _written(self, result: obstore.PutResult) -> WrittenObject:
        return WrittenObject(*self._state(result["e_tag"], result["version"]))

    def _state(self, etag: str | None, version: str | None) -> tuple[str, str | None]:
        """What conditions name, and the version if the store keeps them. Every answer of Google has a generation."""
        return (version or "", None) if self._has_generations else (etag or "", version)

    @property
    def _has_generations(self) -> bool:
        return self.location.kind is StoreKind.GOOGLE

    def _state_of(self, key: str) -> _ObjectState | None:
        def look() -> _ObjectState | None:
            try:
                return _ObjectState.of(self._obstore.head(self._store, key))
            except FileNotFoundError:
                return None

        return self._repeated(f"look at {key}", look)

    def _range(self, key: str, start: int, end: int) -> tuple[_ObjectState, bytes]:
        """Bytes of an object, and the state that has them."""

        def read() -> tuple[_ObjectState, bytes]:
            answer = self._obstore.get(self._store, key, options={"range": (start, end)})
            return _ObjectState.of(answer.meta), bytes(answer.bytes())

        return self._repeated(f"read {key}", read)

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


def _listed(meta: obstore.ObjectMeta) -> ListedObject:
    return ListedObject(meta["path"], meta["size"], meta["e_tag"] or "", meta["last_modified"])
