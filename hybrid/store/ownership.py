"""Which home writes a warehouse on an object store: one object, written with conditions only.

It keeps two homes from working on the same tables by mistake. What keeps commits whole is the log: each version of it
is written once, whoever writes. A home that has lost a warehouse learns it when it meets a version of another's, or by
the next look.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from hybrid.errors import ConflictError, DataError, StoreError
from hybrid.store.conditional_put import ObjectContent, PutOutcome, PutResult, refuse_silence
from hybrid.store.store_client import StoreClient

OWNER_KEY = ".warehouse.json"  # no table can have this name
_FORMAT = 1
# A home that was paused while another took over writes to a table that the other does not know at most this long.
_LOOK_EVERY_S = 10.0
# A look may be made under the lock of a half, and by several threads one after the other.
_PATIENCE_S, _FAILED_S = 10.0, 2.0


@dataclass(frozen=True)
class WarehouseOwner:
    """A home: its id, and the words for its place."""

    id: str
    words: str


@dataclass(frozen=True)
class Claim:
    """What the store says: the home that writes, since when (ISO 8601), and how often the warehouse changed hands."""

    owner: WarehouseOwner
    since: str
    epoch: int

    @classmethod
    def parse(cls, data: bytes, url: str) -> Claim:
        """The claim in the bytes of an object. DataError when it is damaged, or of a later format."""
        try:
            document = json.loads(data)
            if document["format"] == _FORMAT:
                return cls(WarehouseOwner(**document["owner"]), document["since"], document["epoch"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{url}/{OWNER_KEY} is damaged: {error}") from error
        raise DataError(f"{url}/{OWNER_KEY} has format {document['format']}, which a later version has written.")


class Ownership:
    """The ownership of a warehouse by a home. Thread-safe."""

    def __init__(self, client: StoreClient, owner: Callable[[], WarehouseOwner]) -> None:
        self._client, self._owner = client, owner
        self._lock = threading.Lock()
        # The latest failure, for those that waited for the same look, and when it was.
        self._failed: tuple[float, StoreError] | None = None
        self._looked: float | None = None  # when the store last said that it is this home, by the monotonic clock

    def look(self) -> Claim | None:
        """The claim on the store; None without one."""
        content = self._client.get(OWNER_KEY)
        return None if content is None else self._parsed(content)

    def require(self, *, is_recent_enough: bool = True) -> None:
        """ConflictError unless the store says that this home writes the warehouse.

        `is_recent_enough`: a look within the last seconds counts.
        """
        with self._lock:
            if is_recent_enough and self._looked is not None and time.monotonic() - self._looked < _LOOK_EVERY_S:
                return
            if self._failed is not None and time.monotonic() - self._failed[0] < _FAILED_S:
                raise StoreError(str(self._failed[1]), hint=self._failed[1].hint, fault=self._failed[1].fault)
            began = time.monotonic()
            try:
                content = self._client.get(OWNER_KEY, patience_s=_PATIENCE_S)
            except StoreError as error:
                self._failed = time.monotonic(), error
                raise
            claim = None if content is None else self._parsed(content)
            if claim is None:
                raise ConflictError(
                    f"{self._url} holds no warehouse any more: {OWNER_KEY} is missing.",
                    hint="Restore it, or name an empty prefix and `hybrid warehouse push`.",
                )
            if claim.owner.id != self._owner().id:
                raise written_by_another(self._url, claim)
            self._looked = began

    @property
    def id(self) -> str:
        """The id of this home."""
        return self._owner().id

    @property
    def words(self) -> str:
        """The words for this home's place."""
        return self._owner().words

    def is_mine(self, claim: Claim | None = None) -> bool:
        """Whether this home writes the warehouse, by a claim that was just read, or else by the store's."""
        claim = self.look() if claim is None else claim
        return claim is not None and claim.owner.id == self._owner().id

    def claim(self, *, continues: bool = False) -> None:
        """Make this home the one that writes a prefix without objects. ConflictError for any other prefix.

        `continues`: the prefix may have objects if this home has claimed it before.
        """
        claim = self.look()
        if claim is None:
            self._refuse_objects()
            result = self._client.create(OWNER_KEY, self._document(1))
            if not self.is_mine():  # another process of this home may have claimed it just now
                self._settle(result)
        elif claim.owner.id != self._owner().id:
            raise written_by_another(self._url, claim)
        elif not continues and self._client.list_folder().folders:
            raise ConflictError(f"{self._url} holds tables that this home no longer has.", hint="hybrid warehouse pull")

    def take_over(self, expected: Claim) -> Claim | None:
        """Make this home the one that writes. The claim before; None if it was this home's.

        ConflictError when there is no warehouse, or when somebody else has taken it over since `expected` was read.
        """
        content = self._client.get(OWNER_KEY)
        if content is None:
            raise ConflictError(f"There is no warehouse at {self._url}.", hint="Check the setting 'warehouse'.")
        claim = self._parsed(content)
        if claim.owner.id == self._owner().id:
            return None
        if claim != expected:
            raise written_by_another(self._url, claim)
        self._settle(self._client.replace(OWNER_KEY, self._document(claim.epoch + 1), content.etag))
        return claim

    def _refuse_objects(self) -> None:
        there = self._client.list_folder()
        names = [name for name in (*there.folders, *(item.key for item in there.objects)) if name]
        if names:
            raise ConflictError(
                f"{self._url} is not empty: it has {names[0]}. Nothing was written.",
                hint="Name a prefix of its own for the warehouse.",
            )

    def _settle(self, result: PutResult) -> None:
        if result.outcome is PutOutcome.MADE:
            return
        refuse_silence(result, self._url, OWNER_KEY)
        raise ConflictError(f"Another home claims {self._url} just now.", hint="hybrid warehouse show")

    def _document(self, epoch: int) -> bytes:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        document = {
            "format": _FORMAT, "owner": asdict(self._owner()), "since": since, "epoch": epoch, "put": uuid.uuid4().hex,
        }  # fmt: skip
        return json.dumps(document, indent=1).encode()

    def _parsed(self, content: ObjectContent) -> Claim:
        return Claim.parse(content.data, self._url)

    @property
    def _url(self) -> str:
        return self._client.location.url


def written_by_another(url: str, claim: Claim) -> ConflictError:
    """The error of a home that wants to write the warehouse of another one."""
    return ConflictError(
        f"The warehouse {url} is written by another home, {claim.owner.words}, since {claim.since}.",
        hint="hybrid warehouse pull --take-over (on the home that is to write from now on)",
    )
