"""docs/architecture.md names every package, in the order that imports follow; pages name modules that exist."""

from __future__ import annotations

import re

from tests.docs.pages import PAGES, ROOT
from tests.test_imports import RANK

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "hybrid"


def rows() -> list[list[str]]:
    """The packages of each line of the first table."""
    table = PAGE.split("## The path of an event")[0]
    return [re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")]


def test_every_package_has_its_line_above_what_it_imports() -> None:
    named = [package for row in rows() for package in row]
    assert sorted(named) == sorted(RANK)
    lowest = [min(RANK[package] for package in row) for row in rows()]
    assert lowest == sorted(lowest, reverse=True)


def test_the_modules_exist() -> None:
    paths = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    short = {path for path in paths if "/" not in path}  # after another of the same package
    assert len(paths) > 40
    assert [path for path in paths - short if not ((PACKAGE / path).exists() or (ROOT / path).exists())] == []
    assert [path for path in short if not list(PACKAGE.rglob(path))] == []


def test_pages_name_modules_that_exist() -> None:
    """A module that was renamed is renamed in the decisions, too."""
    there = {
        path.name for folder in ("hybrid", "tests", "benchmarks", "data") for path in (ROOT / folder).rglob("*.py")
    }
    there |= {path.name for path in ROOT.glob("*.py")}
    named = {
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"`(?:[\w.]+/)*(\w+\.py)`", page.read_text(encoding="utf-8"))
    }
    assert [found for found in sorted(named) if found[1] not in there] == []
