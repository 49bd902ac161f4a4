"""A recipe in a home of its own, driven by the command line in this process."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli.main import run
from hybrid.kafka.topics import create_topic
from tests.early_death import ends_at

ROOT = Path(__file__).resolve().parents[2]

Cli = Callable[..., Any]


class RecipeHome:
    """Runs commands on one home and gives back what they print, as JSON or as messages."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        self.messages = self.printed = ""

    def run(self, *words: str, code: int = 0) -> Any:
        """One command with --json; its exit code must be `code`."""
        self._capsys.readouterr()
        found = run(["--home", str(self.home), *words, "--json"])
        out, self.messages = self._capsys.readouterr()
        self.printed = out
        assert found == code, f"hybrid {' '.join(words)}: exit {found}\n{self.messages}"
        return json.loads(out) if out.strip() else None

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return self.run("query", sql)

    def names(self, half: str) -> list[str]:
        return [one["name"] for one in self.run("segment", "list", "orders") if one["half"] == half]


@pytest.fixture(autouse=True)
def synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes write as users do: other tests leave files to the operating system."""
    monkeypatch.setenv("HYBRID_DURABLE", "true")


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AbstractContextManager[None]]:
    """`dies("flow.commit.after@2")`: a command ends there, and the next one finds what it left.

    It costs no process and no JVM. One kill -9 of each kind of commit is a process of its own.
    """

    return lambda point: ends_at(point, monkeypatch)


@pytest.fixture
def make_recipe(
    broker: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., RecipeHome]:
    """Creates a recipe's table on a topic of its own and produces its events: the published order, files unchanged."""

    def make(recipe: str, changes: Sequence[str] = ()) -> RecipeHome:
        home = RecipeHome(tmp_path / "home", capsys)
        for words in commands_of(recipe, broker, topic, changes):
            home.run(*words)
        home.topic, home.broker = topic, broker
        return home

    return make


def commands_of(recipe: str, broker: str, topic: str, changes: Sequence[str] = ()) -> list[list[str]]:
    """What creates a recipe's table on a topic, and what produces its events."""
    files = ROOT / "data" / recipe
    configs = [str(files / f"orders_{name}.json") for name in ("table", "offline_table")]
    sets = [f"stream.kafka.topic.name={topic}", *changes]
    create = ["table", "create", "--schema", str(files / "orders_schema.json"), "--kafka", broker]
    create += [word for config in configs for word in ("--config", config)]
    create += [word for change in sets for word in ("--set", change)]
    return [create, ["kafka", "produce", topic, str(files / "events.jsonl"), "--kafka", broker]]


__all__ = ["RecipeHome", "create_topic"]
