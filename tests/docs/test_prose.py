"""Pages speak plainly, without turns of phrase that a reader stumbles over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, prose

# Changes are records: they stay as they were written.
RECORDS = {"CHANGELOG.md"}
PLAIN = [page for page in PAGES if page.name not in RECORDS]
# Sentences that readers had to read twice. They stand neither in pages nor in help and messages.
READ_TWICE = re.compile(
    r"both let through|say the same but for|no older version of a key comes back|append what they bring"
    r"|nobody has to work out|say what is wanted|only a commit decides|time is settled|of which cannot be told"
    r"|left alone since"
)
AVOIDED = re.compile(r"\b(anew|is told|are told|lays|those that|ones? that|what [a-z ]+ is to)\b")


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_uses_an_avoided_phrase(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "`", " ".join(" ".join(prose(page)).split()))
    assert [text[max(0, found.start() - 40) : found.end() + 20] for found in AVOIDED.finditer(text)] == []


def test_no_sentence_that_was_read_twice_has_come_back() -> None:
    modules = sorted((ROOT / "hybrid").rglob("*.py"))
    texts = {path: " ".join(path.read_text(encoding="utf-8").split()) for path in (*PLAIN, *modules)}
    assert {str(path): found[0] for path, text in texts.items() if (found := READ_TWICE.search(text))} == {}
