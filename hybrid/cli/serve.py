"""`hybrid serve`: ingest tables continuously, run scheduled tasks, serve HTTP."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import dispatcher, refuse_server, require_home, require_right, tell
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.serve.supervisor import Address

_PORT = click.IntRange(0, 65535)


@click.command(cls=HybridCommand)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind; not loopback: needs an account.")
@click.option("--port", type=_PORT, default=9000, show_default=True, help="Controller port; 0: any free one.")
@click.option("--broker-port", type=_PORT, default=8099, show_default=True, help="Broker port; 0: any free one.")
@click.option(
    "--role",
    type=click.Choice(["all", "query", "pipeline"]),
    default="all",
    show_default=True,
    help="Which processes: HTTP (query), Spark (pipeline), or both under watch.",
)
@click.option("--cache-bytes", type=click.IntRange(min=0), help="Memory to keep tables in; 0: read files each time.")
@click.option("--stop", is_flag=True, help="Stop the server of this home, and wait until it has ended.")
@pass_cli
def serve(cli: Cli, host: str, port: int, broker_port: int, role: str, cache_bytes: int | None, stop: bool) -> int:
    """Ingest tables, run tasks and jobs on a warm Spark session, serve HTTP. In the foreground."""
    if stop:
        return _stop(cli)
    from hybrid.logs import setup_logging
    from hybrid.serve.supervisor import Address, supervise

    refuse_server(cli, "hybrid serve", "Leave --server out: this is the server.", flag_only=True)
    require_right(cli, "admin", "'serve'")
    _ = cli.settings.pinning  # wrong settings are reported here, and not by each process that reads them
    address = Address(host, port, broker_port)
    _has_accounts_if_needed(cli, address)
    if cache_bytes is not None:
        os.environ["HYBRID_CACHE_BYTES"] = str(cache_bytes)  # for the processes that it starts, and their successors
    options = ["--home", str(cli.home)]
    setup_logging(cli.settings.logs, "serve" if role == "all" else role)
    if role == "all":
        return supervise(cli.home, address, options, cli.progress)
    whole = [*options, "serve", "--host", host, "--port", str(port), "--broker-port", str(broker_port)]
    with dispatcher(cli, may_create=True) as home:
        if role == "query":
            from hybrid.serve.query_role import run_query

            return run_query(home, address, whole)
        from hybrid.serve.pipeline_role import run_pipeline

        return run_pipeline(home, whole)


def _stop(cli: Cli) -> int:
    """Stop the server of this home. NotFoundError if none runs."""
    from hybrid.serve.stop import stop_server

    refuse_server(cli, "hybrid serve --stop", "Run it on that machine, with --home.", flag_only=True)
    require_right(cli, "admin", "'serve --stop'")
    require_home(cli)
    tell(cli, {"sentence": stop_server(cli.home)})
    return 0


def _has_accounts_if_needed(cli: Cli, address: Address) -> None:
    """Raise UsageError if other machines could reach a server without accounts.

    Asked of whoever starts a server. Its processes go on when the last account is removed, and let nobody in.
    """
    from hybrid.home.accounts import Accounts
    from hybrid.serve.supervisor import LIFELINE, SUCCESSOR

    if address.is_loopback or {LIFELINE, SUCCESSOR} & os.environ.keys() or Accounts(cli.home).list():
        return
    raise UsageError(
        f"--host {address.host}: other machines would reach this server, and {cli.home} has no account yet.",
        hint="hybrid access add NAME --right read|operate|admin",
    )
