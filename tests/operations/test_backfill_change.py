"""What a correction is called."""

from __future__ import annotations

from pathlib import Path

from hybrid.config.input_rules import InputRules
from hybrid.operations.backfill_change import BackfillChange


def test_an_uploaded_file_is_called_by_its_name(tmp_path: Path) -> None:
    """Where a server stored it helps nobody, and is no path of who plans it again."""
    folder = tmp_path / "uploads" / "1"
    folder.mkdir(parents=True)
    for name in ("1-b.csv", "0-a.csv"):
        (folder / name).write_text("x")
    upload, own = InputRules(tmp_path, is_upload=True), InputRules(tmp_path)
    one, several = BackfillChange(input=str(folder / "0-a.csv")), BackfillChange(input=str(folder))
    assert one.named(upload).words == "rows of 0-a.csv"
    assert several.named(upload).words == "rows of 0-a.csv, 1-b.csv"
    for rules in (own, None):
        assert one.named(rules) is one
    assert BackfillChange(delete=True).named(upload).words == "delete"
