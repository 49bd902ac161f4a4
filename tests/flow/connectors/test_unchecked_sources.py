"""Histories whose files do not hold what their schemas say: texts that are not UTF-8, nulls in NOT NULL fields."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hybrid.config.ddl import parse_ddl
from hybrid.config.table_json import parse_table
from hybrid.flow.connectors.convert import Rows
from hybrid.flow.connectors.delta_files import nullable
from hybrid.flow.connectors.source import PIECE, PLACE
from tests.recipes.conftest import RecipeHome
from tests.unchecked_texts import LATIN1, nested_texts, unchecked

ITEM = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string(), nullable=False)])
NESTED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("s", ITEM, nullable=False),
        pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field("ls", pa.list_(pa.field("element", ITEM, nullable=False)), nullable=False),
        pa.field("who", pa.string(), nullable=False),
        pa.field("m", pa.map_(pa.string(), pa.int64())),
    ]
)
DDL = """CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, s VARIANT, l BIGINT ARRAY, ls VARIANT, who VARCHAR, m VARIANT)
WITH ('connectors' = '[{"name": "old", "transport": {"name": "delta_table_input", "config": CONFIG}}]');"""


def row(number, **others):
    nested = {"s": {"x": number, "y": "a"}, "l": [number], "ls": [{"x": 1, "y": "b"}], "m": [("k", number)]}
    return {"id": number, **nested, "who": "w", **others}


def test_the_first_text_that_is_not_utf8_ends_the_batch():
    (found,) = parse_ddl("CREATE TABLE t (text VARCHAR, large VARCHAR, list VARCHAR ARRAY);", "t.sql")
    spec = parse_table(found.schema_doc, "t.sql", [(config, "t.sql") for config in found.configs])
    for name, column in nested_texts([b"a", LATIN1, b"b"]).items():
        arrays = [column, pa.array([4] * 3, pa.int32()), pa.array(range(7, 10), pa.int64())]
        rows = Rows(spec, "old", [name, PIECE, PLACE])
        converted = rows.convert(pa.RecordBatch.from_arrays(arrays, names=[name, PIECE, PLACE]))
        if spec.schema.find(name) is None:  # what the table does not have may be anything
            assert converted.num_rows == 3 and rows.note.problem is None
            continue
        assert converted.num_rows == rows.note.rows == 1
        assert rows.note.problem is not None
        piece, place, where, reason = rows.note.problem
        assert (piece, place, where) == (4, 8, ", row 9")
        assert reason.startswith(f"column '{name}' has a text that is not UTF-8: byte 0xe9 at place 4")


def test_a_schema_in_which_everything_may_be_null():
    field = {"name": "a", "type": "long", "nullable": False, "metadata": {"k": "v"}}
    record = {"type": "struct", "fields": [field]}
    listed = {"type": "array", "elementType": record, "containsNull": False}
    mapped = {"type": "map", "keyType": "string", "valueType": listed, "valueContainsNull": False}
    free = {**field, "nullable": True}
    wanted = {"type": "array", "elementType": {"type": "struct", "fields": [free]}, "containsNull": True}
    assert nullable({"type": "struct", "fields": [{**field, "type": mapped}]}) == {
        "type": "struct",
        "fields": [
            {**free, "type": {"type": "map", "keyType": "string", "valueType": wanted, "valueContainsNull": True}}
        ],
    }


@pytest.mark.spark
def test_files_of_a_delta_table(tmp_path, capsys):
    """Its log says NOT NULL of every field; who wrote the files has checked neither that nor the texts."""
    home, lake = RecipeHome(tmp_path / "home", capsys), tmp_path / "lake"
    write_deltalake(str(lake), pa.Table.from_pylist([row(1), row(2), row(3)], NESTED))
    (path,) = lake.glob("*.parquet")
    (tmp_path / "t.sql").write_text(DDL.replace("CONFIG", json.dumps({"uri": str(lake), "mode": "snapshot"})))
    home.run("table", "create", "-f", str(tmp_path / "t.sql"))

    def write(rows, texts):
        free = pa.schema([*map(_free, NESTED)])
        table = pa.Table.from_pylist(rows, free)
        pq.write_table(table.set_column(4, "who", unchecked(texts)), path)

    rows = [row(1), row(2, s={"x": None, "y": None}, l=None), row(3, ls=[None, {"x": None, "y": "b"}])]
    write(rows, [b"a", LATIN1, b"c"])
    home.run("ingest", "t", code=1)
    words = f"{path.name}, row 2: column 'who' has a text that is not UTF-8: byte 0xe9 at place 4, near 'caf"
    assert words in home.messages and "Nothing of this file was loaded." in home.messages
    assert home.rows("select id from t") == []
    write(rows, [b"a", None, b"c"])
    home.run("connector", "start", "t", "old")
    home.run("ingest", "t")
    assert home.rows("select s, l, ls, who, m from t order by id") == [
        {"s": '{"x":1,"y":"a"}', "l": [1], "ls": '[{"x":1,"y":"b"}]', "who": "a", "m": '{"k":1}'},
        {"s": '{"x":null,"y":null}', "l": None, "ls": '[{"x":1,"y":"b"}]', "who": None, "m": '{"k":2}'},
        {"s": '{"x":3,"y":"a"}', "l": [3], "ls": '[null,{"x":null,"y":"b"}]', "who": "c", "m": '{"k":3}'},
    ]


def _free(field):
    """The field, and all below it, without NOT NULL."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_free(kind.field(number)) for number in range(kind.num_fields)])
    elif pa.types.is_list(kind):
        kind = pa.list_(_free(kind.value_field))
    return pa.field(field.name, kind)
