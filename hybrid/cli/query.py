"""`hybrid query`: ask, in Pinot's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.opened import ask
from hybrid.errors import UsageError


@click.command(cls=HybridCommand)
@click.argument("sql", required=False)
@click.option("-f", "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read the statement.")
@click.option("--explain", is_flag=True, help="Show revision, boundary, segments read and pruned, SQL; do not run it.")
@click.option("--as-of", metavar="REVISION|TIME", help="Answer as the tables were: an answer's revision, or a time.")
@pass_cli
def query(cli: Cli, sql: str | None, file: Path | None, explain: bool, as_of: str | None) -> None:
    """Answer a statement from one revision of both halves, and the rows in Kafka that are not committed yet."""
    if (sql is None) == (file is None):
        raise UsageError('Give one statement: hybrid query "select ..." or -f FILE.')
    statement = sql if sql is not None else file.read_text(encoding="utf-8") if file else ""
    if explain:
        _tell_plan(cli, ask(cli, "explain", sql=statement, as_of=as_of))
        return
    result = ask(cli, "query", sql=statement, as_of=as_of)
    for warning in result["warnings"]:
        cli.say(f"warning: {warning}")
    names = _distinct(result["columns"])
    cli.emit([dict(zip(names, row, strict=True)) for row in result["rows"]], names)


def _tell_plan(cli: Cli, explanation: dict[str, Any]) -> None:
    if cli.is_machine_read:
        cli.emit(explanation["plan"])
        return
    for subject, text in explanation["lines"]:
        click.echo(f"{subject}: {text}")


def _distinct(names: Sequence[str]) -> list[str]:
    """The column names; one that stands twice gets a number, since a row is printed as an object."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found
