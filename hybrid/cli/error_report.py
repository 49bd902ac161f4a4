"""Reports an error to people: a message, a hint and an exit code; with a JSON format an object on stdout too."""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from hybrid.cli.command import Cli
from hybrid.cli.error_lines import with_line
from hybrid.cli.output import emit
from hybrid.errors import ERRORS_MAX, HybridError
from hybrid.jvm.spark_errors import is_spark_error, unexpected_words
from hybrid.logs import written_log
from hybrid.schema.secret_texts import holds_secret

INTERRUPTED = 130
_MASKED = frozenset({"--token", "-password", "-authToken", "--where", "--sql", "--param", "--param-json"})
_NAME = re.compile(r"[\w./~-]+")
_JSON = ("json", "jsonl")
_ENGINE_INTERRUPTED = "Query interrupted"  # DuckDB sometimes raises this RuntimeError for Ctrl-C


def report_error(cli: Cli, args: Sequence[str], error: BaseException) -> int:
    """Report an exception of a command on stderr, and return the exit code."""
    if was_interrupted(error):
        cli.say("interrupted")
        return INTERRUPTED
    if isinstance(error, HybridError):
        _complain(cli, args, str(error), error.hint, error.code, error.others)
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        cli.say(error.format_message())
        return 2
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "hybrid"
        _complain(cli, args, error.format_message(), f"{path} --help", "usage")
        return 2
    if isinstance(error, click.ClickException):
        _complain(cli, args, error.format_message(), None, "usage")
        return error.exit_code
    return _unexpected(cli, args, error)


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C caused an error: clean-up after a cancelled Spark job can fail."""
    cause: BaseException | None = error
    seen: set[int] = set()  # an error that is raised again below its own cause makes a circle
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt | click.Abort):
            return True
        if isinstance(cause, RuntimeError) and str(cause) == _ENGINE_INTERRUPTED:
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def _unexpected(cli: Cli, args: Sequence[str], error: BaseException) -> int:
    """Report an error that is no HybridError: a fault of the machine, or a bug."""
    from hybrid.runtime.disk import machine_error

    log = _log_traceback(cli, error)
    try:
        home = cli.home
    except HybridError:  # the settings cannot be read either
        home = Path.cwd()
    machine_failure = machine_error(error, home)
    if machine_failure is not None:
        _complain(cli, args, str(machine_failure), machine_failure.hint, machine_failure.code)
    elif isinstance(error, OSError):  # for example a folder of another user: a fault of the machine, not a bug
        _complain(cli, args, str(error), f"the traceback is in {log}", "machine")
    else:
        what = "the traceback is in" if is_spark_error(error) else "this is a bug; the traceback is in"
        _complain(cli, args, unexpected_words(error), f"{what} {log}", "error")
    return 1


def _complain(
    cli: Cli, args: Sequence[str], message: str, hint: str | None, code: str, others: Sequence[HybridError] = ()
) -> None:
    """Report an error on stderr; with a JSON format also as an object on stdout. `others` are further errors."""
    if cli.verbose:
        cli.say(traceback.format_exc().rstrip())
    hints = [text for text in dict.fromkeys([hint, *(other.hint for other in others)]) if text]
    messages = [with_line(text) for text in (message, *map(str, others))]
    for text in messages:
        cli.say(f"error: {text}")
    if len(others) + 1 >= ERRORS_MAX:
        cli.say(f"There may be more: {ERRORS_MAX} errors are shown at once.")
    for text in hints:
        cli.say(f"hint: {text}")
    form = _json_format(cli, args)
    if form is not None:
        every_hint = (hint, *(other.hint for other in others))
        listed = [{"message": text, "hint": own} for text, own in zip(messages, every_hint, strict=True)]
        document = {"code": code, **listed[0], **({"errors": listed} if others else {})}
        emit(document, fmt=form)


def _json_format(cli: Cli, args: Sequence[str]) -> str | None:
    """The JSON format of the command line, if any. It is unparsed when an argument before it was invalid."""
    if cli.format in _JSON:
        return cli.format
    if "--json" in args:
        return "json"
    named = [*(arg.removeprefix("--format=") for arg in args if arg.startswith("--format="))]
    named += [after for before, after in pairwise(args) if before == "--format"]
    return next((form for form in named if form in _JSON), None)


def _log_traceback(cli: Cli, error: BaseException) -> Path | str:
    message = "Unexpected error; arguments: %s"
    logging.getLogger("hybrid").error(message, without_secret(sys.argv[1:]), exc_info=error)
    log = written_log()
    if log is not None:
        return log
    try:
        return f"no log, because {cli.settings.logs} cannot be written (run again with -v)"
    except HybridError:
        return "no log, because the settings cannot be read (run again with -v)"


def without_secret(args: Sequence[str]) -> list[str]:
    """The arguments of a command line for a log: secrets and conditions, which may name a person, are masked."""
    return [_without_secret(before, arg) for before, arg in zip(["", *args], args, strict=False)]


def _without_secret(option: str, text: str) -> str:
    """What a log shows of a word of the command line behind the word `option`."""
    if option in _MASKED:
        return "..."
    if option == "--server":
        return text.rpartition("@")[2]
    name, equals, value = text.partition("=")
    if equals and (name in _MASKED or name == "--server"):
        return f"{name}={_without_secret(name, value)}"
    if not holds_secret(text):
        return text
    return f"{name}=..." if equals and _NAME.fullmatch(name) else "..."
