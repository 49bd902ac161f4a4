"""What `backfilled` holds an answer to: each way in which a backfill could show through is found."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hybrid.query.result import QueryResult
from hybrid.query.revision import Revision, TableRevision
from hybrid.table.boundary import Boundary
from tests.query.halves import KEY
from tests.replace.backfill.lab import BUCKET
from tests.soak.backfilled import ADDED, BASE_ROWS, FIRST, Answer, bucket_of, check_answers, understood

BUCKETS, SHOWN = 4, 9


def _rows(*corrected: int) -> dict[int, list[Any]]:
    live = Counter(bucket_of(n, BUCKETS) for n in range(SHOWN))
    live.update(dict.fromkeys(range(BUCKETS), BASE_ROWS))
    return {one: [count, float(count + (one in corrected) * BASE_ROWS * ADDED)] for one, count in live.items()}


def _answer(rows: dict[int, list[Any]], shown: int = SHOWN) -> Answer:
    revision = TableRevision("orders", 3, 1, Boundary(), {KEY: FIRST + shown})
    found = [(bucket * BUCKET, *values) for bucket, values in rows.items()]
    return understood(QueryResult(["b", "n", "s"], ["LONG", "LONG", "DOUBLE"], found, Revision((revision,))), BUCKETS)


def test_a_right_answer_is_understood() -> None:
    assert _answer(_rows(1, 3)) == Answer(3, SHOWN, frozenset({1, 3}), "files")


@pytest.mark.parametrize(
    ("bucket", "count", "total", "wrong"),
    [
        (1, 0, -ADDED, "corrected in part"),
        (1, 0, BASE_ROWS * ADDED, "corrected in part"),  # twice
        (0, 0, ADDED, "corrected in part"),  # a late row was corrected too
        (BUCKETS, 0, BASE_ROWS * ADDED, "corrected in part"),  # beyond the window
        (1, -1, -1, "live rows at"),
        (2, 1, 1, "live rows at"),
    ],
)
def test_a_wrong_answer_is_found(bucket: int, count: int, total: int, wrong: str) -> None:
    rows = _rows(1)
    rows[bucket] = [rows[bucket][0] + count, rows[bucket][1] + total]
    with pytest.raises(AssertionError, match=wrong):
        _answer(rows)


def test_a_row_in_the_place_of_another_is_found() -> None:
    rows = _rows()
    for bucket, more in ((0, 1), (1, -1)):
        rows[bucket] = [value + more for value in rows[bucket]]
    with pytest.raises(AssertionError, match=r"bucket 0: \d rows, not"):
        _answer(rows)


def test_an_answer_that_its_revision_does_not_hold_is_found() -> None:
    entry: Any = type("Entry", (), {"version": 3, "lineage": type("Lineage", (), {"buckets": ((1000, 2000),)})})
    answer = Answer(3, SHOWN, frozenset({1}), "files")
    check_answers([answer, Answer(2, SHOWN, frozenset(), "files")], [entry])
    for wrong in (
        replace(answer, offline=2),
        replace(answer, corrected=frozenset()),
        replace(answer, corrected=frozenset({1, 2})),
    ):
        with pytest.raises(AssertionError, match="were corrected"):
            check_answers([wrong], [entry])
