"""Masks statements in a half's Delta log: what the commits of this product say of the changes they made.

Callers must hold the half's lock. Rows, statistics and states stay as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from hybrid.replace.purge.log_statistics import log_entries, replace_entry

_COMMIT = '{"commitInfo"'


class Mask(Protocol):
    """Takes the constants of conditions out of the free texts of a document; other values stay."""

    def document(self, value: Any, key: str = "") -> Any:
        """The document without them."""


def mask_log(half: Path, mask: Mask) -> int:
    """Masks the statements in all entries of a log. Returns how many had some."""
    return sum(_mask_entry(entry, mask) for entry in log_entries(half))


def _mask_entry(entry: Path, mask: Mask) -> bool:
    lines = entry.read_text(encoding="utf-8").split("\n")
    masked = [_masked(line, mask) if line.startswith(_COMMIT) else line for line in lines]
    if masked == lines:
        return False
    replace_entry(entry, "\n".join(masked))
    return True


def _masked(line: str, mask: Mask) -> str:
    document = json.loads(line)
    metadata = document["commitInfo"].get("userMetadata")
    try:
        state = json.loads(metadata)
    except (TypeError, ValueError):  # another tool's commit
        return line
    masked = mask.document(state)
    if masked == state:
        return line
    document["commitInfo"]["userMetadata"] = json.dumps(masked, separators=(",", ":"))
    return json.dumps(document, separators=(",", ":"))
