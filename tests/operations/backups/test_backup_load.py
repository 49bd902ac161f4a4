"""Backups of a real server's home under load: the benchmark's play, in short. HYBRID_BACKUPS=7 dies at every step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.backup import play

# `test_backup_events` has deaths at every step without a load.
BACKUPS = int(os.environ.get("HYBRID_BACKUPS", "2"))

pytestmark = [
    pytest.mark.spark, pytest.mark.kafka, pytest.mark.process, pytest.mark.slow,
    pytest.mark.timeout(60 * BACKUPS + 180),
]  # fmt: skip


def test_backups_under_load_are_equal_to_the_tables(broker: str, tmp_path: Path) -> None:
    """Each backup is restored and read whole at its revision; before each, one that is being made is killed."""
    figures = play(tmp_path, broker, backups=BACKUPS, rate=2000, pause_s=0.5, with_backfills=False)
    assert figures.kills == BACKUPS and figures.moves >= 2 and len(figures.rows) == BACKUPS
    assert all(new < count / 2 for new, count in zip(figures.files_new[1:], figures.files[1:], strict=True))
