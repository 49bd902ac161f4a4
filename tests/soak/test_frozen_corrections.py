"""A home that corrects rows of a warehouse on a store is frozen at each point of a commit; another home takes over.

As `test_frozen_writers.py`, for replacements, reverts, replays and backfills of rejected rows of a table with a stream.
"""

from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.failpoints import POSITIONS
from tests.s3_server import needs_s3
from tests.soak.freezing import CORRECTION_VERBS, Homes, failpoints_of, homes_on_a_store
from tests.soak.frozen_stream import WIDENED, Stream, write_files

pytestmark = [needs_s3, pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

TABLE = "frozen_corrected"


def test_a_corrector_that_is_frozen_anywhere_commits_nothing_after_a_take_over(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workbench: CommitContext
) -> None:
    stream = Stream(broker, TABLE)
    write_files(tmp_path, broker, TABLE, TABLE)
    stream.send_more()
    with homes_on_a_store(tmp_path, monkeypatch, workbench) as homes:
        for verb in ("create", "ingest", "move"):
            homes.writer.do(verb, TABLE)
        freeze_replacements(homes, stream)
        for number, position in enumerate(POSITIONS, start=1):
            write_files(tmp_path, broker, TABLE, TABLE, WIDENED[:number])
            freeze_replay(homes, stream, position)
        write_files(tmp_path, broker, TABLE, TABLE, WIDENED)
        homes.writer.do("evolve", TABLE)
        for position in POSITIONS:
            freeze_claim(homes, stream, position)
        homes.check_logs()
        check_acts(homes)
    assert set(failpoints_of(CORRECTION_VERBS)) == set(homes.frozen_at)
    stream.close()


def freeze_replacements(homes: Homes, stream: Stream) -> None:
    """A segment is replaced again and again; then one replacement after the other is taken back."""
    for failpoint in failpoints_of(["replace", "revert"]):
        homes.freeze(TABLE, failpoint)
        stream.check(homes.writer, TABLE)


def freeze_replay(homes: Homes, stream: Stream, position: str) -> None:
    """It brings the message that was rejected for a column that became wider."""
    homes.writer.do("evolve", TABLE)
    stream.fits_now(position)
    homes.freeze(TABLE, f"replay.commit.{position}")
    stream.check(homes.writer, TABLE)


def freeze_claim(homes: Homes, stream: Stream, position: str) -> None:
    """A backfill claims the message that converts by now and brings it; a revert of the backfill gives it back."""
    stream.fits_now("claim")
    homes.freeze(TABLE, f"claim.commit.{position}")
    stream.check(homes.writer, TABLE)
    stream.is_rejected_again("claim")
    homes.freeze(TABLE, f"release.commit.{position}")
    stream.check(homes.writer, TABLE)


def check_acts(homes: Homes) -> None:
    """Each operation is there as often as it was done: by the other home, and by the first one if it was before."""
    acts, times = homes.count_acts(TABLE), len(POSITIONS)
    # A revert of a backfill is a revert, too.
    assert (acts["replace"], acts["revert"], acts["replay"]) == (times + 1, 2 * times + 1, times), acts
    assert (acts["claim"], acts["backfill"], acts["release"]) == (times, times, times), acts
