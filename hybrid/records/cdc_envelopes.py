"""Change data capture: messages of Feldera's `insert_delete`, and Debezium's envelopes. Pure.

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
    """An insert or a delete of one row. An update has only some columns of the row."""

    is_delete: bool
    record: Mapping[str, object]
    is_update: bool = False


def change_step(change: Mapping[str, object]) -> CdcStep | Rejected:
    """The step in a message of `insert_delete`."""
    (verb, record), *more = change.items() or ((None, None),)
    if more or verb not in ("insert", "update", "delete") or not isinstance(record, dict):
        return Rejected(f"The message is {shown(change)}; it must be {_CHANGES_WORDS}.")
    return CdcStep(verb == "delete", record, verb == "update")


def debezium_steps(message: Mapping[str, object], *, keyed: bool) -> list[CdcStep] | Rejected | Filtered:
    """The steps in an envelope, with or without its schema; Filtered for a tombstone.

    An update deletes the row `before` and inserts the row `after`; on a `keyed` table `before` may be missing.
    """
    envelope = message["payload"] if "payload" in message and "op" not in message else message
    if envelope is None:
        return Filtered()
    if not isinstance(envelope, dict) or envelope.get("op") not in _OPS:
        return Rejected(f"The message is {shown(message)}; it must be {_ENVELOPE_WORDS}.")
    op, before, after = envelope["op"], envelope.get("before"), envelope.get("after")
    needs_before = op == "d" or (op == "u" and (before is not None or not keyed))
    if needs_before and not isinstance(before, dict):
        return Rejected(f"The envelope with op '{op}' has no row 'before'. {_FULL}.")
    if op != "d" and not isinstance(after, dict):
        return Rejected(f"The envelope with op '{op}' has no row 'after'.")
    steps = [CdcStep(True, before)] if isinstance(before, dict) and needs_before else []
    return [*steps, CdcStep(False, after)] if isinstance(after, dict) and op != "d" else steps
