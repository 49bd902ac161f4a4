"""CSV files of flows: columns by their names where a header gives them, else by their places; never rows of nulls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import DataError, SpecError
from hybrid.flow.declared.binding import StreamBinding, refuse_unnamed
from hybrid.flow.declared.inference import InferredColumns
from hybrid.flow.declared.listing import list_files
from hybrid.flow.declared.options import parse_source
from hybrid.flow.declared.read import Loaded, load_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SCHEMA = "id INT, name STRING"


@pytest.fixture
def load(tmp_path: Path, workbench) -> Callable[..., Loaded]:
    """Reads files of the folder as a flow does, whatever its spelling: all end in `parse_source` and `load_files`."""

    def read(schema: str | None, **options: object) -> Loaded:
        source = parse_source(str(tmp_path), {"format": "csv", **options}, "flow", streaming=True, schema=schema)
        return load_files(workbench.spark, source, list_files(source), None, InferredColumns())

    return read


def rows(loaded: Loaded, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in loaded.good.select(*(names or loaded.good.columns)).collect()), key=repr)


def reasons(loaded: Loaded) -> list[str]:
    return [] if loaded.rejected is None else [row[0] for row in loaded.rejected.collect()]


def test_without_a_header_columns_are_those_of_the_schema_by_their_places(tmp_path: Path, load) -> None:
    (tmp_path / "1.csv").write_text("1,x\n2,y\n")
    (tmp_path / "2.csv").write_text("3,z,more\nw,4\n")
    found = load(SCHEMA)
    assert rows(found) == [(1, "x"), (2, "y"), (3, "z")]
    assert len(reasons(found)) == 1 and "does not fit the columns (id INT, name STRING" in reasons(found)[0]
    assert any("_c2" in warning for warning in found.warnings)
    rescued = load(SCHEMA, schemaEvolutionMode="rescue")
    assert rows(rescued, "id", "name") == [(1, "x"), (2, "y"), (3, "z"), (None, "4")]
    inferred = load(None, inferSchema="false")  # a line that is narrower than its file's first one is kept as rejected
    assert rows(inferred, "_c0") == [("1",), ("2",), ("3",)]
    assert len(reasons(inferred)) == 1
    with pytest.raises(SpecError, match="schemaHints name id, but no header names the columns"):
        load(None, schemaHints="id INT")


def test_a_table_gets_no_columns_by_place_unasked(tmp_path: Path, workbench) -> None:
    (tmp_path / "1.csv").write_text("id,name\n1,x\n")
    for options, schema, refused in (
        ({}, None, True), ({"header": "false"}, None, False), ({"header": "true"}, None, False), ({}, SCHEMA, False)
    ):  # fmt: skip
        bound = StreamBinding("f", workbench.spark)
        source = parse_source(str(tmp_path), {"format": "csv", **options}, "flow", streaming=True, schema=schema)
        names = bound.read(source).columns
        refuse_unnamed(bound, ["id"])
        if refused:
            with pytest.raises(SpecError, match=r"would be called _c0, _c1\. Nothing was changed") as error:
                refuse_unnamed(bound, names)
            assert "header to true" in str(error.value.hint)
        else:
            refuse_unnamed(bound, names)


def test_headers_in_another_order_and_behind_comments_in_one_batch(tmp_path: Path, load) -> None:
    (tmp_path / "1.csv").write_text("# made today\nid,name\n1,x\n")
    (tmp_path / "2.csv").write_text("# made today\nname,id\ny,2\n")
    (tmp_path / "3.csv").write_text("\nname,id\nz,3\n")
    assert rows(load(SCHEMA, header="true", comment="#")) == [(1, "x"), (2, "y"), (3, "z")]
    with pytest.raises(DataError, match="none of them is a column of the schema"):
        load("a INT, b STRING", header="true", comment="#")


@pytest.mark.parametrize("schema", [None, "id INT, name STRING"])
def test_mode_rescue_keeps_the_cells_beyond_the_last_column(tmp_path: Path, load, schema: str | None) -> None:
    """A line with more or fewer cells is kept whole beside its values; folders are columns."""
    folder = tmp_path / "day=5"
    folder.mkdir()
    (folder / "1.csv").write_text('id,name\n1,x\n2,y,more,"a,b"\n3\n')
    (folder / "2.csv").write_text("name,id\nz,4\nw,5,9\n")
    (folder / "3.csv").write_text("")
    options = {"header": "true", "inferSchema": "true", "schemaEvolutionMode": "rescue"}
    found = load(schema, **options)
    assert found.rejected is None
    kept = {row[0]: (row[1], json.loads(row[2] or "{}")) for row in rows(found, "id", "name", "_rescued_data")}
    one, two = f"{folder}/1.csv", f"{folder}/2.csv"
    assert kept == {
        1: ("x", {}),
        2: ("y", {"_corrupt_record": '2,y,more,"a,b"', "_file_path": one}),
        3: (None, {"_corrupt_record": "3", "_file_path": one}),
        4: ("z", {}),
        5: ("w", {"_corrupt_record": "w,5,9", "_file_path": two}),
    }
    assert found.good.where("_rescued_data is not null").select("id").count() == 3, "whatever else is read of it"
    assert schema is not None or rows(found, "day") == [(5,)] * 5


@pytest.mark.parametrize("schema", [None, "id INT, name STRING"])
def test_a_file_without_a_byte_has_no_rows(tmp_path: Path, load, schema: str | None) -> None:
    (tmp_path / "1.csv").write_text("id,name\n1,x\n")
    (tmp_path / "2.csv").write_text("")
    found = load(schema, header="true", inferSchema="true")
    assert rows(found, "id", "name") == [(1, "x")] and reasons(found) == []
