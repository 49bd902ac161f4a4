"""The sign of life of the server that writes a warehouse, and what it alone knows: which tables are paused.

A home that stands by takes over when the sign stops changing, by its own clock: no clocks are compared. The sign
decides nothing: what the home before still commits is refused by the log (`hybrid.operations.warehouse.pull`).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.errors import DataError
from hybrid.store.store_backend import StoreTuning
from hybrid.store.store_client import open_store

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.store.mirror import Mirror
    from hybrid.store.ownership import Claim

SIGN_KEY = ".writer.json"
SIGN_S = 3.0
# Below, a sign that is late by one request would count as silence.
_SILENT_S_MIN = 3 * SIGN_S
# So long after the last new one, a sign is overdue: it is given every SIGN_S, and was seen later than it was given.
_OVERDUE_S = 1.5 * SIGN_S
_CLOSE_LOOK_S = 1.0
# A sign that waits for a store for longer comes too late.
_TUNING = StoreTuning(connect_s=2.0, request_s=4.0, patience_s=4.0)


@dataclass(frozen=True)
class WriterSign:
    """A sign: the id of the home, one of its own for each time, the comments of paused tables, paused connectors.

    `pauses` and `connectors` (by table and name, with the offsets of the pause) are None when they are not known.
    """

    owner: str
    sign: str
    pauses: Mapping[str, str | None] | None = None
    connectors: Mapping[str, Mapping[str, Mapping[str, int] | None]] | None = None


class SignGiver:
    """Gives the sign of a home, by a client of its own: nothing that other threads ask of the store delays it."""

    def __init__(self, home: Home, mirror: Mirror) -> None:
        self._home, self._mirror = home, mirror
        self._client = open_store(mirror.url, _TUNING)
        self._last = WriterSign("", "")

    def give(self) -> None:
        """Give a sign of life. Call it only while this home writes the warehouse.

        Without the catalog, the server works on, and what is paused is told as it was known last.
        """
        with suppress(*CATALOG_ERRORS):
            self._last = self._paused()
        sign = replace(self._last, owner=self._mirror.ownership.id, sign=uuid.uuid4().hex)
        self._client.upload(SIGN_KEY, json.dumps(vars(sign)).encode())

    def _paused(self) -> WriterSign:
        catalog = self._home.catalog
        pauses = {name: pause.comment for name, pause in catalog.serving.pauses().items()}
        return WriterSign("", "", pauses, paused_connectors(self._home))


def paused_connectors(home: Home) -> dict[str, dict[str, Mapping[str, int] | None]]:
    """The connectors that users have paused, by table and name, with the offsets of the pause."""
    records = {table: home.catalog.connectors.of(table) for table in home.definitions.names()}
    paused = {
        table: {name: record.pause_offsets for name, record in of_table.items() if record.paused}
        for table, of_table in records.items()
    }
    return {table: names for table, names in paused.items() if names}


def read_sign(mirror: Mirror) -> WriterSign | None:
    """The latest sign; None without any. DataError when it is damaged."""
    content = mirror.client.get(SIGN_KEY)
    if content is None:
        return None
    try:
        document: dict[str, Any] = json.loads(content.data)
        return WriterSign(**document)
    except (ValueError, TypeError) as error:
        raise DataError(f"{mirror.url}/{SIGN_KEY} is damaged: {error}") from error


def take_up_pauses(home: Home, mirror: Mirror, claim: Claim) -> None:
    """Let here be paused what is paused at the home that writes, by its sign, and nothing else."""
    sign = read_sign(mirror)
    if sign is None or sign.owner != claim.owner.id:
        return
    catalog = home.catalog
    if sign.pauses is not None:
        here = catalog.serving.pauses()
        for table in here.keys() - sign.pauses.keys():
            catalog.serving.resume(table)
        for table in sign.pauses.keys() - here.keys():
            catalog.serving.pause(table, sign.pauses[table])
    if sign.connectors is not None:
        paused = {(table, name) for table, names in paused_connectors(home).items() for name in names}
        told = {(table, name): offsets for table, names in sign.connectors.items() for name, offsets in names.items()}
        for table, name in paused - told.keys():
            catalog.connectors.start(table, name)
        for (table, name), offsets in told.items():
            catalog.connectors.pause(table, name, offsets)


class SignWatch:
    """Watches for the sign of the home that writes: look when `pause_s` have passed since the last look.

    `signs_seen` is how many different ones it has seen.

    `silent_s` after the last new one it is silent, and not before three signs were left out.
    """

    def __init__(self, mirror: Mirror, silent_s: float) -> None:
        self._mirror, self._silent_s = mirror, max(silent_s, _SILENT_S_MIN)
        self._seen: tuple[int, WriterSign] | None = None
        self._new_at = self._looked_at = time.monotonic()
        self.signs_seen = 0

    @property
    def pause_s(self) -> float:
        """How long to wait for the next look: less than usual when the last one saw nothing new."""
        return SIGN_S if self._new_at == self._looked_at else _CLOSE_LOOK_S

    @property
    def is_overdue(self) -> bool:
        """Whether by the last look the home that writes should have given a sign, and has not."""
        return self._seen is not None and self._looked_at - self._new_at >= _OVERDUE_S

    def silent_claim(self) -> Claim | None:
        """Look; the claim of the home that has been silent for so long while the store answered. None otherwise.

        A home that has given no sign since it took the warehouse is not silent: perhaps no server of it runs yet.
        """
        now = time.monotonic()
        if now - self._looked_at > self._silent_s / 2:  # the store, or this process, was not there to be asked
            self._new_at = now
        self._looked_at = now
        claim, sign = self._mirror.ownership.look(), read_sign(self._mirror)
        is_its = claim is not None and sign is not None and sign.owner == claim.owner.id
        seen = (claim.epoch, sign) if claim is not None and sign is not None and is_its else None
        if seen is None or seen != self._seen:
            self._seen, self._new_at = seen, now
            self.signs_seen += seen is not None
        return claim if seen is not None and now - self._new_at >= self._silent_s else None
