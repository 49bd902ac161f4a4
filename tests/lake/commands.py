"""Commands of a home, one after the other in one process: `python -m tests.lake.commands HOME`.

A line of its input is JSON: the words of a command and more variables of the environment, or the name of what
`tests.lake.corrections` does. A line of its output is the answer: exit code, output and messages.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hybrid.cli.main import run
from tests.lake import corrections


def answer(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """What a command gives. It runs in this process."""
    out, messages = StringIO(), StringIO()
    with patch.dict(os.environ, request["environment"]), redirect_stdout(out), redirect_stderr(messages):
        code = run(["--home", str(home), *request["words"], "--json"])
    return {"code": code, "out": out.getvalue(), "messages": messages.getvalue()}


def main() -> None:
    """Answers until the end of the input."""
    home, answers = Path(sys.argv[1]), sys.stdout
    for line in sys.stdin:
        request = json.loads(line)
        work = request.get("corrections")
        found = answer(home, request) if work is None else {"code": 0, "out": corrections.run(home, *work)}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
