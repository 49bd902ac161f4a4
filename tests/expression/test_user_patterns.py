"""Patterns that users write: matched in linear time, and refused with a reason where RE2 does not read them."""

from __future__ import annotations

import time

import pytest

from hybrid.expression.path_patterns import compile_path_pattern
from hybrid.expression.user_patterns import PatternError, compile_user_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "regex:([a-z0-9/]+)+!", "regex:(a|a)*!", "regex:(a|aa)+!", "regex:(.*a){20}!", "regex:(a?){30}a{30}!",
        "glob:" + "*a" * 40 + "!", "glob:**a" + "**a" * 30 + "!", "{a,a}" * 60 + "!",
    ],
)  # fmt: skip
def test_no_pattern_takes_more_than_a_moment(pattern: str) -> None:
    started = time.thread_time()
    assert compile_path_pattern(pattern).fullmatch("a" * 5000) is None
    assert time.thread_time() - started < 2


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1", "(a", "a{2000}", "a" * 5000])
def test_what_is_not_read_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(PatternError, match=r".{5}"):
        compile_user_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("[.-0]", "/", False), ("[.-0]", ".", True), ("[.-0]", "0", True), ("[!a]", "/", False), ("[!a]", "b", True),
        ("[/]", "/", False), ("[a-]", "-", True), ("[&|~^]", "^", True), ("[!^]", "^", False), ("[é-ü]", "ö", True),
        ("a.json", "axjson", False), ("?", "é", True), ("regex:a.b", "a\nb", True),
    ],
)  # fmt: skip
def test_globs_are_java_s(pattern: str, path: str, fits: bool) -> None:
    assert bool(compile_path_pattern(pattern).fullmatch(path)) is fits


def test_java_s_named_groups_are_read() -> None:
    found = compile_user_pattern(r".+/(?<day>[^/]+)/(x)?(.+)\.gz").fullmatch("/in/2021-09-24/a.gz")
    assert found is not None and found.groups("") == ("2021-09-24", "", "a")
