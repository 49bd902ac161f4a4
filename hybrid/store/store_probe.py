"""Whether an object store keeps what a warehouse on it would rely on. The store is asked, not its documentation."""

from __future__ import annotations

import hashlib
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from threading import Barrier

from hybrid.errors import StoreError
from hybrid.store.conditional_put import PutOutcome, PutResult
from hybrid.store.object_versions import NULL, ObjectVersions
from hybrid.store.store_client import PART_BYTES, StoreClient
from hybrid.store.store_faults import Fault
from hybrid.store.store_location import StoreKind
from hybrid.store.store_remedies import remedy

CLOCK_DIFFERENCE_MAX_S = 30.0
_NAMES = 12
_STALE = "Ask for direct access: a cache or a replica answers in between."
_CONDITIONS = {
    StoreKind.S3: ("If-None-Match", "If-Match"),
    StoreKind.AZURE: ("If-None-Match", "If-Match"),
    StoreKind.GOOGLE: ("generation 0", "the generation"),
}
_SOFT_DELETE = "soft delete, which keeps what was deleted for some days, is not seen from here"
_STAYS = "what vacuum deletes stays as an older version, and is paid for"
_REMOVE_VERSIONS = "Let a lifecycle rule remove noncurrent versions, or take a bucket without versions and object lock."


class Verdict(StrEnum):
    """`NOTE`: reported and not judged. `UNCHECKED`: not known, so the store is not found fit."""

    FIT = "fit"
    UNFIT = "not fit"
    UNCHECKED = "not checked"
    NOTE = "note"


@dataclass(frozen=True)
class StoreCheck:
    """One property of a store: the verdict, what was seen, and what would help."""

    check: str
    verdict: Verdict
    seen: str
    hint: str | None = None


@dataclass(frozen=True)
class ProbeTuning:
    """How often things are tried: writers at once, races of them, rounds of the other checks, timed requests."""

    writers: int = 32
    races: int = 3
    rounds: int = 8
    timed: int = 11


def is_fit(checks: Sequence[StoreCheck]) -> bool:
    """Whether nothing that was checked speaks against the store, and all was."""
    return all(check.verdict in {Verdict.FIT, Verdict.NOTE} for check in checks)


def probe_store(client: StoreClient, tuning: ProbeTuning | None = None) -> list[StoreCheck]:
    """The properties of a store, in the order of the checks.

    Writes below a random prefix `hybrid-probe-...` of the client's, and deletes what it wrote.
    """
    probe = _Probe(client, tuning or ProbeTuning())
    checks = [probe.checked("clock", probe.clock)]
    try:
        checks.append(probe.checked("access", probe.access))
        if checks[-1].verdict is Verdict.FIT:
            checks += [probe.checked(name, check) for name, check in probe.others()]
        else:
            checks += [StoreCheck(name, Verdict.UNCHECKED, "needs access") for name, _ in probe.others()]
    finally:
        removal = [probe.checked("cleanup", probe.cleanup)] if probe.has_written else []
    return [*checks, *removal]


