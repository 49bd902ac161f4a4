"""The pager: results that are longer than the terminal go through `$PAGER`, by default `less`."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from hybrid.cli.signals import signals_handled

_DEFAULT = "less"
# Leave at once where all fits, keep colours, leave the text on the screen.
_LESS_OPTIONS = "FRX"
_PROMPT_LINES = 2  # the line of the row count and the next prompt


class _Results(io.StringIO):
    """Collected output, laid out as for the terminal that it goes to."""

    def isatty(self) -> bool:
        """Whether it ends on a terminal: yes."""
        return True


@contextmanager
def paged(*, is_enabled: bool, is_wide: bool = False) -> Iterator[TextIO]:
    """A stream for results. With a pager they are shown at the end of the block, else they go to stdout."""
    command = pager_command() if is_enabled and sys.stdout.isatty() else None
    if command is None:
        yield sys.stdout
        return
    results = _Results()
    yield results
    text = results.getvalue()
    if text.count("\n") + _PROMPT_LINES <= shutil.get_terminal_size().lines:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        _show(command, text, is_wide)


def pager_command() -> list[str] | None:
    """The words of the pager's command line; None without one. `PAGER=''` and `PAGER=cat` switch it off."""
    try:
        words = shlex.split(os.environ.get("PAGER", _DEFAULT))
    except ValueError:
        return None
    if not words or words[0] == "cat" or shutil.which(words[0]) is None:
        return None
    return words


def _show(command: list[str], text: str, is_wide: bool) -> None:
    """Pass a text to the pager and wait for it. Ctrl-C is the pager's meanwhile."""
    environment = {**os.environ, "LESS": os.environ.get("LESS", _LESS_OPTIONS + ("S" if is_wide else ""))}
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError:  # removed since, or not executable
        sys.stdout.write(text)
        return
    with signals_handled(signal.SIG_IGN, signal.SIGINT):
        with suppress(BrokenPipeError):  # its user has seen enough
            process.communicate(text.encode(sys.stdout.encoding or "utf-8", "replace"))
        process.wait()
