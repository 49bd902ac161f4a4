"""Patterns that Java's engine would need very long for are refused by name, and LIKE never tries a place twice."""

from __future__ import annotations

import random
import re

import pytest

from hybrid.config.expectations import parse_expect
from hybrid.errors import SpecError, UsageError
from hybrid.sql.expectation_sql import refuse_wrong_conditions
from hybrid.sql.row_sql import row_assignments, row_condition
from hybrid.sql.spark_regex import check_java_pattern, like_regex
from tests.expression.odd_rows import odd_table

STEEP = ["(a+)+b", "(a|a)*b", "(.*a){20}", "(a?){30}a{30}", r"(\w+\s?)*$", ".*a.*b", r"(\p{L}*)*1", "(?<n>a+)+b"]


@pytest.mark.parametrize("pattern", STEEP)
def test_a_pattern_that_may_take_very_long_is_refused_where_it_stands(pattern: str) -> None:
    spec = odd_table()
    asked = f"regexp_like(s, '{pattern}')"
    with pytest.raises(UsageError, match=r"--where: The regular expression '.*' may take very long for some texts"):
        row_condition(asked, spec, "--where")
    with pytest.raises(UsageError, match="--update: The regular expression"):
        row_assignments(f"s = regexp_replace(s, '{pattern}', '')", spec, "--update")
    with pytest.raises(SpecError, match="may take very long"):
        row_condition(f"regexp_extract(s, '{pattern}') = 'a'", spec, "a.json: x")
    with pytest.raises(UsageError, match="may take very long"):
        refuse_wrong_conditions(parse_expect(asked, spec.schema), spec)


@pytest.mark.parametrize(
    "pattern",
    [r"^\d+$", r"[a-z]+@", r"(\w+)@(\w+)\.com", r"\p{L}+", "[[:alpha:]]+", r"^([^,]*),([^,]*)$", "a|b|c", r"(a)\1"],
)
def test_ordinary_patterns_are_read(pattern: str) -> None:
    assert row_condition(f"regexp_like(s, '{pattern}')", odd_table(), "--where")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(a", "cannot be read"), ("[a[b]]", r"write '\\\[' in a class"), ("[a-z&&[^b]]", r"write '\\&' in a class")],
)
def test_what_java_takes_otherwise_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        row_condition(f"regexp_like(s, '{pattern}')", odd_table(), "--where")


def test_a_pattern_out_of_a_row_is_refused() -> None:
    with pytest.raises(UsageError, match="The regular expression must be a quoted constant"):
        row_condition("regexp_like(s, u)", odd_table(), "--where")


@pytest.mark.parametrize("ignore_case", [True, False])
def test_letters_that_meet_without_regard_to_case(ignore_case: bool) -> None:
    pattern = "^(?:[a-z]+A)+$"
    if not ignore_case:
        check_java_pattern(pattern)
        return
    with pytest.raises(Exception, match="may take very long"):
        check_java_pattern(pattern, ignore_case=True)


@pytest.mark.slow
def test_like_as_a_regular_expression() -> None:
    assert [like_regex(one) for one in ("a", "a%", "%a%", "a%b", "%a")] == [None] * 5
    chance, tried = random.Random(3), 0
    for _ in range(4000):
        pattern = "".join(chance.choice("ab%%_é\\.(") for _ in range(chance.randint(2, 8)))
        written = like_regex(pattern)
        if written is None:
            continue
        tried += 1
        text = "".join(chance.choice("abé.%_\n\\(") for _ in range(chance.randint(0, 8)))
        parts = re.findall(r"\\[_%]|.", pattern, re.DOTALL)
        joined = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
        expected = re.fullmatch(joined, text, re.DOTALL) is not None
        assert bool(re.search(written.replace(r"\z", r"\Z"), text)) is expected, (pattern, text)
    assert tried > 300
