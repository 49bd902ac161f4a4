"""`make test` has one more worker, which gets only files without processes; all files of a package go to one worker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from xdist.workermanage import WorkerController

from tests.spare_worker import SpareWorkerScheduling, is_spare, light_files, packages

ROOT = Path(__file__).resolve().parent.parent
LIGHT, HEAVY, PACKAGE = "tests/sql/test_nodes.py", "tests/soak/test_crash.py", "tests/live"


class Node:
    """A worker, as the scheduler sees it."""

    def __init__(self, name: str) -> None:
        self.gateway, self.shutting_down = SimpleNamespace(id=name), False
        self.given: list[int] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def dealt(tests: list[str], pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Which worker of three runs which tests, when each runs all that it has before the next one."""
    monkeypatch.setattr("xdist.scheduler.loadscope.parse_tx_spec_config", lambda config: ["popen"] * 3)
    scheduling = SpareWorkerScheduling(pytestconfig, None, {LIGHT, "tests/sql/test_tables.py"}, {PACKAGE})
    nodes = [Node(f"gw{number}") for number in range(3)]
    for node in nodes:
        scheduling.add_node(cast("WorkerController", node))
        scheduling.add_node_collection(cast("WorkerController", node), tests)
    scheduling.schedule()
    done = dict.fromkeys(nodes, 0)
    while any(done[node] < len(node.given) for node in nodes):
        for node in nodes:
            for number in node.given[done[node] :]:
                done[node] += 1
                scheduling.mark_test_complete(cast("WorkerController", node), number)
    assert all(node.shutting_down for node in nodes)
    return {node.gateway.id: [tests[number] for number in node.given] for node in nodes}


def test_the_spare_worker_gets_light_files_only(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [f"tests/c/test_{number}.py::c" for number in range(6)]
    tests = [f"{HEAVY}::a", f"{LIGHT}::a", *others, "tests/sql/test_tables.py::t"]
    given = dealt(tests, pytestconfig, monkeypatch)
    assert sorted(test for of_worker in given.values() for test in of_worker) == sorted(tests), "each once"
    assert given["gw2"] == [tests[1], tests[-1]]


def test_the_others_get_what_it_leaves(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [f"tests/sql/test_tables.py::{number}" for number in range(3)] + [f"{LIGHT}::{number}" for number in "ab"]
    given = dealt([f"{HEAVY}::a", *tests], pytestconfig, monkeypatch)
    assert given["gw0"] == [f"{HEAVY}::a"] and {*given["gw1"], *given["gw2"]} == {*tests}


def test_a_package_goes_to_one_worker(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [f"{PACKAGE}/test_a.py::a", f"{HEAVY}::a", f"{PACKAGE}/test_b.py::b", "tests/c/test_c.py::c"]
    given = dealt(tests, pytestconfig, monkeypatch)
    assert given["gw0"][:2] == [tests[0], tests[2]] and given["gw1"] == [tests[1]] and given["gw2"] == []


def test_files_and_packages_of_the_suite() -> None:
    light = light_files(ROOT / "tests", ROOT, ("spark", "kafka", "browser", "process"))
    assert LIGHT in light and HEAVY not in light and len(light) > 200
    assert packages(ROOT / "tests", ROOT) == {PACKAGE}


def test_the_last_worker_is_the_spare_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    for name, expected in (("gw1", False), ("gw2", True)):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", name)
        assert is_spare() is expected
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    assert not is_spare()
