"""The files of a package of tests go to one worker, other files one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.package_scheduling import PackageScheduling, packages

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/live/test_recipes.py::test_orders_by_http[exact]", "tests/live"),
        ("tests/live/test_live_pages.py::test_a", "tests/live"),
        ("tests/sql/test_nodes.py::test_a[x::y]", "tests/sql/test_nodes.py"),
    ],
)
def test_what_one_worker_gets(
    test: str, unit: str, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xdist.scheduler.loadscope.parse_tx_spec_config", lambda config: ["popen"] * 2)
    scheduling = PackageScheduling(pytestconfig, None, packages(ROOT / "tests", ROOT))
    assert scheduling._split_scope(test) == unit
