"""Run the unit tests in processes side by side, which take files from one queue: `python -m tests.unit_parts 2`.

pytest-xdist would collect all tests in each process, and send the result of each test to one more.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
# Plugins that no unit test needs; each costs a little for each test. One file at a time has them: `python -m pytest`.
_UNNEEDED = ("schemathesis", "xdist", "pytest_cov", "anyio", "cacheprovider")
_PROGRESS = re.compile(r"\S+ +\[ *\d+%\]")
_REPORT_S = 5  # the time for a report after an interrupt
_FILES_MAX = 4096  # a number for each: no pipe holds less
_PASSED, _NO_TESTS = 0, 5  # of pytest's exit codes


def filled_queue() -> int:
    """The reading end of a pipe with the numbers from 0 on; the writing end is closed."""
    read, write = os.pipe()
    os.write(write, array("H", range(_FILES_MAX)).tobytes())
    os.close(write)
    return read


def next_number(queue: int) -> int:
    """Take a number from a queue. No other process gets it: two bytes are read by one of them only."""
    return array("H", os.read(queue, 2))[0]


class Part:
    """A process that takes files from a queue and runs them. What it prints beside its progress is kept for the end."""

    def __init__(self, name: str, queue: int, options: Sequence[str]) -> None:
        self.name = name
        self.report: list[str] = []
        command = [sys.executable, "-m", "tests.unit_parts", f"--queue={queue}", *options]
        # In a group of its own: a Ctrl-C reaches it once, by `interrupt`.
        self._process = subprocess.Popen(
            command,
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            pass_fds=[queue],
        )

    def wait(self) -> int:
        """Print its progress until it ends. Its exit code."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if _PROGRESS.match(line):
                print(f"{self.name} {line}", end="", flush=True)
            else:
                self.report.append(line)
        return self._process.wait()

    def interrupt(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self._process.poll() is None:
            self._process.send_signal(number)


def run(count: int, options: Sequence[str]) -> int:
    """Run the tests in `count` processes; the exit code is 0 if those of all parts passed."""
    began = time.monotonic()
    queue = filled_queue()
    parts = [Part(f"{number + 1}/{count}", queue, options) for number in range(count)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(count) as pool:
        codes = _codes(parts, [pool.submit(part.wait) for part in parts])
    for part in parts:
        print(f"\n{f' part {part.name} ':=^80}", "".join(part.report), sep="\n")
    for part, code in zip(parts, codes, strict=True):
        print(f"{part.name}: {part.report[-1].strip() if part.report else 'nothing'}, exit code {code}")
    print(f"{time.monotonic() - began:.0f} s")
    wrong = {abs(code) for code in codes} - {_PASSED, _NO_TESTS}
    return max(wrong) if wrong else min(codes)


def _codes(parts: Sequence[Part], ends: Sequence[Future[int]]) -> list[int]:
    try:
        wait(ends)
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):  # a test may have taken the first for its own
            for part in parts:
                part.interrupt(number)
            if not wait(ends, _REPORT_S).not_done:
                break
    return [end.result() for end in ends]


def main(arguments: Sequence[str]) -> int:
    """Run all parts, or one that `run` has started."""
    if not arguments[0].startswith("--queue="):
        return run(int(arguments[0]), [*_options(), *arguments[1:]])
    ended = [1]
    atexit.register(lambda: os._exit(ended[0]))  # after what pytest registers, and without freeing each object
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    import pytest

    ended[0] = int(pytest.main(["--unit", *arguments]))
    sys.stdout.flush()
    sys.stderr.flush()
    return ended[0]


def _options() -> list[str]:
    unneeded = [f"-pno:{name}" for name in _UNNEEDED]
    return [*unneeded, "-q", "--capture=sys", f"--color={'yes' if sys.stdout.isatty() else 'no'}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
