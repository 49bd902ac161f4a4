"""One expression, queries and transforms: the same value for each of 160 odd rows; exceptions are listed."""

from __future__ import annotations

from tests.expressions.engines import ERROR, Values, by_query, by_transform, is_same, lines_of


def test_transforms_give_what_queries_give() -> None:
    expressions = lines_of("corpus.txt")
    assert _differing(by_query(expressions), by_transform(expressions), "transforms_differ.txt") == []


def _differing(queried: dict[str, Values], others: dict[str, Values], listed: str) -> list[tuple[str, object, object]]:
    """The first row that differs of each expression that is not listed. A row may fail where the query fails."""
    allowed = set(lines_of(listed))
    found: list[tuple[str, object, object]] = []
    for text, other in others.items():
        query = queried[text]
        if text in allowed or query is None or other is None:
            continue
        pairs = [(one, two) for one, two in zip(query, other, strict=True) if one is not ERROR]
        found += [(text, one, two) for one, two in pairs if not is_same(one, two)][:1]
    return found
