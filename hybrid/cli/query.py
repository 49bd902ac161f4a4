"""`hybrid query`: run a statement in Pinot's SQL dialect."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import IO, Any

import click

from hybrid.cli.answer import show_answer, show_plan
from hybrid.cli.command import Cli, HybridCommand, is_interactive, keep_option, pass_cli
from hybrid.cli.dispatch import ask, ask_statement, statement_arguments
from hybrid.cli.output import FILE_FORMATS
from hybrid.cli.parameters import parameter_options
from hybrid.cli.query_list import query_list
from hybrid.errors import UsageError
from hybrid.files.results.result_format import ResultFormat


class _StatementCommand(HybridCommand):
    """A command whose argument may begin with an SQL comment, `-- text`, which is no option."""

    formats = FILE_FORMATS
    verbs: Mapping[str, click.Command] = {"list": query_list}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the statement, or of the verb that stands where a statement would: `hybrid query list`."""
        place = self._first_word(args)
        verb = None if place is None else self.verbs.get(args[place])
        if place is None or verb is None:
            return super().make_context(info_name, args, parent, **extra)
        return verb.make_context(f"{info_name} {args[place]}", [*args[:place], *args[place + 1 :]], parent, **extra)

    def _first_word(self, args: Sequence[str]) -> int | None:
        """The index of the first argument that is neither an option nor the value of one."""
        options = [param for param in self.params if isinstance(param, click.Option) and not param.is_flag]
        with_value = {word for option in options for word in option.opts}
        place = 0
        while place < _end(args):
            if not args[place].startswith("-") or args[place] == "-":
                return place
            place += 2 if args[place] in with_value else 1
        return None

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
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    expose_value=False,
    callback=keep_option,
    help="Run it by DuckDB, or by Spark in this process.",
)
@parameter_options
@pass_cli
def query(
    cli: Cli,
    sql: str | None,
    file: IO[bytes] | None,
    output: str | None,
    force: bool,
    explain: bool,
    as_of: str | None,
    params: Mapping[str, Any] | None,
) -> int:
    """Answer a statement from one revision. It sees both halves, and the rows in Kafka that are not committed yet.

    The statement is an argument, a file or standard input; without one a terminal opens the interactive shell. -o and
    the formats parquet and arrow write all rows, as they come; otherwise a statement without LIMIT shows 10.

    `hybrid query list` lists statements that run or have ended.
    """
    if output is None and cli.format in (ResultFormat.PARQUET, ResultFormat.ARROW):
        output = "-"
    if output is not None and explain:
        raise UsageError("--explain runs no statement, so there are no rows for -o.")
    if output is None and force:
        raise UsageError("--force replaces the file of -o FILE; there is none.")
    is_shell = sql is None and file is None and output is None and not explain and "engine" not in cli.given
    if is_shell and is_interactive():
        from hybrid.cli.shell.command import open_shell

        return open_shell(cli, as_of=as_of, params=params)
    statement = _with_engine(cli, _statement(sql, file))
    if output is not None:
        from hybrid.cli.export import export

        export(cli, statement, output, as_of=as_of, force=force, params=params)
        return 0
    if explain:
        show_plan(cli, ask(cli, "explain", **statement_arguments(statement, as_of, params)))
        return 0
    show_answer(cli, statement, ask_statement(cli, statement, as_of, params))
    return 0


def _with_engine(cli: Cli, statement: str) -> str:
    """The statement with --engine as its option, behind it, so that errors name the places of the text."""
    engine = cli.given.get("engine")
    return statement if engine is None else f"{statement}\n; SET engine = '{engine}'"


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
