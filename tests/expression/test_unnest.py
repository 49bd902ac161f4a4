"""Nested records as flat ones, after Pinot's ComplexTypeTransformer and its tests."""

import pytest

from hybrid.errors import DataError
from hybrid.expression.unnest import ROWS_MAX, VALUES_MAX, Unnester
from hybrid.schema.ingestion import ComplexTypes, ListsToJson


def rows(record, *unnest, **more):
    return Unnester(ComplexTypes(unnest, **more)).rows(record)


def test_objects_become_fields():
    assert rows({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == [{"e": 3, "a.b": 1, "a.c.d": 2}]
    assert rows({"a": {"b": {}}, "c": None}) == [{"c": None}]
    assert rows({"a": {"b": 1}}, delimiter="__") == [{"a__b": 1}]


def test_lists_become_rows():
    record = {"array": [{"a": "v1"}, {"a": "v2", "b": {"c": 1}}], "id": 7}
    assert rows(record, "array") == [{"id": 7, "array.a": "v1"}, {"id": 7, "array.a": "v2", "array.b.c": 1}]
    assert rows({"id": 7, "t": [1, 2]}, "t") == [{"id": 7, "t": 1}, {"id": 7, "t": 2}]
    assert record["array"][1]["b"] == {"c": 1}, "the record itself stays"


def test_lists_in_objects_and_in_lists():
    record = {"t1": {"array": [{"t2": {"array": [1, 2]}, "x": 1}, {"x": 2}]}}
    assert rows(record, "t1.array.t2.array", "t1.array") == [
        {"t1.array.x": 1, "t1.array.t2.array": 1},
        {"t1.array.x": 1, "t1.array.t2.array": 2},
        {"t1.array.x": 2},
    ]


def test_nothing_is_lost_where_there_is_no_list():
    assert rows({"id": 1, "t": []}, "t") == [{"id": 1}]
    assert rows({"id": 1}, "t") == [{"id": 1}]
    assert rows({"id": 1, "t": "one"}, "t") == [{"id": 1, "t": "one"}]
    assert rows({"id": 1, "t": None}, "t") == [{"id": 1, "t": None}]
    assert rows({"t": [[1], None, {}]}, "t") == [{"t": [1]}, {"t": None}, {}]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        (ListsToJson.NON_PRIMITIVE, {"p": [1, "x"], "n": '[{"a":1}]', "e": []}),
        (ListsToJson.ALL, {"p": '[1,"x"]', "n": '[{"a":1}]', "e": "[]"}),
        (ListsToJson.NONE, {"p": [1, "x"], "n": [{"a": 1}], "e": []}),
    ],
)
def test_lists_that_are_not_unnested(lists, expected):
    assert rows({"p": [1, "x"], "n": [{"a": 1}], "e": []}, lists=lists) == [expected]
    inner = {f"t.{name}": value for name, value in expected.items()}
    assert rows({"t": [{"p": [1, "x"], "n": [{"a": 1}], "e": []}]}, "t", lists=lists) == [inner]


def test_prefixes_are_renamed_in_every_row():
    renames = {"event.": "", "t.": "u."}
    assert rows({"event": {"id": 1}, "t": [{"x": 1}, {"x": 2}]}, "t", renames=renames) == [
        {"id": 1, "u.x": 1},
        {"id": 1, "u.x": 2},
    ]
    with pytest.raises(DataError, match=r"'event.id' cannot be renamed to 'id'"):
        rows({"event": {"id": 1}, "id": 2}, renames=renames)
    with pytest.raises(DataError, match="cannot be renamed to ''"):
        rows({"event.": 1}, renames=renames)


def test_long_names_and_wide_records_do_not_fill_the_memory():
    with pytest.raises(DataError, match="longer than 1000 characters"):
        rows({"x" * 600_000: {str(number): 1 for number in range(100_000)}})
    assert rows({"x" * 2000: 1}) == [{"x" * 2000: 1}], "what is not nested is as it came"
    with pytest.raises(DataError, match=f"{VALUES_MAX} values"):
        rows({"t": [1] * 90_000, **{str(number): 1 for number in range(1000)}}, "t")


@pytest.mark.slow
def test_two_long_lists_do_not_fill_the_memory():
    with pytest.raises(DataError, match=f"more than {ROWS_MAX} rows"):
        rows({"a": [1] * 1000, "b": [1] * 1000}, "a", "b")
