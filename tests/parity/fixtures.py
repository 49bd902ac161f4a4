"""The statements of `sql/*.sql`, each with DuckDB's SQL for it, and what a real Pinot answered.

A fixture is `--- name`, a line `-- differs: ...` where we differ on purpose, Pinot's SQL, then `-- by hand` and
DuckDB's SQL over the table of `rows.sql`; `-- by hand: error` where there must be no answer, `-- by hand: none` where
DuckDB has nothing to compare with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROWS, SCHEMA, TABLE = FOLDER / "rows.jsonl", FOLDER / "schema.json", FOLDER / "table.json"
RECORDED = FOLDER / "pinot-0.11.0.json"
_FIXTURE = re.compile(
    r"--- (?P<name>[^\n]+)\n(?:-- differs: (?P<differs>[^\n]+)\n)?(?P<sql>.+?)\n"
    r"-- by hand(?:: (?P<instead>error|none)(?:\n|$)|\n(?P<duckdb>.+))",
    re.DOTALL,
)


@dataclass(frozen=True)
class Fixture:
    """One statement. `duckdb` is the same by hand, or None; `fails` says that there must be no answer."""

    id: str
    sql: str
    duckdb: str | None
    fails: bool
    differs: str | None


@dataclass(frozen=True)
class Answer:
    """What Pinot answered: names, wire types and JSON rows, or the code of its error."""

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    error: int | None = None
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is recorded."""
        if self.error is not None:
            return {"error": self.error, "message": self.message}
        return {"names": self.names, "types": self.types, "rows": self.rows}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Answer:
        """What `to_json` gave."""
        if "error" in document:
            return cls(error=document["error"], message=document["message"])
        rows = tuple(tuple(row) for row in document["rows"])
        return cls(tuple(document["names"]), tuple(document["types"]), rows)


def fixtures() -> list[Fixture]:
    """All of them, by file and place."""
    return [found for path in sorted((FOLDER / "sql").glob("*.sql")) for found in _read(path)]


def _read(path: Path) -> Iterator[Fixture]:
    for block in re.split(r"(?m)^(?=--- )", path.read_text(encoding="utf-8")):
        if not block.strip():
            continue
        match = _FIXTURE.fullmatch(block.strip())
        assert match is not None, f"{path.name}: this is no fixture:\n{block}"
        found = match.groupdict()
        fails = found["instead"] == "error"
        yield Fixture(f"{path.stem}: {found['name']}", found["sql"], found["duckdb"], fails, found["differs"])


@cache
def recorded() -> dict[str, tuple[str, Answer]]:
    """The statement and Pinot's answer, by fixture."""
    answers = json.loads(RECORDED.read_text(encoding="utf-8"))["answers"]
    return {name: (one["sql"], Answer.from_json(one["answer"])) for name, one in answers.items()}


def write_recorded(version: str, answers: dict[str, tuple[str, Answer]]) -> None:
    """Writes the recording, one line for each statement, so that a change of one is a change of one line."""
    lines = [
        f"{json.dumps(name)}: {json.dumps({'sql': sql, 'answer': answer.to_json()}, ensure_ascii=False)}"
        for name, (sql, answer) in answers.items()
    ]
    body = ",\n".join(lines)
    RECORDED.write_text(f'{{"pinot": {json.dumps(version)}, "answers": {{\n{body}\n}}}}\n', encoding="utf-8")
