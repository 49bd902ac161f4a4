"""After a move only the file of its rows changes in memory, where that is certain; otherwise its files are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import Half, TableSpec
from hybrid.query.cache import moved_rows
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import Boundary
from hybrid.table.state import AS_STORED, READ_VERSION
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS = 1_632_700_000_000
ALL = "select order_id, customer, amount, ts from orders order by ts, order_id limit 100"
FILES = "SELECT _hy_file, count(*) FROM {} GROUP BY 1 ORDER BY 1"


class Moved:
    """A table whose rows (key, time) came from the stream; `read` counts how often files of a commit were read."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, upsert: bool, rows: Sequence[tuple[int, int]]
    ) -> None:
        self.halves = Halves.create(folder, orders_spec(upsert=upsert, deletes=upsert))
        self.values = [
            {"order_id": key, "customer": "c", "amount": 1.0, "ts": time, **({"gone": key < 0} if upsert else {})}
            for key, time in rows
        ]
        messages = [TailMessage(KEY, at, 0, json.dumps(one).encode()) for at, one in enumerate(self.values)]
        self.cache = SteppedCache(self.halves, NOW_MS, ListTail(messages))
        self.read = 0
        honest = CachedRows._stage

        def stage(*args: object, **named: object) -> int:
            self.read += 1
            return honest(*args, **named)  # type: ignore[arg-type]

        self.check()
        self.commit()
        self.check()
        monkeypatch.setattr(CachedRows, "_stage", stage)

    def row(self, at: int, segment: str = "orders__0__0__x") -> Row:
        values = self.values[at]
        op = "delete" if values.get("gone") else "row"
        return Row(values, int(str(values["ts"])), at, op=op, segment=segment)

    def commit(self, kind: str = "ingest") -> None:
        rows = [self.row(at) for at in range(len(self.values))]
        self.halves.commit_realtime(rows, kind, offsets={KEY: len(rows)})

    def move(self, until: int, *files: Sequence[int], detail: Mapping[str, object] | None = None) -> None:
        rows = [self.row(at, f"orders_{number}") for number, places in enumerate(files) for at in places]
        said = self.halves.as_stored() if detail is None else detail
        self.halves.commit_offline(rows, Boundary(until, {KEY: len(self.values)}), **said)

    def check(self) -> None:
        """Memory shows what the files show."""
        found = self.cache.ask(ALL)
        expected = run(ALL, self.halves, QueryOptions(tail=self.cache.tail, now_ms=lambda: NOW_MS))
        assert found is not None and found.rows == expected.rows

    @property
    def files(self) -> dict[int, int]:
        """Rows by the number of their file, delete markers too."""
        snapshot, found = self.cache.rows._laid, dict[int, int]()
        for relation in (snapshot.relation, snapshot.marks):
            for number, rows in self.cache.rows._write.execute(FILES.format(relation)).fetchall():
                found[number] = found.get(number, 0) + rows
        return found


@pytest.fixture
def rows() -> Iterator[list[tuple[int, int]]]:
    yield [(1, 10), (2, 20), (3, 30), (1, 40), (2, 50), (4, 2000)]


@pytest.mark.slow
def test_rows_get_the_numbers_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int]]
) -> None:
    table = Moved(tmp_path, monkeypatch, False, rows)
    table.move(1000, [3, 4], [0, 1, 2])
    table.check()
    assert table.read == 0 and table.files[0] == 1 and sorted(table.files.values()) == [1, 2, 3]
    assert table.cache.rows._laid.changed == 6, "the rows of the stream alone"
    table.halves.commit_offline([replace(table.row(0, "history"), offset=7, key=None)], kind="backfill")
    table.check()
    assert table.read == 1, "rows that memory does not hold are read"


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
def test_a_move_of_an_empty_bucket_moves_the_boundary_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upsert: bool
) -> None:
    table = Moved(tmp_path, monkeypatch, upsert, [(1, 2000)])
    table.move(1000)
    table.check()
    table.move(3000, [0])
    table.check()
    assert table.read == 0 and table.files == {1: 1}


