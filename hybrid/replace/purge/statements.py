"""Masks statements in a half's Delta log: what the commits of this product say of the changes they made.

Callers must hold the half's lock. Rows, statistics and states stay as they are: a connector or flow goes on from the
progress in the state, and a damaged definition is restored from the documents of the commit that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from hybrid.replace.purge.log_statistics import log_entries, rewrite_entry

_COMMIT = '{"commitInfo"'
# What a tool says of its commit: DELETE, UPDATE and MERGE have conditions, as free as a `statement` of our documents.
_PARAMETERS, _CONDITION, _FREE = "operationParameters", "predicate", "statement"
# Documents of a definition in an act's detail.
_DEFINITIONS = frozenset(("schema", "realtime", "offline", "brokers"))


class Mask(Protocol):
    """Takes the constants of conditions out of the free texts of a document; other values stay."""

    def document(self, value: Any, key: str = "") -> Any:
        """The document without them."""


def mask_log(half: Path, mask: Mask) -> int:
    """Masks the statements in all entries of a log. Returns how many had some."""
    return sum(rewrite_entry(entry, lambda text: masked_entry(text, mask)) for entry in log_entries(half))


def masked_act(act: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """An act in its JSON form without the constants in its free texts."""
    detail = act.get("detail") or {}
    masked = mask.document({name: value for name, value in detail.items() if name not in _DEFINITIONS})
    return {**act, "detail": {name: masked.get(name, value) for name, value in detail.items()}}


def kept_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """What is never masked of a state in its JSON form, or of an archived act: progress and definitions."""
    detail = state["act"].get("detail") or {}
    definitions = {name: value for name, value in detail.items() if name in _DEFINITIONS}
    return {"progress": state.get("progress"), **definitions}


def logged_states(half: Path) -> Iterator[dict[str, Any]]:
    """The states of a log's commits, in their JSON form, oldest first."""
    for entry in log_entries(half):
        for line in entry.read_text(encoding="utf-8").split("\n"):
            state = _state(json.loads(line)) if line.startswith(_COMMIT) else None
            if state is not None:
                yield state


def masked_entry(text: str, mask: Mask) -> str:
    """The text of an entry with its statements masked."""
    return "\n".join(_masked(line, mask) if line.startswith(_COMMIT) else line for line in text.split("\n"))


def _masked(line: str, mask: Mask) -> str:
    document = json.loads(line)
    info, state = document["commitInfo"], _state(document)
    fresh = dict(info)
    if isinstance(info.get(_PARAMETERS), dict):
        fresh[_PARAMETERS] = {
            name: mask.document(text, _FREE) if _CONDITION in name.lower() else text
            for name, text in info[_PARAMETERS].items()
        }
    if state is not None:
        masked = {**state, "act": masked_act(state["act"], mask)}
        if masked != state:
            fresh["userMetadata"] = json.dumps(masked, separators=(",", ":"))
    if fresh == info:
        return line
    return json.dumps({**document, "commitInfo": fresh}, separators=(",", ":"), ensure_ascii=False)


def _state(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """The state in a commit of this product; None in another tool's."""
    try:
        state = json.loads(document["commitInfo"].get("userMetadata"))
    except (TypeError, ValueError):
        return None
    return state if isinstance(state, dict) and isinstance(state.get("act"), dict) else None
