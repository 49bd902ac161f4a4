"""Messages that say what happens to a row: Feldera's `insert_delete`, and the envelopes of Debezium. Pure.

After docs.feldera.com/formats/json and debezium.io/documentation (the value of a change event).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hybrid.records.outcome import Filtered, Rejected, shown

_CHANGES_WORDS = 'one of {"insert": {...}}, {"update": {...}} and {"delete": {...}}'
_ENVELOPE_WORDS = 'an envelope of Debezium: {"op": "c", "u", "d" or "r", "before": {...}, "after": {...}}'
_FULL = "Without a PRIMARY KEY it takes the whole row (in PostgreSQL: REPLICA IDENTITY FULL)"
_OPS = ("c", "r", "u", "d")


class CdcStep(NamedTuple):
    """One row that comes, or goes; an update has some of its columns."""

    is_delete: bool
    record: Mapping[str, object]
    is_update: bool = False


def change_step(change: Mapping[str, object]) -> CdcStep | Rejected:
    """What a message of `insert_delete` says."""
    (verb, record), *more = change.items() or ((None, None),)
    if more or verb not in ("insert", "update", "delete") or not isinstance(record, dict):
        return Rejected(f"The message is {shown(change)}; it must be {_CHANGES_WORDS}.")
    return CdcStep(verb == "delete", record, verb == "update")


def debezium_steps(message: Mapping[str, object], *, keyed: bool) -> list[CdcStep] | Rejected | Filtered:
    """What an envelope says, with its schema beside it or without; nothing for a tombstone.

    An update is the row before going and the row after coming; on a `keyed` table the row before may be missing.
    """
    envelope = message["payload"] if "payload" in message and "op" not in message else message
    if envelope is None:
        return Filtered()
    if not isinstance(envelope, dict) or envelope.get("op") not in _OPS:
        return Rejected(f"The message is {shown(message)}; it must be {_ENVELOPE_WORDS}.")
    op, before, after = envelope["op"], envelope.get("before"), envelope.get("after")
    goes = op == "d" or (op == "u" and (before is not None or not keyed))
    if goes and not isinstance(before, dict):
        return Rejected(f"The envelope with op '{op}' has no row 'before'. {_FULL}.")
    if op != "d" and not isinstance(after, dict):
        return Rejected(f"The envelope with op '{op}' has no row 'after'.")
    steps = [CdcStep(True, before)] if isinstance(before, dict) and goes else []
    return [*steps, CdcStep(False, after)] if isinstance(after, dict) and op != "d" else steps
