"""Time travel: a statement's tables at a revision of an earlier answer, or as they were committed at a time.

A revision is pinned by its versions. Its tail is read from the commits that have brought these offsets since; offsets
that no commit has brought yet are read from Kafka again. At a time both halves are pinned to their last commits up to
it, without a tail. A revision that cannot be restored completely is refused, never answered in part.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import EXECUTION, VALIDATION, DataError, NotFoundError, QueryError
from hybrid.lake.history import BroughtRows, brought_after, committed_ms, relied_on, version_then
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import DataFile
from hybrid.query.revision import LaterRows, PinnedHalves, TableRevision
from hybrid.query.tail import Tail, TailMessage, TailSource
from hybrid.runtime.json_values import utc
from hybrid.schema.moment import MOMENT_FORMS, parse_time
from hybrid.table.boundary import Offsets, PartitionKey
from hybrid.table.state import RealtimeState

_WAIT_S, _POLL_S = 3.0, 0.05
_PART = re.compile(r"([A-Za-z0-9_]+)\[([^\[\]]*)\]\s*")
_POSITION = re.compile(r"[^/].*/[^/]+/[0-9]{1,9}/[0-9]{1,9}@[0-9]{1,18}")
_LIKE = f"{MOMENT_FORMS}, or as a revision: 'orders[OFFLINE=3 REALTIME=7]'."


@dataclass(frozen=True)
class NamedVersions:
    """A table's part of a revision's text. None: the half is not named. `boundary` is the text of its boundary."""

    table: str
    offline: int | None = None
    realtime: int | None = None
    boundary: str | None = None
    tail: Mapping[PartitionKey, int] = field(default_factory=dict)

    def version(self, half: Half) -> int | None:
        """The version of a half."""
        return self.offline if half is Half.OFFLINE else self.realtime


@dataclass(frozen=True)
class QueriedMoment:
    """The target of `asOf`: a time (`time_ms`, epoch ms), or the versions of `tables`."""

    time_ms: int | None = None
    tables: Sequence[NamedVersions] = ()

    @classmethod
    def parse(cls, text: str, now_ms: int) -> QueriedMoment:
        """Parses a revision as answers name it, its versions alone, or a time. QueryError (700) for anything else."""
        text = text.strip()
        if "[" in text:
            return cls(tables=_named(text))
        time_ms = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else parse_time(text, now_ms)
        if isinstance(time_ms, str):
            raise _wrong(f"asOf: '{text[:100]}' is no revision, and as a time it {time_ms}.", _LIKE)
        if time_ms > now_ms:
            raise _wrong(f"asOf: {utc(time_ms)} is in the future: what will be committed until then is not known.")
        return cls(time_ms)

    def refuse_others(self, tables: Iterable[str]) -> None:
        """QueryError when a revision does not name one of a statement's tables."""
        if self.time_ms is not None:
            return
        names = {entry.table for entry in self.tables}
        for table in tables:
            if table not in names:
                names_text = ", ".join(f"'{name}'" for name in sorted(names))
                raise _wrong(f"asOf: the revision is of {names_text}; the statement reads table '{table}' too.", _LIKE)


@dataclass(frozen=True)
class Past:
    """A table at an earlier revision. `state` is REALTIME's, whose offsets precede the rows of `tail`."""

    halves: PinnedHalves
    later: LaterRows = field(default_factory=LaterRows)
    tail: Tail = field(default_factory=Tail)
    state: RealtimeState | None = None


