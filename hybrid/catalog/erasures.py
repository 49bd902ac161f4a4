"""Storage of erasures: a certificate each, and the request while the erasure is open.

<home>/erasures/<id>.json       the certificate: what was read, done and left; it names no value
<home>/erasures/<id>.request    the conditions, readable by the home's user alone; overwritten and removed at the end
<home>/erasures/<id>.claimed    more than the one who began it has taken it up: who only looked must leave it
<home>/erasures/.lock           held by the erasure that runs; it holds its id
<home>/erasures/.begin          held for a moment by who begins, takes up, discards or gives back an erasure

The request is written before the certificate. A request without one was never promised, and is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from hybrid.errors import ConflictError, DataError, NotFoundError
from hybrid.runtime import durable
from hybrid.runtime.file_lock import file_lock, is_locked, try_lock
from hybrid.runtime.sentence_repr import shown_as_sentence

_FOLDER, _REQUEST, _CERTIFICATE, _CLAIMED = "erasures", ".request", ".json", ".claimed"
_LOCK, _BEGIN = ".lock", ".begin"
_ONE_S = 1.0
# About 50 ms a guess, for whoever tries a list of all customers.
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


class ErasureState(StrEnum):
    """The stored state of an erasure. PROVEN: nothing is left but its request, which is being removed."""

    OPEN = "OPEN"
    PROVEN = "PROVEN"
    DONE = "DONE"
    DISCARDED = "DISCARDED"


_OVER = frozenset({ErasureState.DONE, ErasureState.DISCARDED})


@dataclass(frozen=True)
class ErasedTable:
    """A table of an erasure. `condition` has `?` for its constants; `digest` is `condition_digest` of the real one.

    `before` holds what the first reading found, place by place, `after` what the last purge left. `messages` are the
    offsets of matching messages in Kafka. `undecided` rejected messages and `markers` (delete markers) stay.
    """

    table: str
    columns: tuple[str, ...]
    condition: str
    salt: str
    digest: str
    before: tuple[Mapping[str, Any], ...] = ()
    before_at: str | None = None
    after: tuple[Mapping[str, Any], ...] = ()
    after_at: str | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    undecided: int = 0
    markers: int = 0


@shown_as_sentence
@dataclass(frozen=True)
class ErasureCertificate:
    """An erasure without its conditions. `outside` are `{"place", "detail", "who"}`: who must act where.

    `attempts` counts runs; `error` is that of the last one. `dropped_copies` also removes copies of dropped tables.
    """

    id: str
    created_at: str
    tables: tuple[ErasedTable, ...]
    state: ErasureState = ErasureState.OPEN
    reason: str | None = None
    user: str | None = None
    undecided: bool = False
    dropped_copies: bool = False
    attempts: int = 0
    finished_at: str | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    outside: tuple[Mapping[str, str], ...] = ()
    texts: int = 0
    sentence: str = "Nothing was removed yet."
    error: str | None = None

    @property
    def did_something(self) -> bool:
        """Whether a matching row was found, or a text was masked."""
        return bool(self.texts or any(place["matching"] for table in self.tables for place in table.before))

    def to_json(self) -> dict[str, Any]:
        """The certificate in its stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ErasureCertificate:
        """The inverse of `to_json`."""
        lists = {name: tuple(document[name]) for name in ("steps", "outside")}
        tables = tuple(_table(table) for table in document["tables"])
        return cls(**{**document, **lists, "tables": tables, "state": ErasureState(document["state"])})


