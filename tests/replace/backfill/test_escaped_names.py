"""Corrections of segments whose names are escaped in the names of their folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.errors import DataError
from hybrid.lake.commit_context import CommitContext
from hybrid.replace.backfill.staging import written_segments
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row

pytestmark = pytest.mark.spark
NAMES = ("a#b", "50%", "x=y", "it's", "{[^]}é")


def test_a_correction_keeps_segments_whose_names_are_escaped(workbench: CommitContext, tmp_path: Path) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec())
    for number, name in enumerate(NAMES):
        lab.lay(name, row(2 * number, number * BUCKET), row(2 * number + 1, number * BUCKET), until=5 * BUCKET)
    update = lab.plan(0, 5 * BUCKET, update="amount = 7")
    assert sorted(written.name for unit in update.units for written in unit.written) == sorted(NAMES)
    assert lab.run(update).rows_written == 10
    assert [found[2] for found in lab.rows()] == [7.0] * 10 and lab.segments() == sorted(NAMES)

    lab.run(lab.plan(0, 5 * BUCKET, delete=True, where="order_id in (1, 3, 5, 7) or order_id >= 8"))
    assert [found[0] for found in lab.rows()] == [0, 2, 4, 6] and lab.segments() == sorted(NAMES[:4])


def test_a_staged_folder_of_no_segment_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "_hy_segment=a%23b").mkdir()
    (tmp_path / "_hy_segment=a%23b" / "part-0.parquet").touch()
    with pytest.raises(DataError, match="holds rows of no segment of the plan"):
        written_segments(tmp_path, ["a%23b"], frozenset())
