"""A process that runs a command line of `hybrid`, HOME WORD..., to be killed (`tests.shared_jvm.die_at`)."""

from __future__ import annotations

import sys

from hybrid.cli.main import run
from tests.shared_jvm import borrow_session


def main() -> None:
    home, *words = sys.argv[1:]
    borrow_session()
    sys.exit(run(["--home", home, *words]))
