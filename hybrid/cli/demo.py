"""`hybrid demo`: plays a recipe end to end."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.demo.recipes import RECIPES
from hybrid.errors import MachineError


@click.command(cls=HybridCommand)
@click.argument("recipe", type=click.Choice(sorted(RECIPES)), default="orders")
@pass_cli
def demo(cli: Cli, recipe: str) -> None:
    """Play a recipe end to end: each command, and what it gives. It has a home and a broker of its own."""
    from hybrid.cli.dispatch import refuse_server
    from hybrid.demo.tour import play

    refuse_server(cli, "hybrid demo", "Leave --server out: it plays on this machine.", flag_only=True)
    play(recipe, cli.home / "demo" / recipe, _run, cli.progress)


def _run(command: Sequence[str]) -> None:
    """Run a command in this process, so that the whole tour shares one Spark session."""
    from hybrid.cli.main import run

    code = run(command)
    if code:
        raise MachineError(f"The demo stopped: `hybrid {' '.join(command)}` ended with exit code {code}.")
