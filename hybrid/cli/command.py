"""Base classes of all commands: the global options, before or after the command, and the `Cli` that holds them.

A noun's module uses `@click.group(cls=HybridGroup)` (or `@click.command(cls=HybridCommand)`), then `@noun.command()`.
`@pass_cli` passes a `Cli` as the first argument. A command returns its exit code; None is 0.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TextIO, TypeVar

import click

from hybrid.cli.cells import Row, View
from hybrid.cli.output import FILE_FORMATS, FORMATS, TerminalProgress, emit
from hybrid.config.settings import Settings, load_settings
from hybrid.errors import suggestion
from hybrid.progress import Progress

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

P = ParamSpec("P")
R = TypeVar("R")
FINDINGS = 3  # the exit code of a command that was done, and found something wrong
SUMMARY_MAX = 90  # characters of a command in the list of its noun


class Cli:
    """One run of the command line: the global options, and the settings resolved from them."""

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
        """One of `FORMATS`, or of a command's own formats."""
        return str(self.given.get("format", "table"))

    @property
    def is_machine_read(self) -> bool:
        """Whether the output format is for programs, not for people."""
        return self.format != "table"

    @property
    def is_terminal(self) -> bool:
        """Whether results are laid out for a terminal, for people."""
        return not self.is_machine_read and sys.stdout.isatty()

    @property
    def is_wide(self) -> bool:
        """Whether --wide was given: every column, and no line broken."""
        return bool(self.given.get("wide"))

    @functools.cached_property
    def settings(self) -> Settings:
        """The resolved settings; warnings about `hybrid.toml` are printed once."""
        home = self.given.get("home")
        flags = {name: self.given.get(name) for name in ("server", "token")}
        settings = load_settings(home=Path(home) if home else None, flags=flags)
        for warning in settings.warnings:
            self.say(f"warning: {warning}")
        return settings

    @property
    def home(self) -> Path:
        """The home folder, absolute; it need not exist yet."""
        return self.settings.home

    def say(self, message: str) -> None:
        """Print a message for people on stderr."""
        self.progress.say(message)

    def emit(
        self,
        data: Row | Sequence[Row],
        columns: View | Sequence[str] | None = None,
        *,
        empty: str | None = None,
        stream: TextIO | None = None,
    ) -> None:
        """Print the result on stdout, or `stream`, in the requested format.

        `empty`: what a terminal says of a list without rows.
        """
        if empty is not None and not data and self.is_terminal:
            self.say(empty)
        else:
            emit(data, columns, self.format, stream, wide=self.is_wide)


def is_interactive() -> bool:
    """Whether a person types at a terminal and sees the results there."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def pass_cli(function: Callable[Concatenate[Cli, P], R]) -> Callable[P, R]:
    """Give a command its `Cli` as first argument."""

    @functools.wraps(function)
    def with_cli(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(Cli.of(click.get_current_context()), *args, **kwargs)

    return with_cli


def keep_option(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store a global option; the last one on the command line wins."""
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


def global_options(formats: Sequence[str] = FORMATS) -> list[click.Option]:
    """The options that every command takes; `formats` are those of its result."""
    shared: dict[str, Any] = {"expose_value": False, "callback": keep_option}
    return [
        click.Option(["--home"], metavar="DIR", help="Home folder (default .hybrid, searched upward).", **shared),
        click.Option(["--server"], metavar="URL", help="Let the server at URL do the work.", **shared),
        click.Option(["--token"], metavar="SECRET", help="Secret of an account there (HYBRID_TOKEN).", **shared),
        click.Option(["--format"], type=click.Choice(formats), help="Form of the result (default table).", **shared),
        click.Option(["--json"], is_flag=True, help="Same as --format json.", **shared),
        click.Option(["--wide"], is_flag=True, help="On a terminal: every column, and no line broken.", **shared),
        click.Option(["-v", "verbose"], is_flag=True, help="Show the traceback of an error.", **shared),
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Version."
        ),
    ]


