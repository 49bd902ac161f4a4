"""`hybrid completion`: the script with which a shell completes commands, options, tables, segments and plans."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from hybrid.cli.command import HybridCommand

SHELLS = ("bash", "zsh", "fish")
_PROGRAM, _VARIABLE = "hybrid", "_HYBRID_COMPLETE"


@click.command(cls=HybridCommand)
@click.argument("shell", type=click.Choice(SHELLS), metavar="|".join(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script for bash, zsh or fish to complete commands.

    For bash: eval "$(hybrid completion bash)".
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click has these three
    # The base class's: bash's own starts bash to look at its version.
    click.echo(ShellComplete.source(kind(ctx.find_root().command, {}, _PROGRAM, _VARIABLE)))
