"""`hybrid shell`: statements one after another, typed at a terminal, from a pipe, or given as options."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from hybrid.cli.command import Cli, HybridCommand, is_interactive, pass_cli
from hybrid.cli.dispatch import require_home, server_url
from hybrid.cli.shell.commands import LeaveShell, run_input
from hybrid.cli.shell.session import ShellSession
from hybrid.cli.shell.statements import ShellInput, read_inputs
from hybrid.errors import UsageError


@click.command(cls=HybridCommand)
@click.option(
    "-e", "--execute", metavar="SQL", multiple=True, help="Run these statements and leave; may be given several times."
)
@click.option("--as-of", metavar="REVISION|TIME", help="Answer as the tables were: an answer's revision, or a time.")
@pass_cli
def shell(cli: Cli, execute: tuple[str, ...], as_of: str | None) -> int:
    """Open the interactive shell, or run several statements.

    Statements end with ';'. Dot commands stand on lines of their own; .help lists them. A terminal gets completion,
    history and editing of several lines. From a pipe, and with --execute, statements run one by one up to the first
    error, which is the exit code.
    """
    if execute or not is_interactive():
        return _run_all(cli, _given(execute) if execute else read_inputs(_piped()), as_of)
    return open_shell(cli, as_of=as_of)


def open_shell(cli: Cli, *, as_of: str | None = None, params: Mapping[str, Any] | None = None) -> int:
    """Open the interactive shell; the exit code when the user leaves."""
    if server_url(cli) is None:
        require_home(cli)
    from hybrid.cli.shell.interactive import converse

    session = ShellSession(cli, is_interactive=True, as_of=as_of)
    session.options.parameters.update(params or {})
    converse(session)
    return 0


def _run_all(cli: Cli, inputs: Iterable[ShellInput], as_of: str | None) -> int:
    """Run inputs up to the first error, which is raised."""
    session = ShellSession(cli, is_interactive=False, as_of=as_of)
    try:
        for given in inputs:
            run_input(session, given)
    except LeaveShell:
        pass
    return 0


def _given(texts: Iterable[str]) -> Iterator[ShellInput]:
    for text in texts:
        yield from read_inputs(text.splitlines(keepends=True))


def _piped() -> Iterator[str]:
    """The lines of standard input, each as it comes."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"Line {number} of the statements is not UTF-8: {error}.") from error
