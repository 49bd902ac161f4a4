"""A process that has read a half follows its newest version by the entries since, and reads it again where it must."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import Half
from hybrid.errors import DataError, NotFoundError, OvertakenError
from hybrid.lake import half_head
from hybrid.lake import log as module
from hybrid.lake.create import create_half
from hybrid.lake.log import follow_half, open_half
from hybrid.lake.transaction import LogTransaction
from hybrid.table.state import Act, RealtimeState
from tests.every_type import every_type
from tests.lake.test_files import write
from tests.lake.test_transaction import COLUMNS, LATE, add, after, foreign, foreign_file, half, rows_of, segments

__all__ = ["half"]


class Reads:
    """How often a Delta table was read."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *arguments: object, **options: object) -> DeltaTable:
        self.count += 1
        return DeltaTable(*arguments, **options)  # type: ignore[arg-type]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    found = Reads()
    monkeypatch.setattr(module, "DeltaTable", found)
    yield found


def test_commits_of_rows_are_followed_without_reading_the_table(half: Path, reads: Reads) -> None:
    open_half(half)
    before = reads.count
    for number in range(3):
        add(half, "a", number)
    foreign(half, foreign_file(half, "b"))
    found = open_half(half)
    assert (found.version, found.state.act.number, reads.count) == (4, 3, before)
    assert segments(half) == ["a", "a", "a", "b"] and reads.count > before, "files are read when they are asked for"


def test_what_changes_the_half_as_a_whole_is_read(half: Path, reads: Reads) -> None:
    open_half(half)
    LogTransaction(half).commit_columns(after(half), [LATE], [])
    assert open_half(half).added == {"late"}
    DeltaTable(str(half)).alter.set_table_properties({"delta.appendOnly": "true"})
    add(half, "a")
    assert open_half(half).properties["delta.appendOnly"] == "true"
    DeltaTable(str(half)).alter.add_constraint({"positive": "i >= 0"})
    assert "delta.constraints.positive" in open_half(half).properties


def test_a_table_that_was_created_again_is_another(half: Path) -> None:
    add(half, "a")
    before = open_half(half)
    shutil.rmtree(half)
    with pytest.raises(NotFoundError):
        open_half(half)
    create_half(half, every_type(), Half.REALTIME, RealtimeState(Act("create-0", 0, "create", "y")))
    found = open_half(half)
    assert (found.version, found.files) == (0, ()) and found.table_id != before.table_id
    add(half, "b")
    assert segments(half) == ["b"]


def test_a_log_that_was_cleaned_or_rewritten_is_read(half: Path, reads: Reads) -> None:
    for _ in range(10):
        LogTransaction(half).commit(after(half), [])
    assert open_half(half).version == 10
    for _ in range(2):
        foreign(half)
    before = reads.count
    for version in range(11):
        (half / "_delta_log" / f"{version:020d}.json").unlink()
    assert open_half(half).version == 12 and reads.count == before + 1
    entry = half / "_delta_log" / f"{12:020d}.json"
    entry.with_suffix(".new").write_text(entry.read_text())
    os.replace(entry.with_suffix(".new"), entry)
    assert open_half(half).version == 12 and reads.count == before + 2


@pytest.mark.parametrize("missing", [4, 5])
def test_a_log_with_a_gap_is_not_taken_for_its_beginning(half: Path, missing: int) -> None:
    """Right behind the version that is known, or behind one that follows it."""
    for _ in range(3):
        LogTransaction(half).commit(after(half), [])
    assert open_half(half).version == 3
    for _ in range(3):
        foreign(half)
    (half / "_delta_log" / f"{missing:020d}.json").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        open_half(half)


@pytest.mark.parametrize("text", ["{", "\0" * 100, "[]\n"])
def test_a_damaged_entry_is_told_by_who_reads_the_log(half: Path, text: str) -> None:
    add(half, "a")
    open_half(half)
    (half / "_delta_log" / f"{2:020d}.json").write_text(text)
    with pytest.raises(DataError, match="cannot be read"):
        open_half(half)


def test_files_of_a_table_that_was_created_again_are_not_those_of_the_one_before(half: Path) -> None:
    add(half, "a")
    known = open_half(half)
    add(half, "a", 2)
    found = open_half(half)
    shutil.rmtree(half)
    create_half(half, every_type(), Half.REALTIME, RealtimeState(Act("create-0", 0, "create", "y")))
    for number in range(2):
        add(half, "b", number)
    assert known.version == 1 and found.version == 2
    with pytest.raises(DataError, match="created again"):
        _ = found.files


def test_commits_while_the_folder_is_listed_are_no_gap(
    half: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_half(half)
    add(half, "a")
    listed = half_head.newest_listed

    def list_slowly(path: Path) -> int | None:
        foreign(half)
        return listed(path)

    before = reads.count
    monkeypatch.setattr(half_head, "newest_listed", list_slowly)
    assert open_half(half).version == 2 and reads.count == before


def test_a_checkpoint_that_fails_lets_the_log_be_read(half: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(9):
        LogTransaction(half).commit(after(half), [])
    (half / "_delta_log" / f"{4:020d}.json").unlink()
    LogTransaction(half).commit(after(half), [])
    with pytest.raises(DataError, match="cannot be read"):
        LogTransaction(half)


def test_a_snapshot_whose_files_are_not_listed_is_opened_again(half: Path) -> None:
    open_half(half)
    add(half, "a")
    known = open_half(half)
    add(half, "b")
    assert follow_half(known, 20) is None
    assert known.files
    followed = follow_half(known, 20)
    assert followed is not None and (followed.version, len(followed.files)) == (2, 2)


def test_many_commits_are_read_at_once(half: Path, reads: Reads) -> None:
    open_half(half)
    for _ in range(half_head._FOLLOWED_MAX + 1):
        foreign(half)
    before = reads.count
    assert open_half(half).version == half_head._FOLLOWED_MAX + 1 and reads.count == before + 1


def test_a_transaction_stays_at_the_version_that_it_has_checked(half: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Foreign rows of the replaced segment that come between the check and the next attempt are seen by that one."""
    add(half, "a")
    transaction, state, follow = LogTransaction(half, COLUMNS), after(half), LogTransaction._follow
    foreign(half, foreign_file(half, "b"))

    def overtaken(self: LogTransaction, replacing: set[str]) -> None:
        follow(self, replacing)
        foreign(half, foreign_file(half, "a"))

    monkeypatch.setattr(LogTransaction, "_follow", overtaken)
    with pytest.raises(OvertakenError):
        transaction.commit(state, [write(half, every_type(), rows_of("a", 2))], ["a"])
    assert segments(half) == ["a", "a", "b"]
