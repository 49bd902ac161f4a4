"""Spark compiles the expressions of these tests, as it does for users."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def compiled(request: pytest.FixtureRequest) -> None:
    """`compiled_spark` for each test that is marked `spark`."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("compiled_spark")