class ErasureStore:
    """The erasures of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER

    def create(self, certificate: ErasureCertificate, conditions: Mapping[str, str]) -> None:
        """Store a request, then its certificate. Call it within `beginning`: it removes requests of nobody."""
        durable.make_private(self._folder)
        self._remove_orphans()
        self._write_request(certificate.id, conditions)
        self.save(certificate)

    def save(self, certificate: ErasureCertificate) -> None:
        """Store a certificate atomically."""
        durable.write_text(self._certificate(certificate.id), json.dumps(certificate.to_json(), indent=1))

    def find(self, erasure_id: str) -> ErasureCertificate:
        """The certificate with that id; NotFoundError, with a suggestion, when there is none."""
        ids = [path.name.removesuffix(_CERTIFICATE) for path in self._folder.glob(f"*{_CERTIFICATE}")]
        if erasure_id not in ids:  # an id must not be used as a path
            raise NotFoundError.named("Erasure", erasure_id, ids)
        return self._read(self._certificate(erasure_id))

    def all(self) -> list[ErasureCertificate]:
        """All certificates, newest first."""
        certificates = [self._read(path) for path in self._folder.glob(f"*{_CERTIFICATE}")]
        return sorted(certificates, key=lambda certificate: (certificate.created_at, certificate.id), reverse=True)

    def conditions(self, erasure_id: str) -> dict[str, str] | None:
        """The conditions of an open erasure by table; None when they are removed."""
        try:
            document = json.loads(self._request(erasure_id).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(f"The request of '{erasure_id}' cannot be read.", hint=_again(erasure_id)) from error
        return {str(table): str(where) for table, where in document.items()}

    def forget(self, erasure_id: str) -> None:
        """Overwrite and remove the conditions of an erasure."""
        _destroy(self._request(erasure_id))
        self._claim(erasure_id).unlink(missing_ok=True)

    def remove(self, erasure_id: str) -> None:
        """Remove an erasure with its certificate. Call it within `beginning`."""
        self.forget(erasure_id)  # first: an open erasure without its request can be discarded
        self._certificate(erasure_id).unlink(missing_ok=True)
        durable.sync(self._folder)

    def claim(self, erasure_id: str) -> None:
        """Record that somebody else has taken up an erasure, or that it runs. Call it within `beginning`."""
        self._claim(erasure_id).touch(0o600)

    def is_claimed(self, erasure_id: str) -> bool:
        """Whether an erasure is more than a look of the one who began it."""
        return self._claim(erasure_id).exists()

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Lock for a moment in which erasures are begun, taken up or given back; also while another one runs."""
        durable.make_private(self._folder)
        with file_lock(self._folder / _BEGIN):
            yield

    def running(self) -> str | None:
        """The id of the erasure that runs now; None without one."""
        lock = self._folder / _LOCK
        return lock.read_text(encoding="utf-8") if is_locked(lock) else None

    @contextmanager
    def alone(self, erasure_id: str) -> Iterator[None]:
        """Lock for running an erasure. ConflictError while another process runs one."""
        durable.make_private(self._folder)
        with (self._folder / _LOCK).open("a") as file:
            if not try_lock(file, _ONE_S):
                raise ConflictError(
                    f"Another erasure is running: '{self.running()}'. Nothing was changed; '{erasure_id}' stays open.",
                    hint=f"hybrid erase resume {erasure_id}, when it is done",
                )
            file.truncate(0)
            file.write(erasure_id)
            file.flush()
            yield

    def _write_request(self, erasure_id: str, conditions: Mapping[str, str]) -> None:
        durable.write_text(self._request(erasure_id), json.dumps(dict(conditions)), private=True)

    def _remove_orphans(self) -> None:
        """Removes requests that no certificate needs.

        Without a certificate their processes died before they promised anything. One that is over has no request.
        """
        for path in self._folder.glob(f"*{_REQUEST}*"):
            certificate = self._certificate(path.name.partition(_REQUEST)[0])
            if not certificate.exists() or self._read(certificate).state in _OVER:
                _destroy(path)

    def _request(self, erasure_id: str) -> Path:
        return self._folder / f"{erasure_id}{_REQUEST}"

    def _claim(self, erasure_id: str) -> Path:
        return self._folder / f"{erasure_id}{_CLAIMED}"

    def _certificate(self, erasure_id: str) -> Path:
        return self._folder / f"{erasure_id}{_CERTIFICATE}"

    def _read(self, path: Path) -> ErasureCertificate:
        try:
            return ErasureCertificate.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} cannot be read as a certificate: {error!r}.") from error


def condition_digest(table: str, condition: str, salt: str) -> str:
    """The digest by which whoever knows a condition can recognise it. It is slow on purpose."""
    text = f"{table}\n{condition.strip()}".encode()
    return hashlib.scrypt(text, salt=bytes.fromhex(salt), **_SCRYPT).hex()


def new_salt() -> str:
    """A fresh salt, in hex."""
    return os.urandom(16).hex()


def replaced_table(certificate: ErasureCertificate, changed: ErasedTable) -> tuple[ErasedTable, ...]:
    """The tables of a certificate with one changed."""
    return tuple(changed if table.table == changed.table else table for table in certificate.tables)


def _table(document: Mapping[str, Any]) -> ErasedTable:
    names: Sequence[str] = ("columns", "before", "after", "messages")
    return ErasedTable(**{**document, **{name: tuple(document[name]) for name in names}})


def _again(erasure_id: str) -> str:
    return f"hybrid erase discard {erasure_id}, and begin it again"


def _destroy(path: Path) -> None:
    """Overwrites a file and removes it: its blocks hold the condition no longer where the disk writes in place."""
    try:
        with path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            file.write(b"\0" * size)
    except FileNotFoundError:
        return
    durable.sync(path)
    path.unlink(missing_ok=True)
    durable.sync(path.parent)
