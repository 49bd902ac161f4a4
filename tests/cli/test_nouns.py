"""A noun without its verb lists or shows, and its plural is understood; what moves or removes needs its verb."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from hybrid.cli import dispatch
from hybrid.cli.command import SUMMARY_MAX, Cli
from hybrid.cli.main import NOUNS, hybrid, run

LISTS = {
    "table": "table_list",
    "tables": "table_list",
    "table orders": "table_show",
    "task": "runs",
    "tasks orders": "runs",
    "segment orders": "segments",
    "segments orders": "segments",
    "boundary orders": "boundary",
    "boundaries orders": "boundary",
    "replacement orders": "replacements",
    "replacements orders": "replacements",
    "backfills": "backfills",
    "backfill orders": "backfills",
    "connectors orders": "connectors",
    "flows": "flows",
    "rejected orders": "rejected",
    "query list": "queries",
    "query --json list --slow": "queries",
    "queries": "queries",
    "queries --slow": "queries",
    "--format json query list --table orders": "queries",
    "table --json": "table_list",
    "--json segments --wide orders": "segments",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs that commands ask; nothing is done."""
    verbs: list[str] = []

    class Client:
        def call(self, verb: str, arguments: Any) -> Any:
            verbs.append(verb)
            raise KeyboardInterrupt

    monkeypatch.setattr(dispatch, "client_of", lambda cli: Client())
    return verbs


@pytest.mark.parametrize("line", LISTS)
def test_the_noun_lists_or_shows(asked: list[str], line: str) -> None:
    assert run(line.split()) == 130
    assert asked == [LISTS[line]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("segment", "Commands:"),
        ("boundary", "Commands:"),
        ("segment lsit orders", "Did you mean 'list'?"),
        ("table drpo orders", "Did you mean 'drop'?"),
        ("moves orders", "Did you mean 'move'?"),
        ("purges orders", "Did you mean 'purge'?"),
        ("flow orders", "No such command 'orders'."),
        ("segment orders extra", "No such command 'orders'."),
        ("table rename orders rides", "No such command 'rename'."),
    ],
)
def test_what_is_no_list_is_refused(
    asked: list[str], line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 2
    assert words in capsys.readouterr().err and asked == []


def test_help_of_a_noun_stays_help(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("table --help", "tables --help", "backfill -h"):
        assert run(line.split()) == 0
        assert "Commands:" in capsys.readouterr().out and asked == []


def test_nouns_that_show_a_state_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--home", str(tmp_path), "config", "--json"]) == 0
    alone = capsys.readouterr().out
    assert run(["--home", str(tmp_path), "config", "show", "--json"]) == 0
    assert capsys.readouterr().out == alone


def test_every_verb_that_is_assumed_exists_and_changes_nothing() -> None:
    context = click.Context(hybrid)
    groups = [group for name in NOUNS if isinstance(group := hybrid.get_command(context, name), click.Group)]
    # `hybrid erase orders` names its table and its rows, and asks.
    verbs = ((group.name, verb) for group in groups for verb in (group._alone, group._named))
    assumed = {verb for noun, verb in verbs if verb is not None and (noun, verb) != ("erase", "run")}
    assert assumed == {"list", "show", "status"}
    assert all(verb in group.commands for group in groups for verb in (group._alone, group._named) if verb)


def every_command(group: click.Group, path: str = "hybrid") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{path} {name}")


def test_no_line_of_a_list_of_commands_is_cut() -> None:
    """Click cuts a first sentence that is too long, and ends it with three dots."""
    cut = {name: text for name, command in every_command(hybrid)
           if (text := command.get_short_help_str(SUMMARY_MAX)).endswith("...")}  # fmt: skip
    assert cut == {}
    listed = CliRunner().invoke(hybrid, ["boundary", "--help"], obj=Cli()).output
    assert "..." not in listed.partition("Commands:")[2].partition("Options:")[0]