class TableName(click.types.StringParamType):
    """The name of a table, which a shell completes."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The tables whose names begin so."""
        # By its name, as nouns are, because it imports this module.
        found = importlib.import_module("hybrid.cli.completed_names").complete_tables(ctx, incomplete)
        return list(found)


_TABLE_NAME = TableName()
_TABLE_METAVARS = ("TABLE", "[TABLE]")


class _WithGlobalOptions(click.Command):
    """Adds the global options to a command and lists them separately in its help. `formats` are those of its result.

    Parameters that are shown as TABLE are completed from the tables.
    """

    formats: Sequence[str] = FORMATS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {word for param in self.params for word in param.opts}
        self.shared = [option for option in global_options(self.formats) if not own & set(option.opts)]
        for param in self.params:
            if param.metavar in _TABLE_METAVARS and param.type is click.STRING:
                param.type = _TABLE_NAME
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
    """A command that takes the global options. `verbs` may stand in place of its argument, as in `query list`."""

    verbs: Mapping[str, click.Command] = {}

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. UsageError, before it does anything, for a format that stands before it and it has not."""
        chosen = Cli.of(ctx).format
        if chosen not in self.formats:
            raise click.UsageError(f"Only rows of a query have the format '{chosen}'.", ctx)
        return super().invoke(ctx)


def _list_of(command: click.Command) -> click.Command | None:
    return command.verbs.get("list") if isinstance(command, HybridCommand) else None


@dataclass(frozen=True)
class Noun:
    """A lazily imported command: its `module:attribute` and its short help."""

    target: str
    help: str

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


class HybridGroup(_WithGlobalOptions, click.Group):
    """A group of commands: a noun with its verbs. `nouns` are further, lazily imported commands.

    `alone` is the verb of the noun without any; `named` the verb before a name: `hybrid segment orders` lists.
    """

    command_class = HybridCommand
    group_class = type

    def __init__(
        self,
        *args: Any,
        nouns: Mapping[str, Noun] | None = None,
        alone: str | None = None,
        named: str | None = None,
        **kwargs: Any,
    ) -> None:
        if nouns:  # any command may follow
            self.formats = FILE_FORMATS
        super().__init__(*args, **kwargs)
        self.nouns = nouns or {}
        self._alone, self._named = alone, named

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands in the order of their definition."""
        return [*self.commands, *self.nouns]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported if necessary."""
        noun = self.nouns.get(cmd_name)
        if noun is not None:
            return noun.load()
        return super().get_command(ctx, cmd_name) or self._of_plural(cmd_name)

    def _of_plural(self, word: str) -> click.Command | None:
        """The noun whose plural a word is, if it has verbs: `hybrid moves` must move nothing."""
        singulars = (word.removesuffix("s"), f"{word.removesuffix('ies')}y")
        loaded = [self.nouns[name].load() for name in singulars if name != word and name in self.nouns]
        listing = (command if isinstance(command, click.Group) else _list_of(command) for command in loaded)
        return next((command for command in listing if command is not None), None)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; the noun alone lists or shows."""
        if self._alone is not None and not ctx.resilient_parsing:
            _, behind_options, _ = self.make_parser(ctx).parse_args(args=list(args))
            if not behind_options:
                args = [*args, self._alone]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, with a suggestion for an unknown name, which may also be that of a table."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            close = suggestion(name, self.list_commands(ctx))
            has_more = args[1:2] != [] and not args[1].startswith("-")  # then the first is no table
            if self._named is None or close or has_more or ctx.resilient_parsing:
                raise click.UsageError(f"No such command '{name}'.{close}", ctx)
            args = [self._named, *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, then the options, that a shell completes; a noun is not imported for it."""
        from click.shell_completion import CompletionItem

        names = [(name, text) for name, text in self._summaries() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=text) for name, text in names), *options]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands before the options."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per command; a noun is not imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl(self._summaries())

    def _summaries(self) -> list[tuple[str, str]]:
        """Each command and its short help."""
        summaries = [(name, command.get_short_help_str(SUMMARY_MAX)) for name, command in self.commands.items()]
        return [*summaries, *((name, noun.help) for name, noun in self.nouns.items())]
