"""Failpoints: every kind of act that commits has its three, and they kill."""

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hybrid
from hybrid.lake import failpoints

SOURCE = Path(hybrid.__file__).parent


def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def calls(tree: ast.Module, name: str) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in found if getattr(call.func, "id", getattr(call.func, "attr", None)) == name]


def strings(nodes) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.slow
def test_no_kind_of_act_is_forgotten():
    """The kinds in the source: literals given to `next_act`, `Swap`, `commit_under_lock` and `Act`."""
    kinds: set[str] = set()
    for tree in modules().values():
        for call in calls(tree, "next_act"):
            kinds |= strings(call.args[2:3])
        for call in calls(tree, "Swap"):
            kinds |= strings(call.args[1:2]) | strings(word.value for word in call.keywords if word.arg == "kind")
        for call in calls(tree, "commit_under_lock"):
            kinds |= strings(call.args[2:3])
        for call in calls(tree, "Act"):
            kinds |= strings(call.args[2:3])
    assert kinds == set(failpoints.ACT_KINDS)


@pytest.mark.slow
def test_every_commit_goes_through_the_one_place_with_failpoints():
    writers = {}
    for path, tree in modules().items():
        text = ast.unparse(tree)
        commits = (
            r"format\('delta'\)\.mode|\.write\.format\('delta'\)|DeltaTable\.create\(|write_deltalake|write_transaction"
            r"|startTransaction|put_entry\("
        )
        if re.search(commits, text):
            writers[str(path.relative_to(SOURCE))] = text
    del writers["lake/entry.py"]  # the definition
    del writers["lake/transaction.py"]  # begun by lake/commit.py
    del writers["lake/class_data_archive.py"]  # rehearses on a table of its own
    assert set(writers) == {"lake/commit.py", "lake/create.py"}
    for text in writers.values():
        assert all(f"'{position}')" in text for position in failpoints.POSITIONS)


def test_their_names():
    assert len(failpoints.names()) == len(set(failpoints.names())) == 3 * len(failpoints.ACT_KINDS)
    assert "move.commit.inside" in failpoints.names()
    with pytest.raises(AssertionError):
        failpoints.failpoint("no-such-kind", "before")


SCRIPT = """
from hybrid.lake.failpoints import failpoint
for turn in range(3):
    failpoint("move", "before")
    failpoint("move", "inside")
    failpoint("move", "after")
    print("committed", turn, flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "committed"),
    [
        ("", 3),
        ("move.commit.before", 0),
        ("move.commit.inside", 0),
        ("move.commit.after@2", 1),
        ("seal.commit.after", 3),
    ],
)
def test_the_process_dies_there(tmp_path, name, committed):
    environment = {**os.environ, "HYBRID_FAILPOINT": name, "PYTHONPATH": str(SOURCE.parent)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30)
    assert done.stdout.count("committed") == committed, done.stderr
    assert done.returncode == (0 if committed == 3 else -signal.SIGKILL)


@pytest.mark.process
def test_the_process_stops_there_and_goes_on(tmp_path):
    environment = {"HYBRID_FAILPOINT": "move.commit.inside@2", "HYBRID_FAILPOINT_SIGNAL": "STOP"}
    environment = {**os.environ, **environment, "PYTHONPATH": str(SOURCE.parent)}
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert process.stdout.readline() == "committed 0\n"
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=30)[0].count("committed") == 2
