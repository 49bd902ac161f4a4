"""Backups of a real server's home under load: the benchmark's play, in short."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.backup import play

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.process, pytest.mark.slow]


def test_backups_under_load_are_equal_to_the_tables(broker: str, tmp_path: Path) -> None:
    """Each backup is restored and read whole at its revision; before each, one that is being made is killed."""
    figures = play(tmp_path, broker, backups=3, rate=2000, pause_s=0.5, with_backfills=False)
    assert figures.kills == 3 and figures.moves >= 2 and len(figures.rows) == 3
    assert all(new < count / 2 for new, count in zip(figures.files_new[1:], figures.files[1:], strict=True))
