"""A home that writes a warehouse on a store is frozen at each point of a commit; another home takes over and works.

When the first one goes on it commits nothing, and every event is there once. The two homes take turns, so each of them
also comes back after it was refused. Here are the commits to tables with a stream; `test_frozen_corrections.py` has
what corrects their rows, `test_frozen_loads.py` tables that files fill, `test_frozen_purges.py` what removes rows for
good.
"""

from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.failpoints import ACT_KINDS, POSITIONS, STORE_STEPS
from tests.s3_server import needs_s3
from tests.soak.freezing import (
    CORRECTION_VERBS,
    FILE_VERBS,
    PURGE_VERBS,
    STREAM_VERBS,
    Homes,
    failpoints_of,
    homes_on_a_store,
)
from tests.soak.frozen_stream import Stream, write_files, write_started

TABLE = "frozen"
# Kinds that commit to the same table again and again, and what gives a verb something to commit.
REPEATED = ("ingest", "seal", "move", "boundary", "evolve")
BEFORE = {"move": "ingest"}


def test_every_kind_of_commit_is_frozen() -> None:
    assert {*STREAM_VERBS, *CORRECTION_VERBS, *FILE_VERBS, *PURGE_VERBS} == set(ACT_KINDS)


@needs_s3
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_writer_that_is_frozen_anywhere_commits_nothing_after_a_take_over(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workbench: CommitContext
) -> None:
    stream = Stream(broker, TABLE)
    write_files(tmp_path, broker, TABLE, TABLE)
    for position in POSITIONS:
        write_files(tmp_path, broker, TABLE, f"created_{position}")
        write_started(tmp_path, broker, TABLE, f"started_{position}")
    with homes_on_a_store(tmp_path, monkeypatch, workbench) as homes:
        homes.writer.do("create", TABLE)
        freeze_one_table(homes, stream)
        freeze_starts_and_resets(homes, stream)
        for position in POSITIONS:
            homes.freeze(f"created_{position}", f"create.commit.{position}")
            stream.check(homes.writer, f"created_{position}")
        stream.check(homes.writer, TABLE)
        homes.check_logs()
    assert set(failpoints_of(STREAM_VERBS)) <= set(homes.frozen_at)
    stream.close()


def freeze_one_table(homes: Homes, stream: Stream) -> None:
    """What commits to the same table again and again, and each step at the store."""
    cases = [(STREAM_VERBS[kind], point) for kind in REPEATED for point in failpoints_of([kind])]
    # The second time that a process passes such a step armed.
    cases += [("ingest", step) for step in STORE_STEPS] + [("move", f"{step}@2") for step in STORE_STEPS]
    for verb, failpoint in cases:
        stream.send_more()
        if verb in BEFORE:
            homes.writer.do(BEFORE[verb], TABLE)
        # The check after a take-over also finds what the case before has left wrong.
        homes.freeze(TABLE, failpoint, verb, taken_over=lambda writer: stream.check(writer, TABLE))
    stream.check(homes.writer, TABLE)


def freeze_starts_and_resets(homes: Homes, stream: Stream) -> None:
    """A connector starts its stream; then the stream is reset past events that were not read."""
    for position in POSITIONS:
        table = f"started_{position}"
        homes.writer.do("create", table)
        homes.freeze(table, f"start.commit.{position}")
        stream.check(homes.writer, table)
        read = len(stream.sent)
        stream.send_more()
        homes.freeze(table, f"reset.commit.{position}")
        stream.check(homes.writer, table, read)
        acts = homes.count_acts(table)
        assert (acts["start"], acts["reset"]) == (1, 1), acts
