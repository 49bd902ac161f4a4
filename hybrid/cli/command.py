"""What every command shares: the global options, before and after the command, and the `Cli` that carries them.

A noun's file says `@click.group(cls=HybridGroup)` (or `@click.command(cls=HybridCommand)`), then `@noun.command()`, and
takes a `Cli` first with `@pass_cli`. What a command returns is its exit code; None is 0.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from hybrid.cli.output import FORMATS, Row, TerminalProgress, emit
from hybrid.config.settings import Settings, load_settings
from hybrid.errors import suggestion
from hybrid.progress import Progress

P = ParamSpec("P")
R = TypeVar("R")


class Cli:
    """One run of the command line: the global options as given, and what follows from them."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.progress: Progress = TerminalProgress()

    @staticmethod
    def of(ctx: click.Context) -> Cli:
        """The Cli of a command's context."""
        return ctx.find_root().ensure_object(Cli)

    @property
    def verbose(self) -> bool:
        """Whether -v was given: a traceback with each error."""
        return bool(self.given.get("verbose"))

    @property
    def format(self) -> str:
        """`table`, `json`, `jsonl` or `csv`."""
        return str(self.given.get("format", "table"))

    @property
    def is_machine_read(self) -> bool:
        """Whether the result is asked for in a format that programs read."""
        return self.format != "table"

    @functools.cached_property
    def settings(self) -> Settings:
        """The resolved settings; warnings about `hybrid.toml` are said once."""
        home = self.given.get("home")
        flags = {name: self.given.get(name) for name in ("server", "token")}
        found = load_settings(home=Path(home) if home else None, flags=flags)
        for warning in found.warnings:
            self.say(f"warning: {warning}")
        return found

    @property
    def home(self) -> Path:
        """The home folder, absolute; it need not exist yet."""
        return self.settings.home

    def say(self, message: str) -> None:
        """A message for people, on stderr."""
        self.progress.say(message)

    def emit(self, data: Row | Sequence[Row], columns: Sequence[str] | None = None) -> None:
        """The result, on stdout, in the format that was asked for."""
        emit(data, columns, self.format)


def pass_cli(function: Callable[Concatenate[Cli, P], R]) -> Callable[P, R]:
    """Give a command its `Cli` as first argument."""

    @functools.wraps(function)
    def with_cli(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(Cli.of(click.get_current_context()), *args, **kwargs)

    return with_cli


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """The option nearest to the end of the line wins."""
    if value is None or value is False:
        return
    if param.name == "json":
        Cli.of(ctx).given["format"] = "json"
    elif param.name is not None:
        Cli.of(ctx).given[param.name] = value


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"hybrid {version('hybrid')}")
        ctx.exit()


def global_options() -> list[click.Option]:
    """The options that every command takes."""
    shared: dict[str, Any] = {"expose_value": False, "callback": _keep}
    return [
        click.Option(["--home"], metavar="DIR", help="Home folder (default .hybrid, searched upward).", **shared),
        click.Option(["--server"], metavar="URL", help="Let the server at URL do the work.", **shared),
        click.Option(["--token"], metavar="SECRET", help="Secret of an account there (HYBRID_TOKEN).", **shared),
        click.Option(["--format"], type=click.Choice(FORMATS), help="Form of the result (default table).", **shared),
        click.Option(["--json"], is_flag=True, help="Same as --format json.", **shared),
        click.Option(["-v", "verbose"], is_flag=True, help="Show the traceback of an error.", **shared),
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Version."
        ),
    ]


class _WithGlobalOptions(click.Command):
    """Adds the global options to a command's own, and shows them apart in its help."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {word for param in self.params for word in param.opts}
        self.shared = [option for option in global_options() if not own & set(option.opts)]
        self.params.extend(self.shared)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then the global ones; the usage line has the arguments already."""
        own = [param for param in self.get_params(ctx) if param not in self.shared and isinstance(param, click.Option)]
        for title, params in (("Options", own), ("Global options (before or after the command)", self.shared)):
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class HybridCommand(_WithGlobalOptions):
    """A command that takes the global options."""


@dataclass(frozen=True)
class Noun:
    """A command that is imported only when it is used: `module:attribute`, and its line in the help."""

    target: str
    help: str

    def load(self) -> click.Command:
        """Import it."""
        module, _, attribute = self.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


class HybridGroup(_WithGlobalOptions, click.Group):
    """A noun with its verbs. `nouns` are further commands that are imported when they are used."""

    command_class = HybridCommand
    group_class = type

    def __init__(self, *args: Any, nouns: Mapping[str, Noun] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.nouns = nouns or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were written."""
        return [*self.commands, *self.nouns]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported if need be."""
        noun = self.nouns.get(cmd_name)
        if noun is not None:
            return noun.load()
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with a suggestion when the name is not known."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(f"No such command '{name}'.{suggestion(name, self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands first: they are what one looks for."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line each; a noun's line without importing it."""
        lines = [(name, command.get_short_help_str(90)) for name, command in self.commands.items()]
        lines += [(name, noun.help) for name, noun in self.nouns.items()]
        with formatter.section("Commands"):
            formatter.write_dl(lines)