class PastTable:
    """Pins one table at an earlier revision. `brokers` is the address of its stream; None: as configured."""

    def __init__(self, spec: TableSpec, layout: TableLayout, brokers: str | None) -> None:
        self._spec, self._layout, self._brokers = spec, layout, brokers

    def pin(self, wanted: QueriedMoment, source: TailSource, *, with_tail: bool) -> Past:
        """The table as of `wanted`; without `with_tail` the tail's rows are not read. QueryError if it is not retained.

        Waits some seconds for rows that Kafka does not return yet.
        """
        if wanted.time_ms is not None:
            return Past(self._at(wanted.time_ms))
        named = next(entry for entry in wanted.tables if entry.table == self._spec.name)
        halves = PinnedHalves(self._named(named, Half.OFFLINE), self._named(named, Half.REALTIME))
        self._refuse_strange(named, halves.realtime)
        self._refuse_lacking(named, halves)
        self._refuse_apart(halves)
        self._refuse_other_table(named, halves)
        if halves.realtime is None or not named.tail or not with_tail:
            return Past(halves, tail=Tail(positions=named.tail))
        return self._with_tail(halves, halves.realtime, named.tail, source)

    # Versions

    @cached_property
    def _newest(self) -> Mapping[Half, HalfSnapshot]:
        return {half: open_half(self._path(half)) for half in self._spec.halves}

    def _path(self, half: Half) -> Path:
        return self._layout.half(half)

    def _at(self, time_ms: int) -> PinnedHalves:
        snapshots: dict[Half, HalfSnapshot | None] = {}
        firsts = []
        for half, newest in self._newest.items():
            then = version_then(newest.path, newest.version, time_ms)
            if then.version is None and then.first > 0:
                raise _gone(
                    f"The log of {self._of(half)} reaches back to version {then.first} only, which was committed at "
                    f"{utc(then.first_ms)}: what it held at {utc(time_ms)} is no longer known."
                )
            if then.ahead is not None:
                raise _wrong(
                    f"asOf: version {then.ahead} of {self._of(half)} was committed by a clock that was ahead, and "
                    f"later ones up to {utc(time_ms)}: which version stood then cannot be told by time.",
                    "Name versions: orders[OFFLINE=3 REALTIME=7]",
                )
            snapshots[half] = self._open(half, then.version) if then.version is not None else None
            firsts.append(then.first_ms)
        if not any(snapshots.values()):
            name = self._spec.name
            raise _wrong(f"asOf: table '{name}' did not exist at {utc(time_ms)}: it was created at {utc(min(firsts))}.")
        halves = PinnedHalves(snapshots.get(Half.OFFLINE), snapshots.get(Half.REALTIME))
        self._refuse_apart(halves)
        return halves

    def _named(self, named: NamedVersions, half: Half) -> HalfSnapshot | None:
        version = named.version(half)
        if version is None:
            return None
        if half not in self._spec.halves:
            raise _wrong(f"asOf: table '{self._spec.name}' has no {half.value} half.")
        newest = self._newest[half].version
        if version > newest:
            raise _wrong(f"asOf: {self._of(half)} has no version {version}: its newest is {newest}.", _LIKE)
        return self._open(half, version)

    def _open(self, half: Half, version: int) -> HalfSnapshot:
        try:
            snapshot = open_half(self._path(half), version)
            snapshot.state  # noqa: B018 - raises when the version is no longer in the log
        except (DataError, NotFoundError) as error:
            raise _gone(f"Version {version} of {self._of(half)} is no longer in its log.") from error
        return snapshot

    def _of(self, half: Half) -> str:
        return f"{half.value} of '{self._spec.name}'"

    # Refusals

    def _refuse_lacking(self, named: NamedVersions, halves: PinnedHalves) -> None:
        """QueryError for a half that is not named, unless it was added to the table later."""
        for half, there in ((Half.OFFLINE, halves.realtime), (Half.REALTIME, halves.offline)):
            if half not in self._spec.halves or named.version(half) is not None or there is None:
                continue
            first_ms, then_ms = committed_ms(self._path(half), 0), committed_ms(there.path, there.version)
            if first_ms is None or then_ms is None or first_ms <= then_ms:
                raise _wrong(f"asOf: the revision names no version of {self._of(half)}.", _LIKE)

    def _refuse_strange(self, named: NamedVersions, realtime: HalfSnapshot | None) -> None:
        """QueryError for positions in streams that the table does not read: names become SQL, and code of views."""
        streams = {(key.connector, key.topic) for key in (realtime.realtime.offsets if realtime is not None else {})}
        if self._spec.stream is not None:
            streams |= {(self._spec.stream.connector, topic) for topic in self._spec.stream.topics}
        for key in named.tail:
            if (key.connector, key.topic) not in streams:
                raise _wrong(f"asOf: table '{self._spec.name}' reads nothing from '{key}', which the tail names.")

    def _refuse_apart(self, halves: PinnedHalves) -> None:
        """QueryError when REALTIME has dropped rows that this OFFLINE version does not cover: both would lack them."""
        offline, realtime = halves.offline, halves.realtime
        if offline is None or realtime is None:
            return
        if self._newest[Half.OFFLINE].offline.boundary.floor_ms is None:  # nothing was ever dropped
            return
        needed = relied_on(realtime)
        if needed is not None and offline.version < needed:
            raise _gone(
                f"REALTIME={realtime.version} of '{self._spec.name}' has dropped rows for which OFFLINE={needed} and "
                f"later ones answer, and not OFFLINE={offline.version}: the two never stood together."
            )

    def _refuse_other_table(self, named: NamedVersions, halves: PinnedHalves) -> None:
        """QueryError when the text names another boundary than the version has: it belongs to another table."""
        if named.boundary is None or halves.offline is None or halves.realtime is None:
            return
        offline, realtime = halves.offline, halves.realtime
        limit_ms = offline.effective_boundary(self._spec.boundary_lag_ms).limit_ms
        boundary_text = TableRevision(
            self._spec.name, offline.version, realtime.version, halves.boundary, {}, limit_ms
        ).boundary_text
        if boundary_text != named.boundary:
            raise _wrong(
                f"asOf: OFFLINE={offline.version} of '{self._spec.name}' has '{boundary_text}', and the revision says "
                f"'{named.boundary}': it is of another table of that name, or of other settings.",
                "Leave the boundary and the tail out to ask for the versions as they are.",
            )

    # The tail

    def _with_tail(self, halves: PinnedHalves, realtime: HalfSnapshot, ends: Offsets, source: TailSource) -> Past:
        deadline = time.monotonic() + _WAIT_S
        while True:
            newest = open_half(realtime.path)
            brought = brought_after(realtime, ends, newest.version, self._spec.name)
            if not brought.whole:
                missing = f"version {brought.newest + 1} of {self._of(Half.REALTIME)}"
                raise _gone(f"The rows of the revision's tail were committed later, and {missing} is not in the log.")
            messages, warnings = self._still_in_tail(brought, source)
            if messages is not None:
                later = LaterRows(brought.files, ends, brought.state.deletes, brought.newest, newest.grown)
                return Past(halves, later, Tail(messages, ends), brought.state)
            if time.monotonic() >= deadline:
                raise self._not_there(brought.left, warnings)
            time.sleep(_POLL_S)

    def _still_in_tail(
        self, brought: BroughtRows, source: TailSource
    ) -> tuple[list[TailMessage] | None, Sequence[str]]:
        """The messages that no commit has brought yet; None while Kafka does not return all of them."""
        if not brought.left:
            return [], ()
        read = source.read(self._spec, brought.state, self._brokers)
        if any(read.positions.get(key, 0) < end for key, end in brought.left.items()):
            return None, read.warnings
        return [message for message in read.messages if message.offset < brought.left.get(message.key, 0)], ()

    def _not_there(self, left: Offsets, warnings: Sequence[str]) -> QueryError:
        places = ", ".join(f"{key} below {end}" for key, end in sorted(left.items()))
        why = f" {' '.join(warnings)}" if warnings else ""
        return QueryError(
            f"The revision has rows of '{self._spec.name}' that are neither committed nor in Kafka now: {places}.{why}",
            pinot_code=EXECUTION,
            hint=f"hybrid ingest {self._spec.name} --until-caught-up",
        )


