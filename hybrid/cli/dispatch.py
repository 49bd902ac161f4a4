"""Who does what a command line asks for: a server, or this process on its home. And the question before some acts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli.command import Cli
from hybrid.config.settings import missing_home
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid


# What may make a home, or needs none.
_NEW_HOME = frozenset({"table_create", "table_apply", "table_add", "table_validate", "schema_put"})


def ask(cli: Cli, verb: str, **arguments: Any) -> Any:
    """The result of a verb of `hybrid.rpc.verbs`: the server's that was named or runs on this home, else our own."""
    url = server_url(cli)
    if url is not None:
        from hybrid.rpc.client import Client

        return Client(url, cli.progress, _secret_for(cli, url)).call(verb, arguments)
    from hybrid.rpc.verbs import VERBS

    if cli.settings.token is not None:
        from hybrid.serve.authorization import right_for

        require_right(cli, right_for("POST", f"/verbs/{verb}").word, f"'{verb}'")
    with dispatcher(cli, may_create=verb in _NEW_HOME) as home:
        try:
            return VERBS[verb].call(home, **arguments)
        except KeyboardInterrupt:
            if VERBS[verb].run_type is not None and verb != "backfill_run":  # that one tells more itself
                cli.say("What was committed stays. Run it again: it goes on with what is missing.")
            raise


def server_url(cli: Cli) -> str | None:
    """The server that is to do the work: the one that was named, else the one that runs on this home, else None."""
    from hybrid.rpc.client import server_of

    return cli.settings.server or server_of(cli.home)


def require_right(cli: Cli, right: str, what: str) -> None:
    """Check a token that was given against the accounts of this home, where no server does it."""
    from hybrid.home.accounts import Accounts, Right

    if cli.settings.token is not None:
        Accounts(cli.home).check(cli.settings.token, Right[right.upper()], what)


def refuse_server(cli: Cli, command: str, instead: str, *, flag_only: bool = False) -> None:
    """UsageError for a server that was named to a command that works on this machine's home only.

    With `flag_only` a server that stands in the environment or in `hybrid.toml` is meant for other commands.
    """
    server = cli.given.get("server") if flag_only else cli.settings.server
    if server:
        raise UsageError(
            f"`{command}` works on a home of this machine and cannot ask the server at {server}.", hint=instead
        )


def require_home(cli: Cli) -> None:
    """NotFoundError, with where the name came from, when the home does not exist."""
    if not cli.home.is_dir():
        raise missing_home(cli.settings)


def _secret_for(cli: Cli, url: str) -> str | None:
    """What the server at `url` is told: the token that was given, else the home's own secret, which no other gets."""
    from hybrid.rpc.client import secret_of

    return cli.settings.token or secret_of(cli.home, url)


@contextmanager
def dispatcher(cli: Cli, *, may_create: bool = False) -> Iterator[Hybrid]:
    """The home that the command line names, closed at the end. NotFoundError when there is none, unless it is made."""
    from hybrid.api.hybrid import Hybrid

    if not may_create:
        require_home(cli)
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
