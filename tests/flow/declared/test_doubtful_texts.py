"""Which new text columns a flow's run warns of: those that a few texts among numbers made STRING, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from hybrid.flow.declared.doubtful_texts import doubts_about
from hybrid.flow.declared.inference import InferredColumns
from hybrid.flow.declared.listing import list_files
from hybrid.flow.declared.options import parse_source
from hybrid.flow.declared.read import load_files
from hybrid.lake.commit_context import CommitContext

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Doubts = Callable[..., list[str]]


@pytest.fixture
def doubts(tmp_path: Path, workbench: CommitContext) -> Doubts:
    """The doubts about all columns of the files that were written."""

    def ask(form: str, *, schema: str | None = None, **options: object) -> list[str]:
        source = parse_source(str(tmp_path), {"format": form, **options}, "flow", streaming=True, schema=schema)
        files = list_files(source)
        columns = load_files(workbench.spark, source, files, None, InferredColumns()).schema
        names = {field.name.lower() for field in columns}
        return doubts_about(workbench.spark, source, files, columns, names)

    return ask


def write(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_json(tmp_path: Path, doubts: Doubts) -> None:
    """A tenth may be texts. Numbers in quotes are texts, and the names of columns do not matter."""
    columns: dict[str, Callable[[int], object]] = {
        "qty": lambda at: "n/a" if at == 7 else at,
        "unit price": lambda at: "-" if at < 4 else at / 4,
        "a.b`c": lambda at: "none" if at == 39 else at,
        "File": lambda at: "b.py" if at == 3 else at,
        "_id": lambda at: None if at % 2 else "x" if at < 5 else at,
        "more": lambda at: "-" if at < 5 else at,
        "code": lambda at: "A-1" if at == 7 else f"0{at}",
        "zip": lambda at: f"0{at}",
        "note": lambda at: "a" if at % 2 else 1,
    }
    write(tmp_path / "1.json", ({name: value(at) for name, value in columns.items()} for at in range(40)))
    file = tmp_path / "1.json"
    ends = {
        "qty": f"1 of 40 values is no number, e.g. 'n/a' in {file}. A new table with schemaHints 'qty BIGINT' rejects",
        "unit price": "4 of 40 values are no number, e.g. '-' in",
        "a.b`c": "schemaHints '`a.b``c` BIGINT' rejects such rows instead.",
        "File": f"1 of 40 values is no number, e.g. 'b.py' in {file}.",
    }
    found = {sentence.partition("column '")[2].partition("' is STRING")[0]: sentence for sentence in doubts("json")}
    assert found.keys() == ends.keys()
    assert all(end in found[name] for name, end in ends.items()), found


def test_what_the_user_said_is_no_doubt(tmp_path: Path, doubts: Doubts) -> None:
    write(tmp_path / "1.json", ({"qty": "n/a" if at == 7 else at} for at in range(40)))
    assert len(doubts("json")) == 1
    assert doubts("json", schemaHints="qty STRING") == []
    assert doubts("json", schema="qty STRING") == []
    assert doubts("json", schemaEvolutionMode="rescue") == []
    assert doubts("json", primitivesAsString="true") == []
    assert doubts("json", inferColumnTypes="false") == []


def test_csv_of_several_headers_and_folders(tmp_path: Path, doubts: Doubts) -> None:
    """The text is in a file whose header is another one."""
    for day, name, header in (("1", "a", "id,qty"), ("x", "b", "qty,id,more")):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        lines = (f"{at},{at}" if name == "a" else f"{'n/a' if at == 3 else at},{at},{at}" for at in range(20))
        (folder / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    (sentence,) = doubts("csv", header="true", inferSchema="true")
    assert f"column 'qty' is STRING: 1 of 40 values is no number, e.g. 'n/a' in {tmp_path}/day=x/b.csv." in sentence


def test_parquet_says_its_types(tmp_path: Path, doubts: Doubts) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"code": [*map(str, range(40)), "A-1"], "_metadata": [1] * 41}), tmp_path / "1.parquet")
    assert doubts("parquet") == []
