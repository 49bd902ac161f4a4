"""Pages speak plainly, without turns of phrase that a reader stumbles over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, prose

# Changes are records: they stay as they were written.
RECORDS = {"CHANGELOG.md"}
PLAIN = [page for page in PAGES if page.name not in RECORDS]
AVOIDED = re.compile(r"\b(anew|is told|are told|lays|those that|ones? that|what [a-z ]+ is to)\b")


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_uses_an_avoided_phrase(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "`", " ".join(" ".join(prose(page)).split()))
    assert [text[max(0, found.start() - 40) : found.end() + 20] for found in AVOIDED.finditer(text)] == []
