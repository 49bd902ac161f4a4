"""`hybrid query list`: the statements that run or have ended."""

from __future__ import annotations

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import ask

_QUERIES = View(
    ("started_at", "duration_ms", "slow", "state", "rows", "source", "account", "statement"),
    drop=("source", "rows"),
    below=("account",),
    more=("client", "segments", "bytes", "id"),
    notes=("error",),
)
_EMPTY = 'No statement is in the query log. One gets there by: hybrid query "select count(*) from TABLE"'


@click.command("list", cls=HybridCommand)
@click.option("--slow", is_flag=True, help="Only those that took slow_query_ms or longer.")
@click.option("--since", metavar="TIME", help="Only those that ended since this time, or so long ago: 2h.")
@click.option("--account", metavar="NAME", help="Only those of this account.")
@click.option("--table", metavar="TABLE", help="Only those that read this table.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 10_000), default=100, help="So many (default 100).")
@pass_cli
def query_list(cli: Cli, slow: bool, since: str | None, account: str | None, table: str | None, limit: int) -> None:
    """List statements that run or have ended, newest first, with their duration, state and account."""
    wanted = {"slow": slow, "since": since, "account": account, "table": table, "limit": limit}
    queries = ask(cli, "queries", **wanted)
    if cli.is_terminal:
        queries = [{**query, "slow": "slow" if query["slow"] else None} for query in queries]
    cli.emit(queries, _QUERIES, empty=_EMPTY)
