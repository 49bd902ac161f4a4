"""A replacement that was ended and then reverted is not ended again."""

from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.errors import ConflictError
from hybrid.lake.pushes import OpenReplacement
from hybrid.replace import ending
from hybrid.replace.lineage import EntryState


@pytest.mark.parametrize("state", list(EntryState))
def test_its_state_decides(state: EntryState, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = OpenReplacement("replace-1", "orders", "2024-01-01", {}, ("a",), {}, None)
    lineage = SimpleNamespace(segments_from=(), segments_to=("a",))
    done: Any = SimpleNamespace(id="replace-1", state=state, created_at="t", result="Added.", lineage=lineage)
    monkeypatch.setattr(ending, "entries_of", lambda half: [done])
    half: Any = None
    if state is EntryState.REVERTED:
        with pytest.raises(ConflictError, match="is REVERTED, not IN_PROGRESS"):
            ending._nothing(entry, half)
    else:
        assert ending._nothing(entry, half).sentence.startswith("Nothing to do: 'replace-1' is COMPLETED")
