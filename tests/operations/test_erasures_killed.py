"""An erasure that is killed at a commit, and resumed: the certificate is true, and no byte is left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.lake.commit_context import CommitContext
from tests.operations.erasure_home import WHERE, fill, new_table, open_home, places_of
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


# Behind the delete; before REALTIME is written anew, which is the second commit of a purge, behind that of the floor;
# and inside of that commit, which is the first one of the next purge: the floor stays.
POINTS = ("backfill.commit.after", "purge.commit.before@2", "purge.commit.inside")


def test_an_erasure_that_is_killed_again_and_again_is_resumed(tmp_path: Path, workbench: CommitContext) -> None:
    """The same erasure dies in its delete and twice in its purge; each attempt resumes what the one before has left."""
    folder = tmp_path / "home"
    home = open_home(folder, workbench)
    fill(home, new_table(home))
    begun = home.erasures.begin({"orders": WHERE})
    first: tuple[Mapping[str, Any], ...] = ()
    for attempts, point in enumerate(POINTS, start=1):
        die_at(point, workbench, "tests.operations.erasure_worker", str(folder), begun.id)
        kept = home.erasures.show(begun.id)
        assert home.erasures.state(kept) == "INTERRUPTED" and places_of(folder) != [], point
        assert kept.attempts == attempts and first in ((), kept.tables[0].before), point
        first = kept.tables[0].before
        for orphan in folder.rglob("*.parquet"):
            os.utime(orphan, (0, 0))  # what it left in the middle of a commit is an hour old
    done = home.erasures.run(begun.id)
    assert home.erasures.state(done) == "DONE" and places_of(folder) == []
    assert done.tables[0].before == first and done.attempts == len(POINTS) + 1
    assert sum(place["matching"] for place in done.tables[0].after) == 0
    home.close()
