"""The documentation as data: its pages, tables, fenced and indented commands, links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
REFERENCE_PAGES = sorted(page for page in REFERENCE.glob("*.md") if page.name != "README.md")
ERRORS = ROOT / "docs" / "errors.md"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])

_SPAN = re.compile(r"`([^`]+)`")
_LEGEND = re.compile(r"\*([^*]+ · [^*]+)\*")
_ASSIGNMENT = re.compile(r"[A-Z_]+=")


def reference(noun: str) -> Path:
    """The page of a noun in the reference."""
    return REFERENCE / f"{noun}.md"


@dataclass(frozen=True)
class Table:
    """A table of a page: the headings above it, outermost first, its column names, and its rows of cells."""

    headings: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        """The cells of one column."""
        return [row[self.names.index(name)] for row in self.rows]


def tables(page: Path) -> list[Table]:
    """Every table of a page, in order: with bars, or as a list below a line that names its columns."""
    found: list[Table] = []
    headings: list[str] = []
    rows: list[tuple[str, ...]] = []
    items: list[str] = []
    for line in [*prose(page), "", "end"]:
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            headings = [*headings[: len(heading[1]) - 1], heading[2].strip()]
        if line.startswith("|"):
            rows.append(tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]))
        elif rows:
            found.append(Table(tuple(headings), rows[0], tuple(rows[2:])))
            rows = []
        if legend := _LEGEND.fullmatch(line):
            items = [legend[1]]
        elif items and line.startswith("- "):
            items.append(_broken(line[2:]))
        elif len(items) > 1 and line.startswith("  "):
            items[-1] += ("" if items[-1].endswith("\n") else " ") + _broken(line.strip())
        elif items and (line or len(items) > 1):
            found.append(_listed(tuple(headings), items))
            items = []
    return found


def _broken(line: str) -> str:
    """A line of a list, its line break (a backslash at the end) as a newline."""
    return line.removesuffix("\\") + "\n" * line.endswith("\\")


def _listed(headings: tuple[str, ...], items: list[str]) -> Table:
    """The table that a list is. Cells end at ` · ` or at a line break; `-`, or what is missing, is an empty cell."""
    names, *lines = (re.split(r" · |\n", item) for item in items)
    rows = []
    for item, cells in zip(items[1:], lines, strict=True):
        last = [cells.pop()] if "\n" in item else []
        cells += [""] * (len(names) - len(cells) - len(last)) + last
        rows.append(tuple("" if cell == "-" else cell for cell in cells))
    return Table(headings, tuple(names), tuple(rows))


def table(page: Path, heading: str) -> Table:
    """The first table under the heading of that name."""
    return next(found for found in tables(page) if found.headings[-1] == heading)


def spans(text: str) -> list[str]:
    """The texts between backticks."""
    return [span.replace("\\|", "|") for span in _SPAN.findall(text)]


def prose(page: Path) -> list[str]:
    """The lines outside of fences."""
    lines, fenced = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            lines.append(line)
    return lines


def blocks(page: Path) -> Iterator[str]:
    """The code blocks of a page, fenced or indented, lines that end in a backslash joined to the next."""
    block: list[str] = []
    fenced = False
    before = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        indented = (
            not fenced and line.startswith("    ") and (block or before == "" or not before.startswith(("-", "|")))
        )
        if block and (fence or not (fenced or indented)):
            yield "\n".join(block).replace("\\\n", " ")
            block = []
        if fence:
            fenced = not fenced
        elif fenced or indented:
            block.append(line if fenced else line[4:])
        before = line
    if block:
        yield "\n".join(block).replace("\\\n", " ")


def commands(page: Path) -> list[list[str]]:
    """The words after `hybrid` of every command in a code block."""
    lines = (line.partition("&& ")[2] or line for block in blocks(page) for line in block.splitlines())
    return [words(line)[1] for line in lines if re.match(r"(\$ )?([A-Z_]+=\S* )*hybrid ", line)]


def words(line: str) -> tuple[dict[str, str], list[str]]:
    """A command line as a shell reads it: the variables set before it, and the words after `hybrid`."""
    parts = shlex.split(line.removeprefix("$ "), comments=True)
    start = next(place for place, part in enumerate(parts) if not _ASSIGNMENT.match(part))
    assert parts[start] == "hybrid", line
    variables = dict(part.split("=", 1) for part in parts[:start])
    return variables, parts[start + 1 :]
