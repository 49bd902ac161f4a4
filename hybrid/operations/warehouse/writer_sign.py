"""The sign of life of the server that writes a warehouse, and what it alone knows: which tables are paused.

A home that stands by takes over when the sign stops changing, by its own clock: no clocks are compared. The sign
decides nothing: what the home before still commits is refused by the log (`hybrid.operations.warehouse.pull`).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid.errors import DataError

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.store.mirror import Mirror

SIGN_KEY = ".writer.json"
SIGN_S = 3.0
# Below, a sign that is late by one request would count as silence.
_SILENT_S_MIN = 3 * SIGN_S


@dataclass(frozen=True)
class WriterSign:
    """A sign: the id of the home, one of its own for each time, the comments of paused tables, paused connectors."""

    owner: str
    sign: str
    pauses: Mapping[str, str | None] = field(default_factory=dict)
    connectors: Mapping[str, Mapping[str, Mapping[str, int] | None]] = field(default_factory=dict)


def give_sign(home: Home, mirror: Mirror) -> None:
    """Give a sign of life. ConflictError when another home writes the warehouse."""
    mirror.ownership.require(is_recent_enough=False)
    catalog = home.catalog
    pauses = {name: pause.comment for name, pause in catalog.serving.pauses().items()}
    connectors = {
        table: {name: record.pause_offsets for name, record in catalog.connectors.of(table).items() if record.paused}
        for table in home.definitions.names()
    }
    paused = {table: names for table, names in connectors.items() if names}
    sign = WriterSign(mirror.ownership.id, uuid.uuid4().hex, pauses, paused)
    mirror.client.upload(SIGN_KEY, json.dumps(vars(sign)).encode())


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


def take_up_pauses(home: Home, sign: WriterSign) -> None:
    """Pause here what was paused by the home that wrote before."""
    there = home.catalog.serving.pauses()
    for table, comment in sign.pauses.items():
        if table not in there:
            home.catalog.serving.pause(table, comment)
    for table, connectors in sign.connectors.items():
        for name, offsets in connectors.items():
            home.catalog.connectors.pause(table, name, offsets)


class SignWatch:
    """Watches for the sign of the home that writes: look about every `SIGN_S`.

    `silent_s` after the last new one it is silent, and not before three signs were left out.
    """

    def __init__(self, mirror: Mirror, silent_s: float) -> None:
        self._mirror, self._silent_s = mirror, max(silent_s, _SILENT_S_MIN)
        self._sign: WriterSign | None = None
        self._new_at = self._looked_at = time.monotonic()

    def is_silent(self) -> bool:
        """Look, and say whether it has been silent for so long while the store answered. False without any sign."""
        now = time.monotonic()
        if now - self._looked_at > self._silent_s / 2:  # the store, or this process, was not there to be asked
            self._new_at = now
        self._looked_at = now
        sign = read_sign(self._mirror)
        if sign != self._sign:
            self._sign, self._new_at = sign, now
        return sign is not None and now - self._new_at >= self._silent_s
