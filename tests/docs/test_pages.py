"""README and docs: links resolve, commands exist with their options, nothing speaks of the place it was written in."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, commands, prose, table
from tests.docs.test_reference import CODE, global_options

# Parts of words, so that this file does not match itself.
FORBIDDEN = ("/wo" + "rk/", "/tm" + "p/w", "sha" + "red/", "arti" + "factory", "ne" + "xus.")
TEXTS = {".py", ".md", ".yml", ".yaml", ".toml", ".json", ".jsonl", ".cfg", ".in", ".lock", ".txt", ""}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = (line.lstrip("#").strip().lower() for line in prose(page) if line.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(page)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist_with_their_options(page: Path) -> None:
    known = {word for option in global_options() for word in option.opts} | {"-h", "--help"}
    for words in commands(page):
        name = next((path for length in (3, 2, 1) if (path := tuple(words[:length])) in CODE), None)
        assert name is not None, words
        options = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert options - known <= {word for param in CODE[name].params for word in param.opts}, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_commands_name_exist(page: Path) -> None:
    for words in commands(page):
        for word in words:
            if word.startswith(("data/", "job_specs/")):
                assert (ROOT / word).exists(), words


def test_the_tour_of_the_readme_is_complete() -> None:
    words = {tuple(words[:2]) for words in commands(ROOT / "README.md")}
    assert {("kafka", "start"), ("table", "create"), ("ingest", "orders"), ("move", "orders"), ("job", "run")} <= words


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in links(ROOT / "README.md")}
    assert {page for page in PAGES if page.parent == ROOT / "docs"} <= linked
    assert ROOT / "docs" / "adr" in linked


def test_the_readme_justifies_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[^A-Za-z0-9-]", dependency)[0] for dependency in project["dependencies"]}
    rows = table(ROOT / "README.md", "Dependencies").rows
    assert names - {name for row in rows for name in re.findall(r"[A-Za-z0-9-]+", row[0])} == set()
    assert all(reason for _, reason in rows)


def test_the_readme_says_what_it_is_on_one_screen() -> None:
    before = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert len(before.splitlines()) < 45 and "make run" in before and "make test" in before
    claims = re.split(r"\n- ", before)[1:]
    assert len(claims) == 6 and all("](docs/" in claim for claim in claims)


def test_pictures_exist_and_are_small() -> None:
    """README shows the timeline first; each picture is there in light and dark, and no other is kept."""
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r'(?:src|srcset)="([^"]+)"', page.read_text(encoding="utf-8"))
    }
    kept = set((ROOT / "docs" / "images").glob("*.png"))
    assert shown == kept and {path.stem.replace("dark", "light") for path in kept} <= {path.stem for path in kept}
    assert max(path.stat().st_size for path in kept) < 150_000
    first = re.findall(r'(?:src|srcset)="([^"]+)"', (ROOT / "README.md").read_text(encoding="utf-8"))
    assert first[:2] == ["docs/images/timeline-dark.png", "docs/images/timeline-light.png"]


DECISIONS = sorted((ROOT / "docs" / "adr").glob("0*.md"))
DECISION = re.compile(
    r"# (\d+)\. (.+)\n\nStatus: (accepted|superseded).*\n\nDate: \d{4}-\d\d-\d\d\n\n"
    r"## Context\n\n[^#].*\n## Decision\n\n[^#].*\n## Rejected\n\n- .*\n## Consequences\n\n[^#].*",
    re.DOTALL,
)


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_every_part(page: Path) -> None:
    found = DECISION.fullmatch(page.read_text(encoding="utf-8"))
    assert found is not None and int(found[1]) == int(page.stem[:4])


def test_the_index_of_decisions_is_complete() -> None:
    text = " ".join((ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8").split())
    titles = [page.read_text(encoding="utf-8").split("\n", 1)[0].split(". ", 1) for page in DECISIONS]
    entries = [
        f"- [{number[2:]}]({page.name}) {title}" for page, (number, title) in zip(DECISIONS, titles, strict=True)
    ]
    assert [entry for entry in entries if f"{entry} " not in f"{text} "] == []


def test_no_lock_or_script_names_a_registry() -> None:
    for name in ("requirements.lock", "pyproject.toml", "setup.py", "Makefile", ".ci/run", "hybrid/jvm/jars.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(
            r"https?://|--(extra-)?index-url|--find-links|--trusted-host", text.replace("--no-emit-", "")
        ), name


@pytest.mark.process
def test_no_text_names_the_place_it_was_written_in() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in TEXTS and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{name}: {word}" for word in FORBIDDEN if word in text]
    assert found == []
