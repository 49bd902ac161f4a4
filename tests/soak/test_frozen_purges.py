"""A home that purges a table of a warehouse on a store is frozen at each point; another home takes over and purges.

As `test_frozen_writers.py`. The rows are those that corrections have replaced. No Kafka.
"""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.failpoints import PURGE_STEPS
from tests.s3_server import needs_s3
from tests.soak.freezing import PURGE_VERBS, Homes, failpoints_of
from tests.soak.frozen_files import LOADED, loaded_homes

pytestmark = [needs_s3, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

POINTS = (*failpoints_of(PURGE_VERBS), *PURGE_STEPS)
WITH_FILE = ("purge.commit.after", "purge.rewritten")  # the purge is committed, and what it removes is on the store


def test_a_purge_that_is_frozen_anywhere_removes_nothing_of_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workbench: CommitContext
) -> None:
    with loaded_homes(tmp_path, monkeypatch, workbench) as (homes, files):
        for failpoint in POINTS:
            homes.writer.do("backfill", LOADED)
            files.correct(1)
            homes.freeze(LOADED, failpoint, "purge")
            files.check_loaded(homes.writer)
            assert revisions(tmp_path / "s3" / "store") == set(files.loaded.values()), failpoint
        homes.check_logs()
        check_acts(homes)


def revisions(store: Path) -> set[int]:
    """What the objects of the store have as `rev`: a search that knows nothing of the product."""
    paths = [path for path in store.rglob("*.parquet") if LOADED in path.parts and "_delta_log" not in path.parts]
    return {rev for path in paths for rev in pq.read_table(path, columns=["rev"]).column("rev").to_pylist()}


def check_acts(homes: Homes) -> None:
    """The commit of a purge is there once, or for both homes where the first one's was done and the file still there.

    Once the file is gone from the store, the take-over drops it, and the successor's purge has nothing to do.
    """
    acts = homes.count_acts(LOADED)
    assert acts["backfill"] == len(POINTS)
    assert acts["purge"] == len(POINTS) + len(WITH_FILE), acts
