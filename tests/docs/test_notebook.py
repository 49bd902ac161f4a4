"""docs/notebook.ipynb runs from its first cell to its last, and is stored without outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.soak.harness import JVM_OPTIONS

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"

# Runs the cells in one namespace as a kernel does: a cell may await, and shows its last expression.
RUNNER = """
import ast, asyncio, inspect, json, sys

cells = json.loads(sys.stdin.read())
namespace = {"__name__": "__main__"}

async def run():
    for number, source in enumerate(cells):
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        parts = [(tree, "exec"), *([(ast.Expression(last.value), "eval")] if last else [])]
        for part, mode in parts:
            value = eval(compile(part, f"cell {number}", mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), namespace)
            value = await value if inspect.iscoroutine(value) else value
        shown = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
        print(json.dumps([number, shown]), flush=True)

asyncio.run(run())
"""


def cells() -> list[dict[str, Any]]:
    return list(json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"])


def sources() -> list[str]:
    return ["".join(cell["source"]) for cell in cells() if cell["cell_type"] == "code"]


def test_it_is_stored_without_outputs() -> None:
    code = [cell for cell in cells() if cell["cell_type"] == "code"]
    assert len(code) > 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "/home/" not in NOTEBOOK.read_text(encoding="utf-8")
    assert len({cell["id"] for cell in cells()}) == len(cells())


@pytest.mark.spark
@pytest.mark.process
def test_every_cell_runs() -> None:
    command = [sys.executable, "-c", RUNNER]
    environ = {**os.environ, **JVM_OPTIONS}
    done = subprocess.run(
        command, input=json.dumps(sources()), capture_output=True, text=True, timeout=300, cwd=ROOT, env=environ
    )
    assert done.returncode == 0, done.stderr[-4000:]
    shown = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    assert len(shown) == len(sources())
    everything = "\n".join(shown.values())
    assert "<table>" in everything and "Kiel" in everything
    assert "(10, 12, [<class 'hybrid.query.result_warning.ResultLimitWarning'>])" in everything
    assert "[(115.0,)]" in everything
