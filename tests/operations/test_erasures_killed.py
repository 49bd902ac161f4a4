"""An erasure that is killed at a commit, and resumed: the certificate is true, and no byte is left."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from tests.operations.erasure_home import WHERE, fill, new_table, open_home, places_of
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("erasures") / "home"
    home = open_home(folder, workbench)
    fill(home, new_table(home))
    home.erasures.begin({"orders": WHERE})
    home.close()
    return folder


# The first commit of the purge writes REALTIME's floor, the second REALTIME anew.
@pytest.mark.parametrize("point", ["backfill.commit.after", "purge.commit.before@2", "purge.commit.inside@2"])
def test_a_killed_erasure_is_resumed(point: str, template: Path, tmp_path: Path, workbench: CommitContext) -> None:
    folder = shutil.copytree(template, tmp_path / "home")
    home = open_home(folder, workbench)
    (begun,) = home.erasures.all()
    die_at(point, workbench, "tests.operations.erasure_worker", str(folder), begun.id)
    kept = home.erasures.show(begun.id)
    assert home.erasures.state(kept) == "INTERRUPTED" and places_of(folder) != []
    for orphan in folder.rglob("*.parquet"):
        os.utime(orphan, (0, 0))  # what it left in the middle of a commit is an hour old
    done = home.erasures.run(begun.id)
    assert home.erasures.state(done) == "DONE" and places_of(folder) == []
    assert done.tables[0].before == kept.tables[0].before and done.attempts >= 2
    assert sum(place["matching"] for place in done.tables[0].after) == 0
    home.close()
