"""Log entries of ours: their text, and the one function that gives a text its version of the log.

An entry is written only if no other commit has its version. Its text carries a random id, the `txnId` of Delta's commit
information, by which its writer knows it again after an error that left the outcome open (docs/adr/0062). What rewrites
entries (`hybrid purge`) keeps that id.

Actions follow Delta's protocol: "Commit Provenance Information", "Transaction Identifiers", "Change Metadata",
"Add File and Remove File".
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hybrid.clock import wall_clock_ms
from hybrid.errors import MachineError
from hybrid.lake.entry_file import Put, link_entry
from hybrid.store.mirror import mirror_at, refuse_marked
from hybrid.table.columns import SEGMENT

Action = Mapping[str, Any]

# The characters that delta-rs leaves as they are in paths of a log.
_UNESCAPED = "/=-_.~()!',;:@&+$"


def entry_text(actions: Iterable[Action]) -> str:
    """The text of an entry: a JSON document per line."""
    # Half a character is an error here, as other readers take it for a damaged log.
    texts = (json.dumps(action, separators=(",", ":"), ensure_ascii=False, allow_nan=False) for action in actions)
    return "".join(f"{text}\n" for text in texts)


def commit_info(note: str, read_version: int | None, *, is_append: bool) -> Action:
    """The commit information of a new entry behind version `read_version`, None for a half's first one.

    `note` is what the half's history shows. Readers of the time of a commit expect the timestamp first.
    """
    parameters = {"partitionBy": "[]", "mode": "Append"}
    creates = read_version is None
    info = {
        "timestamp": wall_clock_ms(),
        "operation": "CREATE TABLE" if creates else "WRITE",
        "operationParameters": {} if creates else parameters,
        **({} if creates else {"readVersion": read_version}),
        "isolationLevel": "Serializable",
        "isBlindAppend": is_append,
        "engineInfo": "hybrid",
        "txnId": str(uuid.uuid4()),
        "userMetadata": note,
    }
    return {"commitInfo": info}


def fence_action(fence: str, number: int) -> Action:
    """The transaction identifier that an operation with this number moves."""
    return {"txn": {"appId": fence, "version": number, "lastUpdated": wall_clock_ms()}}


def add_action(add: Mapping[str, Any]) -> Action:
    """The entry of a new file as workers or Spark wrote it, without the fields that are null there.

    The path is encoded as delta-rs would: it writes removals in its own spelling, whatever that of the addition is, and
    readers match the two by their texts. Otherwise rows would be doubled by a foreign OPTIMIZE or DELETE.
    """
    path = quote(unquote(str(add["path"])), safe=_UNESCAPED)
    return {"add": {name: value for name, value in {**add, "path": path}.items() if value is not None}}


def remove_action(path: str, size: int, segment: str, *, data_change: bool) -> Action:
    """The removal of a file. `path` as the log has it: readers match the removal to its file by this text."""
    removal = {
        "path": path,
        "deletionTimestamp": wall_clock_ms(),
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": {SEGMENT: segment},
        "size": size,
    }
    return {"remove": removal}


def put_entry(half: Path, version: int, text: str) -> Put:
    """Give an entry its version in the log of a half, if no commit has that version.

    Readers see it whole or not at all. Its bytes are synced, its name is not: see `sync_log`. DataError when it was
    certainly not written, such as on a full disk. After UNKNOWN only a later commit tells: nothing that the entry names
    may be deleted before.
    """
    mirror = mirror_at(half)
    if mirror is None:
        refuse_marked(half.parent.parent)
        return link_entry(half, version, text)
    from hybrid.lake.store_log import put_through

    return put_through(mirror, half, version, text)


def unknown_outcome(half: Path, version: int) -> MachineError:
    """The error of an operation whose entry was not confirmed."""
    return MachineError(
        f"{half}: the storage did not say whether the log entry of version {version} was written.",
        hint="Look in `hybrid task list` and `hybrid segment list` whether it was done before you run it again; with a "
        "warehouse on a store after `hybrid warehouse sync`.",
    )
