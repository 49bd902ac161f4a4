"""A purge that is killed at a commit or while it deletes, and run again: nothing is seen to change or is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.replace.purge import remove
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row
from tests.replace.purge.erasing import holding, move_all, purge_rows, stream
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NAME = "erase-me"


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    found = Lab.create(workbench, tmp_path_factory.mktemp("deleted"), lab_spec())
    rows = [row(1, 10, customer=NAME), row(2, 20)]
    stream(found, *rows)
    move_all(found, rows, "orders_0", BUCKET)
    found.run(found.plan(0, BUCKET, delete=True, where=f"customer = '{NAME}'"))
    return found


@pytest.fixture
def lab(template: Lab, tmp_path: Path) -> Lab:
    """A table of two rows, one of which has been deleted: made once, copied for each test."""
    return template.copied(tmp_path)


# The first act sets the floor, the second writes REALTIME anew, the third tells.
@pytest.mark.parametrize("point", ["after@1", "inside@2", "before@3"])
def test_a_killed_purge_is_run_again(point: str, lab: Lab) -> None:
    seen = lab.rows()
    worker, where = "tests.replace.purge.killed_worker", f"customer = '{NAME}'"
    die_at(f"purge.commit.{point}", lab.bench, worker, str(lab.folder), where)
    assert lab.rows() == seen

    for orphan in lab.halves.layout.root.rglob("*.parquet"):
        os.utime(orphan, (0, 0))  # what it left in the middle of a commit is an hour old
    purge_rows(lab, where)
    assert lab.rows() == seen and holding(lab.halves.layout.root, NAME) == []


def test_a_purge_that_dies_while_it_deletes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log forgets first: of a file that is gone nobody would look for it."""
    seen, delete = lab.rows(), remove._delete

    def dies(file: Path) -> None:
        delete(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(remove, "_delete", dies)
    with pytest.raises(KeyboardInterrupt):
        purge_rows(lab, f"customer = '{NAME}'")
    monkeypatch.undo()
    assert lab.rows() == seen
    report = purge_rows(lab, f"customer = '{NAME}'")
    assert lab.rows() == seen and holding(lab.halves.layout.root, NAME) == [] and report.remembered == ()
