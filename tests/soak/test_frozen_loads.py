"""A home that loads files into a warehouse on a store is frozen at each point of a commit; another home takes over.

As `test_frozen_writers.py`, for tables that a connector of files and a flow fill, and for what keeps and corrects their
segments: retention, merges, backfills. No Kafka.
"""

from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.failpoints import PLAN_STEPS, POSITIONS
from tests.s3_server import needs_s3
from tests.soak.freezing import FILE_VERBS, Homes, failpoints_of
from tests.soak.frozen_files import FLOWED, LOADED, Files, loaded_homes

pytestmark = [needs_s3, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_loader_that_is_frozen_anywhere_commits_nothing_after_a_take_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workbench: CommitContext
) -> None:
    with loaded_homes(tmp_path, monkeypatch, workbench) as (homes, files):
        homes.writer.do("flow", FLOWED)
        for position in POSITIONS:
            files.add()
            freeze_loads(homes, files, position)
            freeze_flows(homes, files, position)
        freeze_plans(homes, files)
        homes.check_logs()
        check_acts(homes)
    assert {*failpoints_of(FILE_VERBS), *PLAN_STEPS} == set(homes.frozen_at)


def freeze_loads(homes: Homes, files: Files, position: str) -> None:
    """A file is loaded; its old rows expire, its others are merged with the rows before, and all are corrected."""
    for kind in ("history", "retention", "merge", "backfill"):
        homes.freeze(LOADED, f"{kind}.commit.{position}")
        if kind == "retention":
            files.expire()
        if kind == "backfill":  # each of the two homes has corrected them, if the first one's commit was done
            files.correct(2 if position == "after" else 1)
        files.check_loaded(homes.writer)


def freeze_plans(homes: Homes, files: Files) -> None:
    """A backfill's plan is brought to the store; after the backfill its staged rows are removed there."""
    for step in PLAN_STEPS:
        homes.freeze(LOADED, step, "backfill")
        files.correct(2 if step == "plan.removed" else 1)
        files.check_loaded(homes.writer)


def freeze_flows(homes: Homes, files: Files, position: str) -> None:
    """The file is read; then all files are read again."""
    for kind in ("flow", "refresh"):
        homes.freeze(FLOWED, f"{kind}.commit.{position}")
        files.check_flowed(homes.writer)


def check_acts(homes: Homes) -> None:
    """Each operation is there as often as it was needed: nothing was done twice, nothing was left out."""
    loaded, flowed, times = homes.count_acts(LOADED), homes.count_acts(FLOWED), len(POSITIONS)
    # Two homes did one of the backfills at each of these: after the commit, and after the removal of its rows.
    backfills = times + 1 + len(PLAN_STEPS) + 1
    assert loaded == {
        "create": 2, "history": 1 + times, "retention": times, "merge": times, "backfill": backfills,
    }  # fmt: skip
    # A refresh is a commit to each half. After the first of a frozen home, the next home begins one of its own.
    assert flowed == {"create": 2, "flow": 1 + 2 * times, "refresh": 2 * times + 1}
