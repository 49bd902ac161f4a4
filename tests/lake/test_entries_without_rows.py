"""Columns that change, and files that take the place of others, beside foreign commits: entries without rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable, TableFeatures

from hybrid.errors import ConflictError, OvertakenError
from hybrid.lake.commit import FileAct, commit_columns, commit_rewritten
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import read_commit
from hybrid.lake.transaction import LogTransaction
from hybrid.table.columns import SEGMENT
from tests.every_type import every_type
from tests.lake.test_files import write
from tests.lake.test_transaction import COLUMNS, LATE, add, after, foreign, foreign_file, half, rows_of, segments

__all__ = ["half"]

WIDER = {"name": "i", "type": "long", "nullable": True, "metadata": {}}


def test_columns_come_and_become_wider_behind_a_foreign_commit(half: Path) -> None:
    add(half, "a")
    log, before, state = LogTransaction(half), open_half(half), after(half)
    foreign(half, foreign_file(half, "theirs"))
    assert log.commit_columns(state, [LATE, WIDER], ["i"]) == 3
    found = open_half(half)
    assert (found.added, found.widened, found.state) == ({"late"}, {"i"}, state)
    assert (found.table_id, segments(half)) == (before.table_id, ["a", "theirs"])
    assert json.loads(found.columns)["fields"] == [
        *(
            {**column, "type": "long"} if column["name"] == "i" else column
            for column in json.loads(before.columns)["fields"]
        ),
        LATE,
    ]
    listed = {"hybrid.added": '["late"]', "hybrid.widened": '["i"]'}
    assert found.properties == {**before.properties, **listed}
    assert DeltaTable(str(half)).transaction_version("hybrid-REALTIME") == state.act.number
    assert DeltaTable(str(half)).history(1)[0]["userMetadata"]
    assert not [path for path in (half / "_delta_log").iterdir() if path.suffix != ".json"]


def test_columns_that_others_change_meanwhile_are_theirs(half: Path) -> None:
    log, state = LogTransaction(half), after(half)
    DeltaTable(str(half)).alter.set_table_properties({"delta.appendOnly": "false"})
    with pytest.raises(OvertakenError):
        log.commit_columns(state, [LATE], [])
    log, state = LogTransaction(half), after(half)
    add(half, "a")
    with pytest.raises(OvertakenError):
        log.commit_columns(state, [LATE], [])
    assert open_half(half).added == frozenset()


@pytest.mark.spark
@pytest.mark.parametrize("feature", [None, TableFeatures.ChangeDataFeed])
def test_spark_reads_columns_that_came_and_became_wider(
    half: Path, workbench: CommitContext, feature: TableFeatures | None
) -> None:
    """With a feature that asks more of a writer Delta's own transaction makes the same columns."""
    add(half, "a")
    if feature is not None:
        DeltaTable(str(half)).alter.add_feature(feature, allow_protocol_versions_increase=True)
    before = open_half(half)
    with ThreadPoolExecutor(1) as fresh:  # Delta looks for settings in the session of the thread, which has none
        fresh.submit(commit_columns, half, after(half), [LATE, WIDER], ["i"], lambda: workbench.spark).result()
    found = open_half(half)
    assert (found.added, found.widened, found.version) == ({"late"}, {"i"}, before.version + 1)
    frame = workbench.spark.read.format("delta").load(str(half))
    assert dict(frame.dtypes)["late"] == "string" and dict(frame.dtypes)["i"] == "bigint"
    assert [tuple(row) for row in frame.select("late", SEGMENT).collect()] == [(None, "a")]


def rewriting(half: Path) -> tuple[FileAct, list[dict[str, object]]]:
    """The operation that makes one file of the two files of segment `a`, which is written already, and its entry."""
    paths = open_half(half).files_of("a")
    rows = [*rows_of("a", 0), *rows_of("a", 1)]
    entry = write(half, every_type(), rows, "rewrite-1")
    entry["add"]["dataChange"] = False  # type: ignore[index]
    return FileAct(half, "optimize", "rewrite-1", COLUMNS, {"a": paths}), [entry]


def test_a_file_takes_the_place_of_others_with_its_rows(half: Path) -> None:
    for number in range(2):
        add(half, "a", number)
    before, (act, entries) = open_half(half), rewriting(half)

    def write_while_others_commit() -> list[dict[str, object]]:
        foreign(half, foreign_file(half, "a"))
        return entries

    assert commit_rewritten(act, write_while_others_commit, "who") == 4
    found, commit = open_half(half), read_commit(half, 4)
    assert sorted(file.rows for file in found.files) == [1, 2] and found.state == before.state
    assert commit is not None and (commit.added, commit.removed, commit.state) == ((), (), None)
    assert [file.rows for file in commit.rewritten] == [2]
    assert DeltaTable(str(half)).history(1)[0]["userMetadata"] == "who"


def test_a_rewrite_of_files_that_are_gone_leaves_nothing(half: Path) -> None:
    for number in range(2):
        add(half, "a", number)
    act, entries = rewriting(half)

    def write_while_another_optimizes() -> list[dict[str, object]]:
        DeltaTable(str(half)).optimize.compact()
        return entries

    with pytest.raises(OvertakenError):
        commit_rewritten(act, write_while_another_optimizes, "who")
    assert len(open_half(half).files) == 1 and not list(half.glob("*/part-rewrite-1-*"))
    DeltaTable(str(half)).alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    with pytest.raises(ConflictError, match="it has changeDataFeed"):
        commit_rewritten(*rewriting_nothing(half), "who")


def rewriting_nothing(half: Path) -> tuple[FileAct, Callable[[], list[dict[str, object]]]]:
    def write_nothing() -> list[dict[str, object]]:
        raise AssertionError("it is refused before")

    return FileAct(half, "optimize", "rewrite-2", COLUMNS, {}), write_nothing
