"""What users see of the Python API is small, and documented."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import hybrid
from hybrid.api.table import Table

PYTHON = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"


def test_the_package_shows_what_users_call() -> None:
    shown = ["Hybrid", "HybridError", "ResultLimitWarning", "__version__", "connect", "frame_documents"]
    assert dir(hybrid) == shown
    assert hybrid.__version__ == version("hybrid")
    page = PYTHON.read_text(encoding="utf-8")
    assert [name for name in shown if name not in page] == []


def test_what_is_shown_is_documented(tmp_path: Path) -> None:
    page, table = PYTHON.read_text(encoding="utf-8"), Table.__new__(Table)
    shown: list[tuple[Any, int]] = [(hybrid.connect(tmp_path), 29), (table, 40)]
    for value, most in shown:
        assert len(dir(value)) <= most
        assert [name for name in dir(value) if name not in page] == []
