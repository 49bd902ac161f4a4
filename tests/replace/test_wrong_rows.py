"""Wrong rows of input files: each up to a bound, with its line, of CSV, JSON lines and conversion. Without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.errors import ERRORS_MAX, DataError
from hybrid.files.inputs import InputFile
from hybrid.files.reading import read_slice
from hybrid.files.records import Shape, Slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.replace.stage import _CellNote, _Converter, _refuse_problems, _stage_slice
from hybrid.schema.problem import Problem
from tests.query.halves import orders_spec

HEADER = "order_id,customer,amount,ts\n"


def staged(path: Path, shape: Shape, number: int = 0) -> tuple[int, _CellNote]:
    """The rows and the note of a file."""
    piece = Slice(path, shape, bytes=path.stat().st_size if shape is Shape.JSON_LINES else 0)
    batches = list(_stage_slice(_Converter(orders_spec(), ()), _CellNote(number), piece, CsvFormat(), 0))
    note = next(text for batch in batches for text in batch.column("_hy_note").to_pylist() if text is not None)
    return sum(batch.num_rows for batch in batches) - 1, _CellNote.from_text(note)


def test_each_wrong_row_of_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "1,ada,1.5,10\n2,ada\n3,ada,x,10\n4,ada,1.5,\n5,ada,2.5,20\n")
    rows, note = staged(path, Shape.CSV)
    assert rows == note.rows == 2
    assert [at for _, at, _ in note.problems] == [", line 3", ", line 4", ", line 5"]
    assert "2 cells where the header has 4" in note.problems[0][2] and "Column 'amount'" in note.problems[1][2]
    assert note.problems[2][2] == "time column 'ts' has no value"


def test_each_wrong_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    good = '{"order_id": 1, "ts": 10}'
    path.write_text(f'{good}\n{{"order_id": 1\n\n[3]\n{good}\n{{"order_id": "x", "ts": 1}}\n{{"order": 1}}\n')
    rows, note = staged(path, Shape.JSON_LINES)
    assert rows == 2 and [at for _, at, _ in note.problems] == [", line 2", ", line 4", ", line 6", ", line 7"]


def test_a_bound_and_what_ends_a_file(tmp_path: Path) -> None:
    many = tmp_path / "many.csv"
    many.write_text(HEADER + "1\n" * 1000)
    assert len(staged(many, Shape.CSV)[1].problems) == ERRORS_MAX
    broken = tmp_path / "broken.csv"
    broken.write_bytes(HEADER.encode() + b"1\n2,a\xc9,1,1\n3\n")
    assert [at for _, at, _ in staged(broken, Shape.CSV)[1].problems] == [", line 2", ", line 3"]
    with pytest.raises(Problem):  # who asks for rows alone gets the first problem
        list(read_slice(Slice(many, Shape.CSV), CsvFormat()))


def test_the_rows_of_several_files_are_one_error(tmp_path: Path) -> None:
    files = [InputFile(tmp_path / name, 1, 0, "", 0, ()) for name in ("a.csv", "b.csv")]
    wrong = [_CellNote(1, problems=[(5, ", line 7", "is bad")]), _CellNote(0, problems=[(1, ", line 3", "is odd.")])]
    wrong.append(_CellNote(0, problems=[(0, ", line 2", "is wrong")]))
    with pytest.raises(DataError) as raised:
        _refuse_problems(files, wrong)
    first, *others = map(str, raised.value.all())
    assert first.startswith(f"{tmp_path}/a.csv, line 2: is wrong. There are wrong rows in 1 further files, e.g. b.csv.")
    assert others == [f"{tmp_path}/a.csv, line 3: is odd.", f"{tmp_path}/b.csv, line 7: is bad."]
