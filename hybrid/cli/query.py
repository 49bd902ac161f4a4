"""`hybrid query`: run a statement in Pinot's SQL dialect."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from typing import IO, Any

import click

from hybrid.cli.cells import printable
from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import ask
from hybrid.cli.output import FILE_FORMATS
from hybrid.errors import UsageError
from hybrid.files.results.result_format import ResultFormat, distinct_names

_EXPLAIN = re.compile(r"\bexplain\s+plan\s+for\b", re.IGNORECASE)


class _StatementCommand(HybridCommand):
    """A command whose argument may begin with an SQL comment, `-- text`, which is no option."""

    formats = FILE_FORMATS

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, with the statement moved behind all options."""
        options = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        statements = [arg for arg in args[: _end(args)] if _is_commented(arg, options)]
        if len(statements) == 1:
            args = [arg for arg in args if arg is not statements[0]]
            args = [*args, *([] if "--" in args else ["--"]), *statements]
        return super().parse_args(ctx, args)


def _end(args: Sequence[str]) -> int:
    """Index at which the options end: at a separate `--`."""
    return args.index("--") if "--" in args else len(args)


def _is_commented(arg: str, options: Collection[str]) -> bool:
    """Whether an argument of several words begins with a comment, and not with an option and its value."""
    words = arg.split()
    return arg.startswith("--") and len(words) > 1 and words[0].split("=")[0] not in options


@click.command(cls=_StatementCommand)
@click.argument("sql", required=False)
@click.option("-f", "--file", type=click.File("rb"), help="Read the statement from a file; '-': standard input.")
@click.option("-o", "--output", metavar="FILE", help="Write all rows to this file, as its suffix says; '-': stdout.")
@click.option("--force", is_flag=True, help="Replace an existing FILE.")
@click.option("--explain", is_flag=True, help="Show revision, boundary, segments read and pruned, SQL; do not run it.")
@click.option("--as-of", metavar="REVISION|TIME", help="Answer as the tables were: an answer's revision, or a time.")
@pass_cli
def query(
    cli: Cli,
    sql: str | None,
    file: IO[bytes] | None,
    output: str | None,
    force: bool,
    explain: bool,
    as_of: str | None,
) -> None:
    """Answer a statement from one revision of both halves, and the rows in Kafka that are not committed yet.

    The statement is an argument, a file or standard input. -o and the formats parquet and arrow write all rows, as they
    come; otherwise a statement without LIMIT shows 10.
    """
    if output is None and cli.format in (ResultFormat.PARQUET, ResultFormat.ARROW):
        output = "-"
    if output is not None and explain:
        raise UsageError("--explain runs no statement, so there are no rows for -o.")
    if output is None and force:
        raise UsageError("--force replaces the file of -o FILE; there is none.")
    statement = _statement(sql, file)
    if output is not None:
        from hybrid.cli.export import export

        export(cli, statement, output, as_of=as_of, force=force)
        return
    if explain:
        _tell_plan(cli, ask(cli, "explain", sql=statement, as_of=as_of))
        return
    result = ask(cli, "query", sql=statement, as_of=as_of)
    for warning in result["warnings"]:
        cli.say(f"warning: {warning}")
    names = distinct_names(result["columns"])
    if cli.is_terminal and _is_explained(statement, result):
        _tell_tree(result["rows"])
        return
    cli.emit([dict(zip(names, row, strict=True)) for row in result["rows"]], names)


def _statement(sql: str | None, file: IO[bytes] | None) -> str:
    """The statement: from the argument, a file, or standard input."""
    if sql is not None and file is not None:
        raise UsageError('Give one statement: hybrid query "select ..." or -f FILE.')
    if sql is not None and sql != "-":
        return sql
    if file is None and sql is None and sys.stdin.isatty():
        raise UsageError('Give one statement: hybrid query "select ...", -f FILE, or by standard input.')
    source = file if file is not None else sys.stdin.buffer
    try:
        statement = source.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"The statement is not UTF-8: {error}.") from error
    if not statement.strip():
        raise UsageError('There is no statement: hybrid query "select ...", -f FILE, or by standard input.')
    return statement


def _tell_plan(cli: Cli, explanation: dict[str, Any]) -> None:
    if cli.is_machine_read:
        cli.emit(explanation["plan"])
        return
    if cli.is_terminal:
        _tell_tree(explanation["lines"])
        return
    for subject, text in explanation["lines"]:
        click.echo(printable(f"{subject}: {text}"))


def _tell_tree(lines: Sequence[Sequence[str]]) -> None:
    from hybrid.cli.terminal.show import show_explanation

    show_explanation(lines, sys.stdout)


def _is_explained(statement: str, result: dict[str, Any]) -> bool:
    """Whether the rows are those of EXPLAIN PLAN FOR: the server parses the statement, so the columns decide too."""
    return result["columns"] == ["Subject", "Plan"] and _EXPLAIN.search(statement) is not None
