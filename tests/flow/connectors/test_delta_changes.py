"""What a version of a Delta table did to its rows, by its log and files."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid.errors import DataError
from hybrid.flow.connectors.delta_changes import CAME_PIECE, GONE_PIECE, actions_of, changes_of, net_changes
from hybrid.flow.connectors.delta_files import DeltaFile
from hybrid.flow.connectors.source import PIECE, PLACE
from tests.examples import examples


def entry(*actions: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in ({"commitInfo": {}}, *actions))


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 5, "stats": '{"numRecords": 3}', **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, **more}}


def test_what_only_adds() -> None:
    found = actions_of(entry(add("b%20c"), add("a"), add("old", dataChange=False), remove("gone", dataChange=False)))
    assert found.only_adds and [(one.name, one.rows, one.bytes) for one in found.pieces] == [("a", 3, 5), ("b c", 3, 5)]
    assert list(found.added) == ["a", "b c"]
    assert actions_of(entry()).only_adds and not actions_of(entry()).pieces


def test_what_only_adds_beside_its_change_data() -> None:
    """A MERGE that inserts: its rows are new, also where nothing says what becomes of rows that go."""
    told = {"cdc": {"path": "_change_data/c", "partitionValues": {}, "size": 2}}
    found = actions_of(entry(add("a"), told))
    assert found.only_adds and [one.name for one in found.pieces] == ["a"]
    assert not actions_of(entry(told)).only_adds, "nothing but change data"
    assert not actions_of(entry(add("a", deletionVector={"cardinality": 1}), told)).only_adds
    assert not actions_of(entry(add("a"), remove("b"), told)).only_adds


def test_columns_of_paths_have_the_names_of_the_table() -> None:
    """Two that were renamed to each other's names, and one that has its own."""
    values = {"a": "B", "b": "A", "c": ""}
    told = {"cdc": {"path": "c", "partitionValues": values, "size": 2}}
    found = actions_of(entry(add("a", partitionValues=values), told), stored={"a": "b", "b": "a"})
    for file in (found.added["a"], found.told["c"]):
        assert file.partition == {"a": "A", "b": "B", "c": None}


def test_change_data_is_all_that_a_version_did() -> None:
    text = entry(add("a"), remove("b"), {"cdc": {"path": "_change_data/c", "partitionValues": {"p": "1"}, "size": 2}})
    found = changes_of(actions_of(text), {}, {})
    assert found.told == (DeltaFile("_change_data/c", {"p": "1"}),) and not found.came and not found.gone
    files = {path: DeltaFile(path, {}) for path in ("a", "b")}
    found = changes_of(actions_of(text, reads_told=False), files, files)
    assert (found.came, found.gone, found.told) == ((files["a"],), (files["b"],), ())


@pytest.mark.parametrize(
    ("before", "after", "gone", "came"),
    [
        (None, (True, False), [False, True, False, False], None),
        ((True, False), None, None, [False, True, False, False]),
        ((True, False), (False, True, False), [True, False, True, False], [False, True, False, False]),
        ((False,), (False,), None, None),
        (None, None, None, None),
    ],
)
def test_a_file_with_another_deletion_vector(before: Any, after: Any, gone: Any, came: Any) -> None:
    actions = actions_of(entry(add("a", deletionVector={}), remove("a")))
    assert not actions.only_adds
    found = changes_of(actions, {"a": DeltaFile("a", {}, before)}, {"a": DeltaFile("a", {}, after)})
    assert found.are_none is (gone is None and came is None)
    for files, wanted in ((found.gone, gone), (found.came, came)):
        assert [one.keeps(0, 4) for one in files] == ([wanted] if wanted is not None else [])


ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None])), max_size=8)


@pytest.mark.spark
@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(came=ROWS, gone=ROWS, keyed=st.booleans())
def test_what_came_and_went_on_the_whole(workbench: Any, came: Any, gone: Any, keyed: bool) -> None:
    frames = [workbench.spark.createDataFrame(rows, "id int, v string") for rows in (came, gone)]
    key = {"id"} if keyed else set()
    found = net_changes(frames[0], frames[1], None, ["id", "v"], key).collect()
    new, old = Counter(came) - Counter(gone), Counter(gone) - Counter(came)
    if keyed:
        kept = {row[0] for row in new}
        old = Counter({row: count for row, count in old.items() if row[0] not in kept})
    assert Counter((row["id"], row["v"]) for row in found if row[PIECE] == CAME_PIECE) == new
    assert Counter((row["id"], row["v"]) for row in found if row[PIECE] == GONE_PIECE) == old
    assert len({row[PLACE] for row in found}) == len(found)


@pytest.mark.spark
def test_a_type_that_is_not_compared(workbench: Any) -> None:
    for kind in ("map<string,int>", "array<struct<a:map<string,int>>>"):
        rows = workbench.spark.createDataFrame([], f"m {kind}")
        with pytest.raises(DataError, match=f"Column 'm' of the Delta table is of the type {kind}"):
            net_changes(rows, None, None, ["m"], ())
