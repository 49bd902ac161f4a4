"""The prompt of the interactive shell: line editing, completion, history, multi-line input."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import CompleteStyle

from hybrid.cli.command import Cli
from hybrid.cli.dispatch import ask, server_url
from hybrid.cli.error_report import report_error, was_interrupted
from hybrid.cli.shell.commands import LeaveShell, run_input
from hybrid.cli.shell.completion import ShellCompleter
from hybrid.cli.shell.highlighting import SqlHighlighter, shell_style
from hybrid.cli.shell.history import PrivateHistory, history_file
from hybrid.cli.shell.names import CatalogNames
from hybrid.cli.shell.session import ShellSession
from hybrid.cli.shell.statements import is_complete, split_inputs
from hybrid.progress import Silent
from hybrid.schema.secrets import without_login


def converse(session: ShellSession) -> None:
    """Read and run inputs until the user leaves. Errors and Ctrl-C end what runs, not the shell."""
    cli = session.cli
    _greet(cli)
    prompts = _prompt_session(cli)
    while True:
        try:
            text = prompts.prompt(_prompt(session))
        except KeyboardInterrupt:  # the unfinished input is left
            continue
        except EOFError:
            return
        try:
            for given in split_inputs(text, at_end=True)[0]:
                run_input(session, given)
        except LeaveShell:
            return
        except (Exception, KeyboardInterrupt) as error:
            _report(cli, error)


def _report(cli: Cli, error: BaseException) -> None:
    """Say what ended the inputs of a prompt."""
    if was_interrupted(error):
        cli.say("\ncancelled")
    else:
        report_error(cli, (), error)


def _greet(cli: Cli) -> None:
    url = server_url(cli)
    place = f"home {cli.home}" if url is None else f"server {without_login(url)}"
    cli.say(f"hybrid {version('hybrid')}, {place}")
    cli.say("Statements end with ';'. Tab completes, .help lists commands, Ctrl-C cancels, Ctrl-D leaves.")


def _prompt_session(cli: Cli) -> PromptSession[str]:
    session: PromptSession[str] = PromptSession(
        completer=ShellCompleter(CatalogNames(_quietly(cli))),
        complete_in_thread=True,
        complete_while_typing=False,
        complete_style=CompleteStyle.MULTI_COLUMN,
        lexer=SqlHighlighter(),
        style=shell_style(),
        include_default_pygments_style=False,
        color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        history=_history(cli),
        prompt_continuation=_continuation,
        enable_open_in_editor=True,
    )
    session.multiline = Condition(lambda: not is_complete(session.default_buffer.text))
    return session


def _quietly(cli: Cli) -> Callable[..., object]:
    """`ask` for completion: it runs in a thread, and prints nothing into the line that is typed."""
    quiet = Cli()
    quiet.given, quiet.progress = {**cli.given}, Silent()
    return partial(ask, quiet)


def _history(cli: Cli) -> History:
    try:
        path = history_file()
    except RuntimeError:  # a user without a home folder
        return InMemoryHistory()
    secrets = [secret for secret in (cli.settings.token,) if secret]
    return PrivateHistory(path, secrets, cli.say)


def _prompt(session: ShellSession) -> StyleAndTextTuples:
    return [("class:prompt", session.prompt())]


def _continuation(width: int, line: int, is_soft_wrap: int) -> str:
    return "" if is_soft_wrap else "...> ".rjust(width)
