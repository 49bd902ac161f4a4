"""Date patterns: what a query writes and reads, transforms and time columns write and read."""

from __future__ import annotations

import itertools

import pytest

from tests.expression.engines import ERROR, by_query, by_transform, is_same

OFFSETS = ("Z", "ZZ", "X", "XX", "XXX")
FRACTIONS = ("S", "SS", "SSS", "SSSSSS")
PATTERNS = [
    *(f"yyyy-MM-dd''T''HH:mm:ss{offset}" for offset in OFFSETS),
    *(f"yyyy-MM-dd HH:mm:ss.{fraction}" for fraction in FRACTIONS),
    *(f"yyyy-MM-dd HH:mm:ss.{fraction}{offset}" for fraction, offset in itertools.product(("S", "SSS"), OFFSETS)),
    *(f"{offset} yyyyMMddHHmmss" for offset in OFFSETS),
    "yyyyMMddHHmmss", "yyyy-MM-dd", "MM/dd/yyyy hh:mm a", "d MMM yyyy H:m:s", "dd MMM yyyy HH:mm:ss Z",
]  # fmt: skip
ZONES = ("UTC", "Asia/Kolkata", "America/New_York")


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_what_is_written_is_the_same_and_is_read_again(zone: str) -> None:
    written = [f"toDateTime(m, '{pattern}', '{zone}')" for pattern in PATTERNS]
    again = [f"fromDateTime({text}, '{pattern}', '{zone}')" for text, pattern in zip(written, PATTERNS, strict=True)]
    expressions = [*written, *again]
    queried, transformed = by_query(expressions), by_transform(expressions)
    differing = []
    for text in expressions:
        query, transform = queried[text], transformed[text]
        assert query is not None and transform is not None, text
        pairs = [(one, two) for one, two in zip(query, transform, strict=True) if one is not ERROR and two is not ERROR]
        differing += [(text, one, two) for one, two in pairs if not is_same(one, two)][:1]
        assert len(pairs) > 100, (text, query[:3], transform[:3])
    assert differing == []
