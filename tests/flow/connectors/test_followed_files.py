"""Which files, and which of their lines, a followed `file_input` reads round by round. No JVM."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config.connectors import ConnectorCsvFormat, FileInput, Format, JsonFormat, ParquetFormat, UpdateFormat
from hybrid.errors import DataError, NotFoundError
from hybrid.files.limits import FileLimits
from hybrid.files.log_rotation import by_new_names
from hybrid.files.reading import read_slice
from hybrid.files.tailed_file import ReadUpTo
from hybrid.flow.connectors.file_source import open_files, open_files_after
from hybrid.flow.connectors.followed_files import FileReading, first_round, next_round
from hybrid.formats.csv_cells import Dialect
from hybrid.formats.csv_format import CsvFormat as Cells
from hybrid.schema.problem import Problem
from tests.examples import examples
from tests.query.halves import orders_spec

RAW = JsonFormat(UpdateFormat.RAW)
CELLS = Cells(Dialect(trim=False, controls=False), columns=("id",), skip_header=True)
MUCH = 1 << 40


class Follower:
    """Rounds over a folder, each pinned as a commit would."""

    def __init__(self, folder: Path, form: Format = RAW, bytes_max: int = MUCH) -> None:
        self.folder, self.reading, self.bytes_max = folder, FileReading.of(form), bytes_max
        self.pinned: Mapping[str, Any] | None = None

    def read(self) -> list[tuple[str, str, object]]:
        """(file, place, id) of each row of the next round."""
        paths = sorted(one for one in self.folder.iterdir() if one.is_file())
        if self.pinned is None:
            found = first_round(paths, self.reading, self.bytes_max)
        else:
            later = next_round(paths, self.reading, self.bytes_max, self.pinned)
            if later is None:
                return []
            found = later
        rows = []
        for file in found.files:
            for piece in file.slices:
                rows += [(file.path.name, one.at, one.values.get("id")) for one in read_slice(piece, CELLS)]
            file.check_unchanged()
        self.pinned = json.loads(json.dumps(found.to_json()))
        return rows

    def ids(self) -> list[object]:
        return [row[2] for row in self.read()]


def lines(*ids: int) -> str:
    return "".join(f'{{"id": {number}}}\n' for number in ids)


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_new_files_and_added_lines_each_once(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    assert follower.ids() == [] and follower.pinned == {"round": 0, "known": {}}
    (tmp_path / "b.json").write_text(lines(1, 2))
    (tmp_path / "empty.json").write_text("")
    assert follower.ids() == [1, 2] and follower.ids() == []
    (tmp_path / "a.json").write_text(lines(3))
    add(tmp_path / "b.json", lines(4) + '{"id": ')
    add(tmp_path / "empty.json", lines(5))
    assert follower.read() == [("a.json", ", line 1", 3), ("b.json", ", line 3", 4), ("empty.json", ", line 1", 5)]
    assert follower.ids() == [], "a line without its end"
    add(tmp_path / "b.json", "6}\n")
    assert follower.read() == [("b.json", ", line 4", 6)]
    assert follower.pinned is not None and follower.pinned["round"] == 3


def test_lines_of_csv_and_their_header(tmp_path: Path) -> None:
    follower, path = Follower(tmp_path, ConnectorCsvFormat(headers=True)), tmp_path / "a.csv"
    path.write_text("id\n1\n")
    assert follower.read() == [("a.csv", ", line 2", "1")]
    add(path, '2\n"3"')
    assert follower.read() == [("a.csv", ", line 3", "2")]
    add(path, "\r\n")
    assert follower.ids() == ["3"]
    add(path, '"4\n')
    with pytest.raises(Problem, match="a cell that begins here has no end") as amiss:
        follower.read()
    assert amiss.value.at == ", line 5"
    add(path, '"\n')
    assert follower.ids() == ["4\n"]


@settings(max_examples=examples(60), deadline=None)
@given(
    ids=st.lists(st.integers(0, 10**6), max_size=12),
    cuts=st.lists(st.integers(1, 40), max_size=20),
    bytes_max=st.sampled_from([1, 30, MUCH]),
    piece=st.sampled_from([1, 7, 1000]),
)
def test_however_bytes_come(
    tmp_path_factory: pytest.TempPathFactory, ids: list[int], cuts: list[int], bytes_max: int, piece: int
) -> None:
    folder = tmp_path_factory.mktemp("grown")
    follower, text = Follower(folder, bytes_max=bytes_max), lines(*ids)
    follower.reading = replace(follower.reading, limits=FileLimits(slice_bytes=piece))
    found: list[object] = []
    for number, cut in enumerate([*cuts, len(text)]):
        for path in (folder / "a.json", folder / "b.json")[: 1 + number % 2]:
            add(path, text[path.stat().st_size if path.exists() else 0 :][:cut])
        found += follower.ids()
    for path in (folder / "a.json", folder / "b.json"):
        add(path, text[path.stat().st_size if path.exists() else 0 :])
    while more := follower.ids():
        found += more
    assert sorted(map(str, found)) == sorted(map(str, ids * 2))
    # Of one file they stay in their order, and files are known by what was read of them.
    assert follower.pinned is not None
    assert {one[0] for one in follower.pinned["known"].values()} <= {len(text)}


def test_a_file_that_was_cut_or_changed_stops_it(tmp_path: Path) -> None:
    follower, path = Follower(tmp_path), tmp_path / "a.json"
    path.write_text(lines(1, 2))
    assert follower.ids() == [1, 2]
    path.write_text(lines(1))
    with pytest.raises(DataError, match=r"a.json has 10 bytes, and 20 were read of it: it was cut"):
        follower.read()
    path.write_text(lines(1, 3, 4))
    with pytest.raises(DataError, match="does not begin with the 20 bytes that were read"):
        follower.read()
    path.write_text(lines(1, 2, 3))
    assert follower.ids() == [3]
    os.utime(path)
    assert follower.ids() == [], "touched, and the same"
    path.unlink()
    assert follower.ids() == [], "what was read may go"
    path.write_text(lines(1, 2, 3, 4))
    assert follower.ids() == [4], "and come back"


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(lines(1, 2))
    (file,) = first_round([path], FileReading.of(RAW), MUCH).files
    add(path, lines(3))
    file.check_unchanged()
    path.write_text(lines(1, 3, 2))
    with pytest.raises(DataError, match="does not begin with"):
        file.check_unchanged()
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        file.check_unchanged()


def test_a_file_that_is_renamed_is_read_on(tmp_path: Path) -> None:
    follower, log = Follower(tmp_path), tmp_path / "log"
    log.write_text(lines(1))
    assert follower.ids() == [1]
    add(log, lines(2))
    log.rename(tmp_path / "log.1")
    assert follower.ids() == [2]
    log.write_text(lines(3))
    assert follower.ids() == [3]
    (tmp_path / "log.1").rename(tmp_path / "log.2")
    log.rename(tmp_path / "log.1")
    log.write_text(lines(1))
    add(tmp_path / "log.1", lines(4))
    assert follower.read() == [("log", ", line 1", 1), ("log.1", ", line 2", 4)]


def test_a_log_that_is_compressed_is_known(tmp_path: Path) -> None:
    """`delaycompress`, at once under another name, and gzip itself, which removes the file last."""
    follower, log = Follower(tmp_path), tmp_path / "app.log"
    log.write_text(lines(1, 2))
    log.rename(tmp_path / "app.log.1")
    log.write_text(lines(3))
    assert follower.ids() == [3, 1, 2]

    def pack(old: str, new: str, more: str = "") -> None:
        (tmp_path / new).write_bytes(gzip.compress((tmp_path / old).read_bytes() + more.encode()))

    pack("app.log.1", "app.log.1.gz")
    assert follower.ids() == [], "both are there"
    (tmp_path / "app.log.1").unlink()
    assert follower.ids() == [] and follower.ids() == []
    (tmp_path / "app.log.1.gz").rename(tmp_path / "app.log.2.gz")
    pack("app.log", "app.log.1.gz")
    log.unlink()
    log.write_text(lines(4, 5))
    assert follower.read() == [("app.log", ", line 1", 4), ("app.log", ", line 2", 5)]
    assert follower.pinned is not None
    assert {Path(one).name for one in follower.pinned["known"]} >= {"app.log", "app.log.1.gz", "app.log.2.gz"}
    pack("app.log", "app.log.0.gz", lines(6))
    log.unlink()
    with pytest.raises(DataError, match=r"app.log.0.gz is .*app.log compressed, with more than the 20 bytes"):
        follower.read()
    (tmp_path / "app.log.0.gz").unlink()
    log.write_text(lines(4, 5, 6))
    assert follower.ids() == [6]
    (tmp_path / "other.gz").write_bytes(gzip.compress(lines(4, 5).encode()))
    log.unlink()
    assert follower.ids() == [4, 5], "it is less than was read: another file"
    (tmp_path / "cut.gz").write_bytes(gzip.compress(lines(7, 8).encode())[:-9])
    with pytest.raises(DataError, match=r"cut.gz: .*is the file damaged or cut off"):
        follower.read()


def test_the_inode_of_a_file_that_is_gone(tmp_path: Path) -> None:
    """Another file may get it; one that is read under it by its own name goes on where it was."""
    old, path = tmp_path / "old", tmp_path / "new"
    path.write_text(lines(1, 2, 3))
    now = path.stat()

    def known(ids: tuple[int, ...]) -> ReadUpTo:
        text = lines(*ids).encode()
        return ReadUpTo(len(text), len(ids), hashlib.sha256(text).hexdigest(), 0, now.st_ino)

    both = {str(old): known((1,)), str(path): known((1, 2))}
    assert by_new_names([path], both) == both
    assert by_new_names([path], {str(old): known((1,))}) == {str(path): known((1,))}
    assert by_new_names([path], {str(old): known((2,))}) == {str(old): known((2,))}


def test_a_file_that_an_equal_copy_took_the_place_of(tmp_path: Path) -> None:
    follower, log = Follower(tmp_path), tmp_path / "log"

    def copy() -> None:
        (tmp_path / ".copy").write_bytes(log.read_bytes())
        (tmp_path / ".copy").rename(log)

    log.write_text(lines(1, 2))
    assert follower.ids() == [1, 2]
    copy()
    assert follower.ids() == [], "its own inode is known from now on"
    log.rename(tmp_path / "log.1")
    assert follower.ids() == []
    (tmp_path / "log.1").rename(log)
    assert follower.ids() == []
    copy()
    log.rename(tmp_path / "log.1")  # nobody looked between
    log.write_text(lines(3))
    add(tmp_path / "log.1", lines(4))
    assert follower.read() == [("log", ", line 1", 3), ("log.1", ", line 3", 4)]


def test_an_equal_file_that_comes_after_one_is_gone(tmp_path: Path) -> None:
    """Only a place that another file has taken tells that the old one must be elsewhere."""
    follower, path = Follower(tmp_path), tmp_path / "a.json"
    path.write_text(lines(1))
    assert follower.ids() == [1]
    (tmp_path / "b.json").write_text(lines(1))  # while the old one has its inode
    path.unlink()
    assert follower.ids() == [1]


def test_files_that_are_read_as_a_whole(tmp_path: Path) -> None:
    follower = Follower(tmp_path, JsonFormat(UpdateFormat.RAW, array=True))
    (tmp_path / "a.json").write_text('[{"id": 1},')
    with pytest.raises(Problem):
        follower.read()
    (tmp_path / "a.json").write_text('[{"id": 1}]')
    assert follower.ids() == [1] and follower.ids() == []
    (tmp_path / "b.json").write_text('[{"id": 2}]')
    assert follower.ids() == [2]
    add(tmp_path / "b.json", " ")
    with pytest.raises(DataError, match="has grown since it was read"):
        follower.read()


def test_parquet_and_compressed_lines_come_as_whole_files(tmp_path: Path) -> None:
    follower = Follower(tmp_path, ParquetFormat())
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    assert follower.ids() == [1, 2]
    pq.write_table(pa.table({"id": [3]}), tmp_path / "b.parquet")
    assert follower.ids() == [3] and follower.ids() == []
    folder = tmp_path / "json"
    folder.mkdir()
    follower = Follower(folder)
    (folder / "a.gz").write_bytes(gzip.compress(lines(1, 2).encode()))
    assert follower.ids() == [1, 2] and follower.ids() == []


def test_rounds_are_bounded(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(lines(1))
    follower = Follower(tmp_path, bytes_max=20)
    assert [row[0] for row in follower.read()] == ["a", "b"] and [row[0] for row in follower.read()] == ["c"]
    follower.reading = replace(follower.reading, files_max=3)
    (tmp_path / "d").write_text(lines(1))
    with pytest.raises(DataError, match="4 files were found, and 3 can be followed"):
        follower.read()


def test_where_there_is_nothing_yet(tmp_path: Path) -> None:
    spec = orders_spec()

    def opened(path: str, follow: bool = True, pinned: Mapping[str, Any] | None = None) -> Any:
        return open_files(FileInput(str(tmp_path / path), follow), RAW, spec, pinned, 10)

    assert opened("*.json").pieces == [] and not opened("*.json").is_last
    assert opened("").pieces == []
    for path, follow in (("none", True), ("*.json", False)):
        with pytest.raises(NotFoundError, match="There is no file at"):
            opened(path, follow)
    with pytest.raises(NotFoundError) as raised:  # of an older definition: a relative path
        open_files(FileInput("none.json"), RAW, spec, None, 10)
    assert str(raised.value) == f"There is no file at {Path.cwd()}/none.json."
    for folder in ("_temporary/0", ".hidden", "_delta_log"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.json").write_text(lines(1))
    assert opened("").pieces == [], "what is not written whole yet, or no data"
    (tmp_path / "_place" / "b").mkdir(parents=True)
    (tmp_path / "_place" / "b" / "a.json").write_text(lines(1))
    assert len(opened("_place").pieces) == 1 and opened("").pieces == []
    (tmp_path / "a.json").write_text(lines(1))
    once = opened("a.json", follow=False)
    assert open_files_after(FileInput(str(tmp_path / "a.json")), RAW, spec, once.pinned, 10) is None
    with pytest.raises(DataError, match="The format, or `follow`, is not what the load began with"):
        open_files_after(FileInput(str(tmp_path), follow=True), RAW, spec, once.pinned, 10)
    with pytest.raises(DataError, match="The format, or `follow`, is not what the load began with"):
        opened("", follow=False, pinned=opened("").pinned)
