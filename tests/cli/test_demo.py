"""`hybrid demo` is played in its own home, whatever the variables of a shell name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from hybrid.demo import tour
from hybrid.progress import Silent


class NoBroker:
    """Stands for the local broker."""

    def __init__(self, home: Path) -> None:
        pass

    def start(self, port: int, progress: object) -> str:
        return "127.0.0.1:1"

    def stop(self) -> None:
        pass


def test_no_variable_leads_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a pod with HYBRID_KAFKA its events would go into a real topic."""
    variables = {
        "HYBRID_KAFKA": "prod:9092", "HYBRID_SERVER": "http://prod:9000", "HYBRID_TOKEN": "t",
        "HYBRID_WAREHOUSE": "s3://prod/tables", "HYBRID_CATALOG": "postgresql://prod", "HYBRID_SPARK_MASTER": "yarn",
    }  # fmt: skip
    for name, value in {**variables, "HYBRID_CACHE": "/cache"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tour, "LocalBroker", NoBroker)
    seen: list[set[str]] = []

    def run(command: Sequence[str]) -> None:
        seen.append({name for name in os.environ if name.startswith("HYBRID_")})

    tour.play("orders", tmp_path / "demo", run, Silent())
    assert len(seen) > 10 and not any(variables.keys() & names for names in seen)
    assert all("HYBRID_CACHE" in names for names in seen)
    assert {name: os.environ[name] for name in variables} == variables
