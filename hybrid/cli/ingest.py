"""`hybrid ingest`: Kafka to realtime segments."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.opened import opened


@click.command(cls=HybridCommand)
@click.argument("name", metavar="TABLE")
@click.option("--until-caught-up", is_flag=True, help="Stop when nothing is left to read; else go on until Ctrl-C.")
@pass_cli
def ingest(cli: Cli, name: str, until_caught_up: bool) -> None:
    """Write what Kafka holds beyond the committed offsets to realtime segments."""
    with opened(cli) as home:
        report = home.table(name).ingest(None if until_caught_up else _asked_to_stop())
    cli.say(report.sentence)
    if cli.is_machine_read:
        cli.emit(vars(report))


def _asked_to_stop() -> Callable[[], bool]:
    """True once Ctrl-C or SIGTERM has come: the batch under way is finished first."""
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    return asked.is_set
