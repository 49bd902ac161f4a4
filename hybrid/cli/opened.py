"""Who does what a command line asks for: a server, or this process on its home. And the question before some acts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli.command import Cli
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.api import Hybrid


def ask(cli: Cli, verb: str, **arguments: Any) -> Any:
    """The result of a verb of `hybrid.verbs`: the server's that was named or runs on this home, else our own."""
    url = server_url(cli)
    if url is not None:
        from hybrid.client import Client

        return Client(url, cli.progress, _secret_for(cli, url)).call(verb, arguments)
    from hybrid.verbs import VERBS

    with opened(cli) as home:
        return VERBS[verb].call(home, **arguments)


def server_url(cli: Cli) -> str | None:
    """The server that is to do the work: the one that was named, else the one that runs on this home, else None."""
    from hybrid.client import server_of

    return cli.settings.server or server_of(cli.home)


def _secret_for(cli: Cli, url: str) -> str | None:
    """What the server at `url` is told: its home's own secret if it is the home's, never to another one."""
    from hybrid.client import secret_of

    return secret_of(cli.home, url) or cli.settings.token


@contextmanager
def opened(cli: Cli) -> Iterator[Hybrid]:
    """The home that the command line names, closed at the end."""
    from hybrid.api import Hybrid

    home = Hybrid(cli.settings, cli.progress)
    try:
        yield home
    finally:
        home.close()


def confirm(question: str, yes: bool) -> None:
    """Asks on a terminal; without one, `--yes` has to answer. click.Abort when the answer is no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask on.", hint="--yes answers yes.")
    click.confirm(question, abort=True, err=True)


def tell(cli: Cli, report: dict[str, Any]) -> None:
    """A report's warnings and its sentence; all of it where a program reads."""
    for warning in report.get("warnings", ()):
        cli.say(f"warning: {warning}")
    cli.say(report["sentence"])
    if cli.is_machine_read:
        cli.emit(report)
