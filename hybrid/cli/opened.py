"""The home of a command line as the API sees it, and the question before an act that cannot be taken back lightly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hybrid.cli.command import Cli
from hybrid.errors import UsageError

if TYPE_CHECKING:
    from hybrid.api import Hybrid


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


def time_text(time_ms: int | None) -> str | None:
    """Epoch milliseconds as ISO 8601 in UTC; None stays None."""
    from hybrid.move.plan import utc

    return None if time_ms is None else utc(time_ms)
