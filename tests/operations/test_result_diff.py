"""Differences of two results: how rows are matched, what changed, what cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hybrid.errors import UsageError
from hybrid.operations.result_diff import ROWS_MAX, ResultDifference, RowChange, result_difference

SALES = ("region:STRING", "total:DOUBLE")


def result(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    names, types = zip(*(column.split(":") for column in columns), strict=True)
    return {"columns": list(names), "types": list(types), "rows": [list(row) for row in rows]}


def compared(columns: Sequence[str], before: Sequence[Any], after: Sequence[Any]) -> ResultDifference:
    return result_difference(result(columns, before), result(columns, after))


def changes(found: ResultDifference) -> list[tuple[str, Any, Any]]:
    return [(pair.change.value, pair.before, pair.after) for pair in found.pairs]


def test_rows_are_matched_by_words() -> None:
    found = compared(
        SALES, [("north", 1.0), ("south", 2.0), ("west", 4.0)], [("south", 2.0), ("north", 5.0), ("x", 1.0)]
    )
    assert found.key == ("region",)
    assert changes(found) == [
        ("same", ["south", 2.0], ["south", 2.0]), ("changed", ["north", 1.0], ["north", 5.0]),
        ("added", None, ["x", 1.0]), ("removed", ["west", 4.0], None),
    ]  # fmt: skip
    assert found.pairs[1].places == (1,) and found.count(RowChange.REMOVED) == 1
    assert found.sentence == "Rows of the result: 1 changed, 1 added, 1 removed, 1 equal."


def test_one_row_is_compared_with_the_other() -> None:
    found = compared(("n:LONG", "total:DOUBLE"), [(3, 4.5)], [(3, 9.0)])
    assert found.key == () and changes(found) == [("changed", [3, 4.5], [3, 9.0])]
    assert compared(("n:LONG",), [], [(1,)]).pairs[0].change is RowChange.ADDED
    assert compared(("n:LONG",), [], []).sentence == "No difference: 0 rows, equal before and after."


def test_a_number_may_be_the_key() -> None:
    found = compared(("total:DOUBLE", "region:INT"), [(1.0, 1), (2.0, 2)], [(1.5, 1), (2.5, 2)])
    assert found.key == ("region",) and found.count(RowChange.CHANGED) == 2


def test_equal_rows_are_counted() -> None:
    found = compared(("word:STRING",), [("a",), ("a",), ("b",)], [("a",), ("c",), ("c",)])
    assert found.key is None
    assert [change for change, *_ in changes(found)] == ["same", "added", "added", "removed", "removed"]


def test_values_may_be_lists_and_null() -> None:
    found = compared(("k:STRING", "v:STRING"), [("a", ["x"]), (None, None)], [("a", ["x", "y"]), (None, None)])
    assert [pair.change.value for pair in found.pairs] == ["changed", "same"]


@pytest.mark.slow
def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="other columns before than after"):
        result_difference(result(("a:INT",), []), result(("b:INT",), []))
    with pytest.raises(UsageError, match="at most 10,000 are compared"):
        compared(("a:INT",), [], [(number,) for number in range(ROWS_MAX + 1)])
