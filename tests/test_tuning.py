"""Tests inject tuning values: none patches a constant of a module, which would tie it to where the constant stands."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# `setattr(module, "_NAME", ...)`, `setattr("package.module._NAME", ...)` and the same of unittest.mock.
_PATCH = re.compile(r"""(?:setattr|patch(?:\.object)?)\(\s*[^"'()]*["'](?:[\w.]*\.)?_?[A-Z][A-Z0-9_]*["']""")


def patches(text: str) -> list[str]:
    return [" ".join(found[0].split()) for found in _PATCH.finditer(text)]


def test_no_test_patches_a_constant() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in sorted(ROOT.rglob("*.py"))
        if path != Path(__file__) and (names := patches(path.read_text(encoding="utf-8")))
    }
    assert found == {}, "pass the value: see hybrid/query/cache/tuning.py"


def test_patches_are_found() -> None:
    text = (
        'monkeypatch.setattr(rows, "_ROWS_MIN", 5)\n'
        'patch.setattr("hybrid.lake.files._GROUP_ROWS", 10)\n'
        'monkeypatch.setattr(\n    optimize,\n    "FILES_MIN",\n    2,\n)\n'
        'monkeypatch.setattr(rows, "BackgroundRebuild", Paced)\nmonkeypatch.setattr(rows, "_insert", broken)\n'
    )
    assert patches(text) == [
        'setattr(rows, "_ROWS_MIN"',
        'setattr("hybrid.lake.files._GROUP_ROWS"',
        'setattr( optimize, "FILES_MIN"',
    ]