@pytest.mark.slow
def test_winners_stay_and_so_do_delete_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files hold losers of other buckets, and markers; the winner at 2000 stays in REALTIME."""
    table = Moved(tmp_path, monkeypatch, True, [(1, 10), (2, 20), (-3, 30), (1, 40), (2, 2000)])
    table.move(1000, [0, 1, 2, 3])
    table.check()
    assert (table.read, table.files) == (0, {0: 1, 1: 2}), "of key 1 the row at 40, and the marker"
    table.values.append({"order_id": -3, "customer": "c", "amount": 1.0, "ts": 25, "gone": False})
    table.cache.tail.messages.append(TailMessage(KEY, 5, 0, json.dumps(table.values[5]).encode()))
    table.check()


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
def test_files_are_read_where_it_is_not_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int]], upsert: bool
) -> None:
    """The move rounded times or does not say what it read, its files share a time, or another commit brought rows."""
    for number, (files, other) in enumerate(
        (
            ([[0, 1, 2, 3, 4]], {AS_STORED: False}),
            ([[0, 1, 2, 3, 4]], {READ_VERSION: None}),
            ([[0, 1, 4], [2, 3]], {}),
        )
    ):
        table = Moved(tmp_path / f"{upsert}{number}", monkeypatch, upsert, rows)
        table.move(1000, *files, detail={**table.halves.as_stored(), **other})
        table.check()
        assert table.read == 1
        monkeypatch.undo()
    table = Moved(tmp_path / f"{upsert}-replay", monkeypatch, upsert, rows)
    replayed = replace(table.row(0), offset=0, key=KEY._replace(connector="kafka~replay"))
    table.halves.commit_realtime([replayed], "replay")
    table.move(1000, [0, 1, 2, 3, 4])
    table.cache.step()
    assert table.read >= 1, "rows of another kind of commit may be among the moved ones"


@pytest.mark.slow
def test_other_rows_than_were_moved_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int]]
) -> None:
    """On an append table the number of each file's rows must be the same."""
    table = Moved(tmp_path, monkeypatch, False, rows)
    table.move(1000, [0, 1, 2, 3])
    table.check()
    assert table.read == 1


@pytest.mark.slow
@pytest.mark.parametrize("by", ["another tool", "purge", "flow"])
def test_rows_removed_between_plan_and_commit_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int]], by: str
) -> None:
    """The file of the move has a row that REALTIME and memory have lost meanwhile."""
    table = Moved(tmp_path, monkeypatch, True, rows)
    read = table.halves.as_stored()
    DeltaTable(str(table.halves.layout.half(Half.REALTIME))).delete("order_id = 3")
    if by != "another tool":
        table.halves.commit_realtime([], by)
    table.check()
    before = table.read
    table.move(1000, [2, 3, 4], detail=read)
    table.check()
    assert table.read > before
    found = table.cache.ask("select count(*) from orders where order_id = 3")
    assert found is not None and found.rows == [(1,)]


@pytest.mark.slow
def test_rows_that_came_between_plan_and_commit_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int]]
) -> None:
    table = Moved(tmp_path, monkeypatch, True, rows)
    read = table.halves.as_stored()
    for kind in ("seal", "ingest"):
        table.halves.commit_realtime([], kind)
    table.check()
    table.move(1000, [2, 3, 4], detail=read)
    table.check()
    assert table.read == 0 and table.files == {0: 1, 1: 3}


@pytest.mark.slow
def test_files_are_read_where_rows_may_be_equal_or_files_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, int]]
) -> None:
    for name, upsert, target, value in (
        ("several", True, (TableSpec, "holds_several"), lambda *_: True),
        ("many", False, (moved_rows, "_FILES_MAX"), 1),
    ):
        table = Moved(tmp_path / name, monkeypatch, upsert, rows)
        with monkeypatch.context() as patch:
            patch.setattr(*target, value)
            table.move(1000, [3, 4], [0, 1, 2])
            table.check()
        assert table.read == 1
        monkeypatch.undo()
