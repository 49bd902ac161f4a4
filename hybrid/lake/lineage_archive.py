"""Archive of operations that outlive the log of their half: replacements, reverts, writes of the definition.

<warehouse>/<table>/OFFLINE.acts, REALTIME.acts    a JSON object a line, oldest first: Delta table's id, version, act

They are copied here before the log is cleaned past them. They are needed for longer than rows can be reverted: for what
backfills have corrected, for the rows that a replaced segment held, and to restore a damaged definition. They are
copies of finished commits, so they cannot contradict the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from hybrid.runtime import durable
from hybrid.runtime.json_values import without_samples
from hybrid.store.mirror import mirror_at
from hybrid.table.state import Act

ARCHIVE_ENDING = ".acts"
_ATTEMPTS = 20
VersionedAct = tuple[int, Act]


def outlives_log(act: Act) -> bool:
    """Whether an operation is needed after its entry has left the log: a lineage entry, or one with the documents."""
    return "previous" in act.detail or isinstance(act.detail.get("schema"), dict)


def keep_acts(half: Path, table_id: str, acts: Iterable[VersionedAct]) -> None:
    """Add operations to the archive, synced to disk before it returns. Entries that exist already stay unchanged.

    Sample rows in results of expectations are left out: they may have to be forgotten. Call it under the half's lock.
    """
    archived = {version: act for version, act in kept_acts(half, table_id)}
    fresh = {version: act for version, act in acts if version not in archived}
    if not fresh:
        return
    lines = []
    for version, act in sorted({**fresh, **archived}.items()):
        document = {"table_id": table_id, "version": version, "act": without_samples(vars(act))}
        lines.append(json.dumps(document, separators=(",", ":"), default=dict))
    durable.write_text(archive_file(half), "\n".join(lines))


def store_archive(half: Path) -> None:
    """Let the archive on the warehouse's store, where it has one, hold what this one does. Call it before the log is
    cleaned.

    What only the store's has stays there: a home that was paused, or restored, may have an older one. ConflictError
    when another home writes the warehouse.
    """
    mirror = mirror_at(half)
    if mirror is None or not archive_file(half).exists():
        return
    key = f"{mirror.key_of(half)}{ARCHIVE_ENDING}"
    for _ in range(_ATTEMPTS):
        content = mirror.client.get(key)
        mirror.require_writable(is_recent_enough=False)  # behind the look: whoever takes over writes it after that
        there = "" if content is None else content.data.decode()
        data = _joined(there, archive_file(half).read_text(encoding="utf-8")).encode()
        if content is not None and data == content.data:
            return
        if mirror.try_put(key, data, content):
            return
    raise mirror.contended(key)


def _joined(there: str, here: str) -> str:
    """The lines of two archives, by version; of an operation that both have, the line of `here`."""
    lines = {}
    for line in [*there.split("\n"), *here.split("\n")]:
        if line:
            entry = json.loads(line)
            lines[entry["version"], entry["table_id"]] = line
    return "\n".join(lines[key] for key in sorted(lines))


def kept_acts(half: Path, table_id: str | None = None) -> list[VersionedAct]:
    """The archived (version, act) of the Delta table with that id, newest first; None: of any table at that place."""
    try:
        text = archive_file(half).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    entries = [json.loads(line) for line in text.split("\n") if line]  # JSON may hold other line ends
    mine = [entry for entry in entries if table_id is None or entry["table_id"] == table_id]
    return [(int(entry["version"]), Act(**entry["act"])) for entry in reversed(mine)]


def archive_file(half: Path) -> Path:
    """The archive of a half; it may not exist."""
    return half.with_name(f"{half.name}{ARCHIVE_ENDING}")
