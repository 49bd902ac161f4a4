"""One expression, three engines: the same value for each of 160 odd rows; exceptions are listed with their reasons."""

from __future__ import annotations

import pytest

from hybrid.lake.commit_context import CommitContext
from tests.expression.engines import ERROR, Values, by_correction, by_query, by_transform, is_same, lines_of


@pytest.mark.slow
def test_transforms_give_what_queries_give() -> None:
    expressions = lines_of("corpus.txt")
    refused, others = set(lines_of("transforms_refuse.txt")), set(lines_of("transforms_differ.txt"))
    queried, transformed = by_query(expressions), by_transform(expressions)
    assert _differing(queried, {text: transformed[text] for text in refused}, may_fail=True) == []
    plain = {text: values for text, values in transformed.items() if text not in refused | others}
    assert _differing(queried, plain) == []


@pytest.mark.spark
def test_corrections_give_what_queries_give(workbench: CommitContext) -> None:
    listed = {*lines_of("corrections_refuse.txt"), *lines_of("corrections_differ.txt")}
    queried = by_query([text for text in lines_of("corpus.txt") if text not in listed])
    assert _differing(queried, by_correction(workbench, queried)) == []


def _differing(
    queried: dict[str, Values], others: dict[str, Values], *, may_fail: bool = False
) -> list[tuple[str, object, object]]:
    """The first row that differs of each expression. A row may fail where the query fails, and with `may_fail`."""
    found: list[tuple[str, object, object]] = []
    for text, other in others.items():
        query = queried[text]
        if query is None or other is None:
            continue
        pairs = [(one, two) for one, two in zip(query, other, strict=True) if one is not ERROR]
        found += [(text, one, two) for one, two in pairs if not (is_same(one, two) or (may_fail and two is ERROR))][:1]
    return found
