"""Run a command locally or on a server. Also the confirmation of destructive operations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli.command import Cli
from hybrid.config.settings import missing_home
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid
    from hybrid.rpc.client import Client


# Verbs that may create a home, or need none.
_NEW_HOME = frozenset({"table_create", "table_apply", "table_add", "table_infer", "table_validate", "schema_put"})


def ask(cli: Cli, verb: str, **arguments: Any) -> Any:
    """Call a verb of `hybrid.rpc.verbs` on the named server or the server of this home, else in this process."""
    client = client_of(cli)
    if client is not None:
        return client.call(verb, arguments)
    may_create = verb in _NEW_HOME
    if not may_create:
        require_home(cli)
    from hybrid.rpc.verbs import VERBS

    if cli.settings.token is not None:
        require_right(cli, VERBS[verb].right.word, f"'{verb}'")
    with dispatcher(cli, may_create=may_create) as home:
        try:
            return VERBS[verb].call(home, **arguments)
        except KeyboardInterrupt:
            if VERBS[verb].run_type is not None and verb != "backfill_run":  # backfill_run prints more itself
                cli.say("What was committed stays. Run it again: it continues with what is missing.")
            raise


def ask_statement(cli: Cli, sql: str, as_of: str | None = None, params: Mapping[str, Any] | None = None) -> Any:
    """The answer to a statement, as the verb `query` gives it. Ctrl-C stops it at the server or in this process."""
    client = client_of(cli)
    if client is not None:
        return client.call("query", statement_arguments(sql, as_of, params))
    require_right(cli, "read", "'query'")
    require_home(cli)
    from hybrid.cli.cancellation import Started, cancellable
    from hybrid.operations.queries import record_answer
    from hybrid.query.engine import QueryOptions
    from hybrid.rpc.json_views import query_view

    with dispatcher(cli) as home, home.context.query_log.recorded(sql, home.context.client) as record:

        def answer(started: Started) -> Any:
            options = QueryOptions(running=started, spark=home.context.context_with_spark)
            result = home.query(sql, params, options=options, as_of=as_of)
            return result, query_view(result)

        result, view = cancellable(answer)
        record_answer(record, result)
        return view


def statement_arguments(sql: str, as_of: str | None, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """A statement as the arguments of a verb. A server of an older version takes no `params`."""
    return {"sql": sql, "as_of": as_of, **({"params": dict(params)} if params else {})}


def client_of(cli: Cli) -> Client | None:
    """The client of the named server or of the server of this home; None without either, or with `--engine spark`."""
    from hybrid.rpc.client import Client

    if cli.given.get("engine") == "spark":  # a server has no JVM for statements
        refuse_server(cli, "hybrid query --engine spark", "Run it on the server's machine, with --home DIR.")
        return None
    url = server_url(cli)
    return None if url is None else Client(url, cli.progress, _secret_for(cli, url))


def shown_server(url: str) -> str:
    """The address of a server in a message: without a login."""
    from hybrid.rpc.client import ServerAddress

    return ServerAddress.parse(url).url


def server_url(cli: Cli) -> str | None:
    """URL of the named server, else of the server that runs on this home, else None."""
    from hybrid.rpc.client import server_of

    return cli.settings.server or server_of(cli.home)


def require_right(cli: Cli, right: str, what: str) -> None:
    """Check the token against the accounts of this home, when no server does so."""
    from hybrid.home.accounts import Accounts, Right

    if cli.settings.token is not None:
        Accounts(cli.home).check(cli.settings.token, Right[right.upper()], what)


def refuse_server(cli: Cli, command: str, instead: str, *, flag_only: bool = False) -> None:
    """Raise UsageError if a server is named for a command that works only on a local home.

    With `flag_only` a server from the environment or `hybrid.toml` is ignored.
    """
    server = cli.given.get("server") if flag_only else cli.settings.server
    if server:
        where = shown_server(server)
        raise UsageError(
            f"`{command}` works on a home of this machine and cannot ask the server at {where}.", hint=instead
        )


def require_home(cli: Cli) -> None:
    """Raise NotFoundError, with the source of the setting, if the home does not exist.

    It comes before the imports of what works on a home: these take longer than a command that finds none.
    """
    if not cli.home.is_dir():
        raise missing_home(cli.settings)


def _secret_for(cli: Cli, url: str) -> str | None:
    """The credential for the server at `url`: the token, else the secret of the home, which no other server gets.

    None when the address has a login, which wins over environment and file; UsageError when `--token` is given, too.
    """
    from hybrid.rpc.client import ServerAddress, secret_of

    if ServerAddress.parse(url).login is not None:
        if cli.given.get("token"):
            raise UsageError("The server's address has a login, and --token is another.", hint="Leave out one of them.")
        return None
    return cli.settings.token or secret_of(cli.home, url)


@contextmanager
def dispatcher(cli: Cli, *, may_create: bool = False) -> Iterator[Hybrid]:
    """Open the home of the command line, and close it at the end. NotFoundError if missing, unless `may_create`."""
    if not may_create:
        require_home(cli)
    from hybrid.api.hybrid import Hybrid
    from hybrid.home.running_queries import CLI

    home = Hybrid(cli.settings, cli.progress)
    home.context.client = CLI
    try:
        yield home
    finally:
        home.close()


def will_ask(yes: bool) -> bool:
    """Whether `confirm` would ask somebody: what is refused anyway is refused before."""
    return not yes and sys.stdin.isatty()


def confirm(question: str, yes: bool) -> None:
    """Ask for confirmation on a terminal; UsageError without a terminal or `--yes`. click.Abort if declined."""
    if yes:
        return
    if not will_ask(yes):
        raise UsageError(
            f"{question} There is no terminal to ask on.", hint="The same hybrid command with --yes answers yes."
        )
    from hybrid.cli.terminal.readable import grouped

    click.confirm(grouped(question), abort=True, err=True)


def tell(cli: Cli, report: dict[str, Any]) -> None:
    """Print the warnings and the sentence of a report; the whole report in a format for programs."""
    for warning in report.get("warnings", ()):
        cli.say(f"warning: {warning}")
    cli.say(report["sentence"])
    if cli.is_machine_read:
        cli.emit(report)
