"""Names are the field's: no module, class or public function bears a word that the project once made up."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "hybrid"

AVOIDED = {
    # the cache
    *("generation", "lay", "laid", "relay", "unlaid", "waiting", "along", "served", "pace", "form", "room", "incoming"),
    *("contend", "come", "there", "meet", "met", "note", "lose", "over", "answers"),
    # queries, the lake
    *("fold", "asof", "guard", "failures", "grown", "staged", "stop_at", "words"),
    *("workbench", "held", "kept", "archive", "window", "winning", "liveness", "put_whole", "took_lock"),
    # ingestion, moves, replacements, flows
    *("pieces", "again", "explicit", "parts", "dividing", "apart"),
    *("taken_places", "netted", "ignored", "overtaken", "refreshed", "cover", "wish", "wanted", "arrivals", "watch"),
    *("asked", "look", "logged"),
    *("plain_records", "rolled", "changes", "laying", "brought", "ledger", "renamed"),
    # the server
    *("door", "gate", "rights", "wire", "named", "running", "opened", "plain", "garbage"),
}

_TOP_LEVEL = re.compile(r"^(?:(class)|(?:async +)?def) +(\w+)", re.MULTILINE)


@cache
def names() -> list[tuple[str, str, str]]:
    """Each module, class and public function at a module's top level: kind, name, where it is."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        where = str(path.relative_to(ROOT.parent))
        found.append(("module", path.stem, where))
        for is_class, name in _TOP_LEVEL.findall(path.read_text(encoding="utf-8")):
            if is_class:
                found.append(("class", name, where))
            elif not name.startswith("_"):
                found.append(("function", name, where))
    return found


def test_no_name_is_one_that_only_we_understand() -> None:
    assert [name for name in names() if name[1].strip("_").lower() in AVOIDED] == []


def test_no_class_name_is_used_for_two_things() -> None:
    classes = Counter(name for kind, name, _ in names() if kind == "class" and not name.startswith("_"))
    assert [name for name, times in classes.items() if times > 1] == []
