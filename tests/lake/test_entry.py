"""How an entry gets its version of the log, and what its writer is told."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, MachineError
from hybrid.lake.create import create_half
from hybrid.lake.entry import Put, commit_info, entry_text, fence_action, put_entry
from hybrid.lake.log import open_half
from hybrid.lake.transaction import LogTransaction
from hybrid.replace.purge.log_statistics import forget_values, remembered
from hybrid.table.state import Act, RealtimeState
from tests.every_type import every_type
from tests.lake.test_files import write
from tests.lake.test_transaction import COLUMNS, after, foreign, half, rows_of

__all__ = ["half"]

TEXT = entry_text([commit_info("who", 0, is_append=True), fence_action("hybrid-REALTIME", 1)])


@pytest.fixture
def failing_links(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, bool], None]:
    """Makes the file system fail where it gives a file its second name, before or after it did."""
    link = os.link

    def fail(number: int, made: bool) -> None:
        def failing(source: Path, target: Path) -> None:
            if made:
                link(source, target)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", failing)

    return fail


def parts(half: Path) -> list[Path]:
    return list((half / "_delta_log").glob("*.part"))


def test_one_of_many_writers_makes_a_version(half: Path) -> None:
    texts = [entry_text([commit_info(str(number), 0, is_append=True)]) for number in range(32)]
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda text: put_entry(half, 1, text), texts))
    assert sorted(outcomes, key=str) == [Put.EXISTS] * 31 + [Put.MADE]
    assert DeltaTable(str(half)).history(1)[0]["userMetadata"] == str(outcomes.index(Put.MADE))
    assert not parts(half)


def test_an_entry_that_was_made_before_the_error_is_made(
    half: Path, failing_links: Callable[[int, bool], None]
) -> None:
    """As when a server of files carries out a request, and its answer is lost."""
    for version, number in enumerate((errno.EIO, errno.EEXIST), 1):
        failing_links(number, True)
        assert put_entry(half, version, TEXT) is Put.MADE
    assert open_half(half).version == 2 and not parts(half)


def test_an_entry_of_another_is_anothers(half: Path, failing_links: Callable[[int, bool], None]) -> None:
    foreign(half)
    assert put_entry(half, 1, TEXT) is Put.EXISTS
    failing_links(errno.EIO, False)
    assert put_entry(half, 1, TEXT) is Put.EXISTS
    failing_links(errno.EEXIST, False)
    assert put_entry(half, 2, TEXT) is Put.UNKNOWN, "it may be ours, if the file system's look lags behind"


def test_an_outcome_that_nobody_knows_is_told_and_keeps_the_files(
    half: Path, failing_links: Callable[[int, bool], None]
) -> None:
    failing_links(errno.EIO, False)
    assert put_entry(half, 1, TEXT) is Put.UNKNOWN
    file, state = write(half, every_type(), rows_of("a")), after(half)
    with pytest.raises(MachineError, match="did not say whether the log entry of version 1 was written"):
        LogTransaction(half, COLUMNS).commit(state, [file])
    assert len(list(half.glob("*/*.parquet"))) == 1 and not parts(half)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPERM])
def test_what_was_certainly_not_written_is_told(
    half: Path, failing_links: Callable[[int, bool], None], number: int
) -> None:
    """A full disk, or a file system without hard links."""
    failing_links(number, False)
    with pytest.raises(DataError, match="version 1 was not written: .*" + os.strerror(number)):
        put_entry(half, 1, TEXT)
    assert open_half(half).version == 0 and not parts(half)


@pytest.mark.parametrize("value", ["half a \ud83d character", float("nan")])
def test_what_other_readers_cannot_read_is_not_written(half: Path, value: object) -> None:
    state = after(half)
    file = write(half, every_type(), rows_of("a"))
    file["add"]["stats"] = value  # type: ignore[index]
    with pytest.raises(ValueError, match=r"surrogates|JSON"):
        LogTransaction(half, COLUMNS).commit(state, [file])
    assert open_half(half).version == 0 and not parts(half)


def test_texts_of_all_letters_are_read_by_all(half: Path) -> None:
    note = 'ä \u2028 \U0001f600 "quoted" \\ \x00'
    assert put_entry(half, 1, entry_text([commit_info(note, 0, is_append=True)])) is Put.MADE
    assert DeltaTable(str(half)).history(1)[0]["userMetadata"] == note
    (line,) = (half / "_delta_log" / f"{1:020d}.json").read_text(encoding="utf-8").split("\n")[:-1]
    assert json.loads(line)["commitInfo"]["userMetadata"] == note


def test_a_half_that_exists_is_not_created_again(half: Path, failing_links: Callable[[int, bool], None]) -> None:
    state = RealtimeState(Act("create-0", 0, "create", "y"))
    with pytest.raises(ConflictError, match="There is a Delta table"):
        create_half(half, every_type(), Half.REALTIME, state)
    failing_links(errno.EIO, False)
    with pytest.raises(MachineError, match="version 0 was written"):
        create_half(half.with_name("other"), every_type(), Half.REALTIME, state)


def test_what_killed_writers_left_of_entries_is_removed(half: Path) -> None:
    """With every tenth commit, and by a purge: it holds values of rows, as the least and greatest of a file."""
    log, left = half / "_delta_log", ("json.0123.part", "json#1")
    (log / f"{7:020d}.{left[0]}").write_text(TEXT)
    for _ in range(10):
        LogTransaction(half).commit(after(half), [])
    assert not parts(half)
    for ending in left:
        (log / f"{11:020d}.{ending}").write_text(TEXT)
        os.utime(log / f"{11:020d}.{ending}", (0, 0))
    (log / f"{12:020d}.{left[0]}").write_text(TEXT)  # which may be a writer's at this moment
    current = open_half(half)
    assert remembered(current) == [f"{11:020d}.{ending}" for ending in reversed(left)]
    forget_values(current, [], [])
    assert remembered(current) == []