def refuse_missing(table: str, files: Iterable[DataFile]) -> None:
    """QueryError when a file of an old version no longer exists."""
    missing = [file for file in files if not Path(file.path).exists()]
    if missing:
        count = f"{len(missing)} of its files" if len(missing) > 1 else f"file {Path(missing[0].path).name}"
        raise _gone(
            f"Rows of '{table}' at that revision are no longer retained: {count} of segment '{missing[0].segment}' "
            "went by VACUUM or a purge."
        )


def _named(text: str) -> tuple[NamedVersions, ...]:
    entries, at = [], 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise _wrong(f"asOf: the revision cannot be read at '{text[at : at + 40]}'.", _LIKE)
        entries.append(_one_named(part[1], part[2]))
        at = part.end()
    if len({entry.table for entry in entries}) < len(entries):
        raise _wrong("asOf: the revision names a table twice.", _LIKE)
    return tuple(entries)


def _one_named(table: str, body: str) -> NamedVersions:
    """Parses the part of one table: words of the form NAME=VALUE; the boundary may consist of several words."""
    by_name: dict[str, str] = {}
    boundary: list[str] = []
    for word in body.split():
        name, equals, value = word.partition("=")
        if name == "boundary" or (boundary and (not equals or name in {"override", "limit"})):
            boundary.append(word.replace(".000Z", "Z"))  # as earlier releases wrote revisions
        elif name in {"OFFLINE", "REALTIME", "tail", "plan"} and equals and name not in by_name:
            by_name[name] = value
        else:
            raise _wrong(f"asOf: '{word}' cannot be used in the revision of '{table}'.", _LIKE)
    if "plan" in by_name:
        raise _wrong(
            f"asOf: the revision shows '{table}' as backfill plan '{by_name['plan']}' would make it: no state."
        )
    if not {"OFFLINE", "REALTIME"} & by_name.keys():
        raise _wrong(f"asOf: the revision of '{table}' names no version.", _LIKE)
    offline, realtime = (_version(table, by_name.get(half.value)) for half in (Half.OFFLINE, Half.REALTIME))
    return NamedVersions(table, offline, realtime, " ".join(boundary) or None, _positions(table, by_name.get("tail")))


def _version(table: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise _wrong(f"asOf: '{text}' is no version of '{table}'.", _LIKE)
    return int(text)


def _positions(table: str, text: str | None) -> dict[PartitionKey, int]:
    if text is None:
        return {}
    try:
        if not (text.startswith("{") and text.endswith("}")):
            raise ValueError(text)
        words = [word for word in text[1:-1].split(",") if word]
        if not all(_POSITION.fullmatch(word) for word in words):
            raise ValueError(text)
        pairs = (word.rpartition("@") for word in words)
        return {PartitionKey.parse(key): int(offset) for key, _, offset in pairs}
    except ValueError:
        raise _wrong(f"asOf: '{text}' is no tail of '{table}': it is written {{kafka/orders/0/0@120}}.") from None


def _wrong(message: str, hint: str | None = None) -> QueryError:
    return QueryError(message, pinot_code=VALIDATION, hint=hint)


def _gone(message: str) -> QueryError:
    return QueryError(message, pinot_code=EXECUTION, hint="Ask as of a newer revision, or without asOf.")
