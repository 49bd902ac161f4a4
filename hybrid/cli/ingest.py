"""`hybrid ingest`: Kafka to realtime segments."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import ask, dispatcher, require_right, server_url, shown_server, tell
from hybrid.errors import UsageError
from hybrid.runtime.signals import act_on_signals


@click.command(cls=HybridCommand)
@click.argument("name", metavar="TABLE")
@click.option("--until-caught-up", is_flag=True, help="Stop when nothing is left to read; else run until Ctrl-C.")
@pass_cli
def ingest(cli: Cli, name: str, until_caught_up: bool) -> None:
    """Ingest messages beyond the committed offsets from Kafka into realtime segments."""
    if until_caught_up:
        tell(cli, ask(cli, "ingest", table=name))
        return
    url = server_url(cli)
    if url is not None:
        raise UsageError(
            f"The server at {shown_server(url)} ingests '{name}' all the time.",
            hint=f"hybrid ingest {name} --until-caught-up",
        )
    require_right(cli, "operate", "'ingest'")
    with dispatcher(cli) as home:
        tell(cli, dict(vars(home.table(name).ingest(_asked_to_stop()))))


def _asked_to_stop() -> Callable[[], bool]:
    """True after Ctrl-C or SIGTERM: the current batch is finished first."""
    stop_event = threading.Event()
    act_on_signals(stop_event.set, signal.SIGINT, signal.SIGTERM)
    return stop_event.is_set
