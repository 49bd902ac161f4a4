"""A process in a pseudo-terminal, as a person uses it: keys are typed, and what appears is read."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence

WAIT_S = 40.0
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|\][^\x07]*\x07|[=>78])|[\x08\r]")
# A process whose session is new gets its terminal as the controlling one, whose Ctrl-C is a signal.
_START = (
    "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); from hybrid.cli.main import main;"
    "sys.argv = ['hybrid', *sys.argv[1:]]; main()"
)
PROMPT = r"hybrid[^\n>]*>\s*\Z"
CTRL_C, CTRL_D, TAB, UP, ENTER = "\x03", "\x04", "\t", "\x1b[A", "\r"


class PseudoTerminal:
    """`hybrid` with these arguments in a terminal of 100 columns and 30 lines."""

    def __init__(self, args: Sequence[str], env: Mapping[str, str], lines: int = 30) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 100, 0, 0))
        known = {**os.environ, "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}
        for name in ("COLUMNS", "LINES"):
            known.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *args],
            stdin=slave, stdout=slave, stderr=slave, env=known, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.raw = ""
        self._seen = 0

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(timeout=10)
        os.close(self._master)

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._master, keys.encode())

    def run(self, line: str, until: str = PROMPT) -> str:
        """Type a line and Enter; what appears until a pattern, by default the next prompt."""
        self.type(line)
        self.settle()
        self.type(ENTER)
        return self.expect(until)

    def settle(self, quiet_s: float = 0.15) -> str:
        """Wait until nothing more appears; what has appeared meanwhile."""
        while self._read(quiet_s):
            pass
        found = self.text[self._seen :]
        self._seen = len(self.text)
        return found

    def expect(self, pattern: str, timeout_s: float = WAIT_S) -> str:
        """What appears up to a pattern, of what was not expected before."""
        until = time.monotonic() + timeout_s
        while True:
            found = re.search(pattern, self.text[self._seen :], re.DOTALL)
            if found:
                shown = self.text[self._seen : self._seen + found.end()]
                self._seen += found.end()
                return shown
            left = until - time.monotonic()
            assert left > 0, f"{pattern!r} did not appear in {self.text[self._seen :]!r}"
            assert self._read(min(left, 1.0)) or self.process.poll() is None, f"it has ended: {self.text!r}"

    def end(self, timeout_s: float = WAIT_S) -> int:
        """The exit code."""
        until = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < until:
            self._read(0.1)
        return self.process.wait(timeout=1)

    @property
    def text(self) -> str:
        """What has appeared, without the sequences that move the cursor and set colours."""
        return _ESCAPES.sub("", self.raw)

    def _read(self, wait_s: float) -> bool:
        """Take in what is there within a time; whether anything was."""
        if not select.select([self._master], [], [], wait_s)[0]:
            return False
        try:
            taken = os.read(self._master, 65536)
        except OSError:  # the process has closed its end
            return False
        self.raw += taken.decode("utf-8", "replace")
        return bool(taken)
