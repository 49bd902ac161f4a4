"""Text of others on a terminal: no control character and no change of direction gets through."""

import io

import pytest

from hybrid.cli.cells import printable
from hybrid.cli.output import TerminalProgress, emit

HOSTILE = "a\x9b31mb\x1b]0;t\x07c\u202ed\u2066e\u200ff\x85g\u2028h"


@pytest.mark.parametrize("code", [*range(32), *range(127, 160), 0x61C, 0x200E, 0x202A, 0x202E, 0x2066, 0x2069])
def test_controls_are_written_out(code: int) -> None:
    assert chr(code) not in printable(f"a{chr(code)}b")


def test_tables_errors_and_progress() -> None:
    out = io.StringIO()
    emit([{"k": HOSTILE}], stream=out)
    emit({"k": HOSTILE}, stream=out)
    progress = TerminalProgress(out)
    progress.say(f"error: {HOSTILE}\nhint: x")
    progress.step(HOSTILE, 1, 1)
    shown = out.getvalue()
    assert not set(shown) & set("\x9b\x1b\x07\u202e\u2066\u200f\x85\u2028")
    assert shown.count("\\x9b") == 4 and "\nhint: x" in shown
