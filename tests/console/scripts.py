"""Calls functions of the console's scripts in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "hybrid" / "serve" / "console" / "static"
NEEDS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def script(name: str) -> str:
    """The address of a script of the console, such as `query/text.js`."""
    return (STATIC / name).as_uri()


def call(module: str, *calls: list[Any]) -> list[Any]:
    """The results of calls of a module's functions, in one process."""
    given = json.dumps({"module": module, "calls": calls})
    command = ["node", "--no-warnings", str(HERE / "call_functions.mjs")]
    ended = subprocess.run(command, input=given.encode(), capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr.decode()
    found: list[Any] = json.loads(ended.stdout)
    return found