class _Probe:
    """The checks; each returns what it saw, or raises `_UnfitError` or StoreError."""

    def __init__(self, client: StoreClient, tuning: ProbeTuning) -> None:
        self._client, self._tuning = client, tuning
        self._kind = client.location.kind
        self._no_conditions = remedy(self._kind, Fault.NO_CONDITIONS)
        self._creating, self._replacing = _CONDITIONS[self._kind]
        self._folder = f"hybrid-probe-{secrets.token_hex(8)}"
        self._versions = set[str]()
        self.has_written = False

    def checked(self, name: str, check: Callable[[], StoreCheck | str]) -> StoreCheck:
        try:
            seen = check()
        except _UnfitError as error:
            return StoreCheck(name, error.verdict, str(error), error.hint)
        except StoreError as error:
            return StoreCheck(name, Verdict.UNFIT, str(error), error.hint)
        return seen if isinstance(seen, StoreCheck) else StoreCheck(name, Verdict.FIT, seen)

    def others(self) -> list[tuple[str, Callable[[], StoreCheck | str]]]:
        return [
            ("create", self.create),
            ("replace", self.replace),
            ("read", self.read),
            ("list", self.list_names),
            ("delete", self.delete),
            ("versions", self.versions),
            ("multipart", self.multipart),
            ("latency", self.latency),
        ]

    def clock(self) -> str:
        moment = self._client.time()
        ahead_s = moment.ahead_s
        seen = f"this machine's clock is {abs(ahead_s):.1f} s {'ahead of' if ahead_s > 0 else 'behind'} the store's"
        if abs(ahead_s) - moment.within_s > CLOCK_DIFFERENCE_MAX_S:
            raise _UnfitError(f"{seen}; {CLOCK_DIFFERENCE_MAX_S:.0f} s are the most", remedy(self._kind, Fault.CLOCK))
        return f"{seen}, within {moment.within_s:.1f} s"

    def access(self) -> str:
        key, data = self._key("access"), _unique()
        self._client.upload(key, data)
        self.has_written = True
        present = self._client.get(key)
        if present is None or present.data != data:
            raise _UnfitError("an object that was just written is not there, or has other bytes", _STALE)
        self._client.list_below(self._folder)
        self._client.delete(key)
        return "an object was written, read, listed and deleted"

    def create(self) -> str:
        for race in range(self._tuning.races):
            key = self._key(f"create-{race}")
            self._race(key, self._creating, partial(self._client.create, key))
            self._refused(self._client.create(key, _unique()), f"a second write with {self._creating}")
        return self._races(self._creating)

    def replace(self) -> str:
        for race in range(self._tuning.races):
            key = self._key(f"replace-{race}")
            etag = self._made(key)
            self._race(key, self._replacing, partial(self._client.replace, key, etag=etag))
            for stale_key, what in ((key, "a state of before"), (self._key("never"), "no object there")):
                late = self._client.replace(stale_key, _unique(), etag)
                self._refused(late, f"a write with {self._replacing} and {what}")
        return self._races(self._replacing)

    def _races(self, condition: str) -> str:
        races, writers = self._tuning.races, self._tuning.writers
        return f"{races} times {writers} writers at once with {condition}: one won each time, later ones were refused"

    def read(self) -> str:
        for at in range(self._tuning.rounds):
            key, first, second = self._key(f"read-{at}"), _unique(), _unique()
            self._client.get(key)  # a cache may remember that it was missing
            etag = self._made(key, first)
            self._expect(key, first, "created")
            self._client.replace(key, second, etag)
            self._expect(key, second, "replaced")
        return f"{self._tuning.rounds} objects were read right after they were created and replaced"

    def list_names(self) -> str:
        prefix = self._key("list")
        names = [f"{prefix}/{at % 3}/{at:02d}" for at in range(_NAMES)]
        for at, name in enumerate(names):
            self._made(name)
            listed = [found.key for found in self._client.list_below(prefix)]
            if listed != sorted(names[: at + 1]):
                raise _UnfitError(f"a list after {at + 1} writes has {len(listed)} names, or another order", _STALE)
        folder = sorted(name for name in names if name.startswith(f"{prefix}/1/"))
        behind = [found.key for found in self._client.list_below(f"{prefix}/1", offset=folder[0])]
        if behind != folder[1:]:
            raise _UnfitError("a list from a name on (start-after) has other names", None)
        if self._client.list_folder(prefix).folders != tuple(f"{prefix}/{at}" for at in range(3)):
            raise _UnfitError("a list by delimiter has other prefixes", None)
        return f"{_NAMES} lists had each name right after its write, in order; start-after and delimiter hold"

    def delete(self) -> str:
        for at in range(self._tuning.rounds):
            key = self._key(f"delete/{at}")
            self._made(key)
            if self._client.get(key) is None or len(self._client.list_below(self._key("delete"))) != 1:
                raise _UnfitError("an object is not read or not listed after it was created", _STALE)
            self._client.delete(key)
            self._client.delete(key)
            if self._client.get(key) is not None or self._client.list_below(self._key("delete")):
                raise _UnfitError("an object is read or listed after it was deleted", _STALE)
        return f"{self._tuning.rounds} objects were neither read nor listed right after they were deleted"

    def versions(self) -> StoreCheck | str:
        if self._kind is StoreKind.GOOGLE:
            return self._generations()
        if self._kind is StoreKind.S3:
            return self._versions_of_s3()
        if self._versions:
            return _note_of_versions(f"versioning is on: {_STAYS}")
        return f"answers name no versions: versioning is off; {_SOFT_DELETE}"

    def _versions_of_s3(self) -> StoreCheck | str:
        """Whether a bucket keeps versions, and what a purge, which removes older ones, can do there."""
        versioning = self._versioning_of_s3()
        if not versioning:
            return "answers name no versions: versioning and object lock are off, or the store does not tell"
        if versioning == "Suspended":
            return _note_of_versions(
                "versioning is suspended: what was deleted while it was on stays as an older version, and is paid for. "
                "A purge is refused while objects have versions from before it was on"
            )
        seen = f"versioning is on: {_STAYS}"
        try:
            retention = ObjectVersions(self._client).retention()
        except StoreError as error:
            return StoreCheck("versions", Verdict.NOTE, f"{seen}. A purge is refused: {error}", error.hint)
        if retention:
            return _note_of_versions(f"{seen}. Object lock keeps each object for {retention}: a purge is refused")
        return _note_of_versions(f"{seen}. A purge removes those of its table, and needs s3:DeleteObjectVersion")

    def _versioning_of_s3(self) -> str:
        """`Enabled`, `Suspended` or empty: what the bucket says, or without that right what its answers have shown."""
        try:
            return ObjectVersions(self._client).versioning()
        except StoreError:
            shown = "Suspended" if self._versions == {NULL} else "Enabled"
            return shown if self._versions else ""

    def _generations(self) -> StoreCheck | str:
        """Google names a generation in every answer: one that was replaced can be read only if it keeps versions."""
        key = self._key("versions")
        first = self._made(key)
        self._client.replace(key, _unique(), first)
        if self._client.has_replaced(key, first):
            return _note_of_versions(f"versioning is on, since an object that was replaced can be read: {_STAYS}")
        return f"an object that was replaced cannot be read: versioning is off; {_SOFT_DELETE}"

    def multipart(self) -> str:
        key, data = self._key("multipart"), secrets.token_bytes(PART_BYTES + (1 << 20))
        self._client.upload(key, data)
        present = self._client.get(key)
        digest = hashlib.sha256(data).hexdigest()
        if present is None or hashlib.sha256(present.data).hexdigest() != digest:
            raise _UnfitError(f"{len(data)} bytes written in two parts have another SHA-256 when read", None)
        return f"{len(data) >> 20} MiB in two parts were read with the same SHA-256"

    def latency(self) -> StoreCheck:
        keys = [self._key(f"latency-{at}") for at in range(self._tuning.timed)]
        took = {
            "create": [_timed_ms(partial(self._made, key)) for key in keys],
            "read": [_timed_ms(partial(self._client.get, key)) for key in keys],
            "list": [_timed_ms(lambda: self._client.list_below(self._key("list"))) for _ in keys],
        }
        seen = ", ".join(f"{name} {statistics.median(times):.1f} ms" for name, times in took.items())
        return StoreCheck(
            "latency", Verdict.NOTE, f"median of {self._tuning.timed} requests one after the other: {seen}"
        )

    def cleanup(self) -> str:
        for found in self._client.list_below(self._folder):
            self._client.delete(found.key)
        left = len(self._client.list_below(self._folder))
        if left:
            raise _UnfitError(f"{left} objects are left below {self._client.location.url}/{self._folder}", None)
        return "what was written is deleted"

    def _race(self, key: str, condition: str, write: Callable[[bytes], PutResult]) -> None:
        """Let all writers write at once. Raises `_UnfitError` unless one won, and its bytes lie there."""
        bodies = [_unique() for _ in range(self._tuning.writers)]
        start = Barrier(self._tuning.writers)

        def wait_and_write(body: bytes) -> PutResult:
            start.wait(timeout=60)
            return write(body)

        with ThreadPoolExecutor(self._tuning.writers) as pool:
            results = list(pool.map(wait_and_write, bodies))
        silent = sum(result.outcome is PutOutcome.UNKNOWN for result in results)
        if silent:
            raise _UnfitError(
                f"{silent} of {self._tuning.writers} writes at once had no answer", None, Verdict.UNCHECKED
            )
        won = [body for body, result in zip(bodies, results, strict=True) if result.outcome is PutOutcome.MADE]
        self._note(*results)
        if len(won) != 1:
            raise _UnfitError(
                f"of {self._tuning.writers} writers at once with {condition} {len(won)} won, not one",
                self._no_conditions,
            )
        self._expect(key, won[0], "written by the winner")

    def _refused(self, result: PutResult, what: str) -> None:
        """Raises `_UnfitError` unless the condition of a write did not hold."""
        if result.outcome not in {PutOutcome.EXISTS, PutOutcome.CHANGED}:
            is_silent = result.outcome is PutOutcome.UNKNOWN
            verdict = Verdict.UNCHECKED if is_silent else Verdict.UNFIT
            raise _UnfitError(f"{what}: {result.outcome}", None if is_silent else self._no_conditions, verdict)

    def _made(self, key: str, data: bytes | None = None) -> str:
        """The ETag of a new object."""
        result = self._client.create(key, _unique() if data is None else data)
        if result.outcome is not PutOutcome.MADE or not result.etag:
            raise _UnfitError(f"a new object could not be created: {result.outcome} {result.cause}".rstrip(), None)
        self._note(result)
        return result.etag

    def _note(self, *results: PutResult) -> None:
        self._versions |= {result.version for result in results if result.version}

    def _expect(self, key: str, data: bytes, how: str) -> None:
        present = self._client.get(key)
        if present is None or present.data != data:
            raise _UnfitError(
                f"an object that was just {how} is read {'with other bytes' if present else 'as missing'}", _STALE
            )

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}"


class _UnfitError(Exception):
    """A property that the store has not, with what would help."""

    def __init__(self, seen: str, hint: str | None, verdict: Verdict = Verdict.UNFIT) -> None:
        super().__init__(seen)
        self.hint, self.verdict = hint, verdict


def _note_of_versions(seen: str) -> StoreCheck:
    """Commits, queries and vacuum do in a bucket that keeps versions what they do in others: it is fit, and costs."""
    return StoreCheck("versions", Verdict.NOTE, seen, _REMOVE_VERSIONS)


def _unique() -> bytes:
    """Bytes that no other write has."""
    return secrets.token_hex(16).encode()


def _timed_ms(request: Callable[[], object]) -> float:
    started = time.monotonic()
    request()
    return (time.monotonic() - started) * 1000
