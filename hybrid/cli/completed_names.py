"""What a shell completes behind a command: names of tables, segments, plans, replacements and runs.

Nothing is printed and no error raised: without names a shell completes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from hybrid.cli.command import Cli
from hybrid.progress import Silent

_WAIT_S = 2.0  # a shell hangs meanwhile


def complete_tables(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Names of tables."""
    return _items(_asked(ctx, "table_list"), "name", incomplete)


def complete_segments(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the segments of the table before it."""
    return _items(_asked(ctx, "segments", table=ctx.params.get("table")), "name", incomplete)


def complete_plans(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of backfills."""
    return _items(_asked(ctx, "backfills"), "id", incomplete)


def complete_plan_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of backfills, else files."""
    return complete_plans(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def complete_replacements(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of the replacements of the table before it."""
    return _items(_asked(ctx, "replacements", table=ctx.params.get("table")), "id", incomplete)


def complete_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of runs."""
    return _items(_asked(ctx, "runs"), "id", incomplete)


def _asked(ctx: click.Context, verb: str, **arguments: Any) -> list[dict[str, Any]]:
    """The result of a verb; nothing when it fails or takes long."""
    from hybrid.cli.dispatch import ask

    cli = Cli.of(ctx)
    cli.progress = Silent()
    return _within(_WAIT_S, lambda: ask(cli, verb, **arguments))


def _within(seconds: float, work: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def run() -> None:
        try:
            found.extend(work())
        except Exception:  # whatever it is, a shell must not print it into the line that is typed
            found.clear()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return [*found]


def _items(rows: list[dict[str, Any]], key: str, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(str(row[key])) for row in rows if str(row[key]).startswith(incomplete)]
