"""Regular expressions over anybody's texts: none takes long, and it is the same value whichever engine matches."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator

import pytest

from hybrid.expression.bounded_regex import STEPS_MAX, BoundedPattern, Use, is_linear
from hybrid.expression.parse import parse_expression
from hybrid.expression.patterns import LikePattern
from hybrid.expression.regex_cost import matching_cost
from hybrid.expression.regex_re2 import LinearPattern, NotTranslated
from hybrid.expression.regex_tree import characters, parse
from tests.examples import seeds

LINEAR = [
    "abc", r"^\d+$", r"\d+", r"[^a-z]+", r"^([^,]*),([^,]*),([^,]*)$", r"\d{4}-\d{2}-\d{2}", r"(\w)\1", r"^(?=.*\d)x",
    r"^(?:[^,]*,)*$", "(?i)warn|error", r"[a-z]{1,64}@", r"(?<=a)b", r"^((a|b)*c)*d",
]  # fmt: skip
QUADRATIC = [r"(\w+)@(\w+)\.com", r"\s+$", r"https?://([^/]+)/.*", r"'(?:[^']|'')*'", r"a*(?:,|$)"]
STEEP = [
    "(a+)+b",
    "(a|a)*b",
    "(a|aa)+b",
    "(.*a){20}b",
    "(a?){30}a{30}b",
    "(x+x+)+y",
    r"^(\w+\s?)*$",
    ".*a.*b.*c",
    "(a*)*b",
]
TEXTS: list[Callable[[int], str]] = [
    lambda n: "a" * n, lambda n: "a" * (n - 1) + "!", lambda n: "ab" * (n // 2), lambda n: "x" * n,
    lambda n: " " * n + "x",
    lambda n: "a," * (n // 2), lambda n: "'" * n, lambda n: "a1" * (n // 2) + "!", lambda n: "http://" * (n // 7),
    lambda n: "c" * n, lambda n: "abc" * (n // 3) + "!", lambda n: "é" * n,
]  # fmt: skip


@pytest.mark.parametrize("pattern", [*LINEAR, *QUADRATIC, *STEEP])
def test_no_text_takes_long(pattern: str) -> None:
    compiled = BoundedPattern(pattern, re.ASCII, Use.FITS)
    started = time.process_time()
    for text in TEXTS:
        for length in (10, 60, 200, 1000, 20_000):
            compiled.fits(text(length))
    assert time.process_time() - started < 2


@pytest.mark.parametrize("pattern", LINEAR)
def test_what_is_linear_is_left_to_the_fast_engine(pattern: str) -> None:
    assert is_linear(matching_cost(pattern, re.ASCII))


@pytest.mark.parametrize("pattern", [*QUADRATIC, *STEEP])
def test_what_is_not_linear_is_told(pattern: str) -> None:
    cost = matching_cost(pattern, re.ASCII)
    assert not is_linear(cost) and cost.length_within(STEPS_MAX) < 300


@pytest.mark.parametrize("pattern", ["(?=(a+)+b)", r"(a*)*\1b", r"\w+(?= EUR)", "(?:(?!x).)*y", "(?>a+)+b", r"\B\w+@"])
@pytest.mark.parametrize("call", ["regexpLike(x, {})", "regexpExtract(x, {})", "regexpReplace(x, {}, '')"])
def test_what_neither_engine_surely_matches_is_refused_with_the_expression(pattern: str, call: str) -> None:
    with pytest.raises(
        ValueError, match=r"may take very long: .*RE2, which is always fast, does not match it as it is"
    ):
        parse_expression(call.format(f"'{pattern}'"))


@pytest.mark.parametrize(("pattern", "reason"), [("(a*)*b", "repeats a group"), (r"(?:|a)\w+?,?", "may match nothing")])
def test_values_that_re2_gives_otherwise_are_refused(pattern: str, reason: str) -> None:
    compiled = LinearPattern(pattern, re.ASCII, values=False)
    assert compiled.fits("b") or compiled.fits("a")
    if reason == "repeats a group":
        with pytest.raises(ValueError, match=reason):
            parse_expression(f"regexpExtract(x, '{pattern}')")


@pytest.mark.parametrize("parts", [1, 2, 4, 8])
def test_like_is_linear(parts: int) -> None:
    found = parse_expression(f"x like '{'%a' * parts}%b'")
    started = time.process_time()
    assert found.evaluate({"x": "a" * 20_000}, None) is False
    assert found.evaluate({"x": "a" * 20_000 + "B"}, None) is True
    assert time.process_time() - started < 0.5


@pytest.mark.slow
def test_like_gives_what_one_regular_expression_gives() -> None:
    chance = random.Random(5)
    for _ in range(4000):
        pattern = "".join(chance.choice("ab%%_é\\.A") for _ in range(chance.randint(0, 7)))
        text = "".join(chance.choice("abAé.%_\n\\") for _ in range(chance.randint(0, 8)))
        parts = re.findall(r"\\[_%]|.", pattern, re.DOTALL)
        joined = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
        expected = re.fullmatch(joined, text, re.IGNORECASE | re.DOTALL) is not None
        assert LikePattern(pattern).fits(text) is expected, (pattern, text)


@pytest.mark.slow
def test_many_matches_that_each_look_at_the_rest_are_bounded() -> None:
    found = LinearPattern("a.*b|a", re.ASCII, values=True)
    assert len(list(found.pieces("a" * 1000))) == 1001
    started = time.process_time()
    with pytest.raises(ValueError, match="too long for so many matches"):
        list(found.pieces("a" * 200_000))
    assert time.process_time() - started < 5


# With letters that have several small or capital ones.
LETTERS = [*"abKsi\n\x0b\x1c 1_,", *"\u00e9\u017f\u212a\u0130\u0131\u00df\u03a3\u03c2\u03c3\U00010400\U00010428\ud800"]
PARTS = [".", "[ab]", "[^a]", r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", "[a-k]", r"[^\w]", "[A-Z]", "[é-\u0200]"]
EDGES = ["$", r"\b", "^", r"\Z", r"\A"]


def _patterns(chance: random.Random, count: int) -> Iterator[tuple[str, int]]:
    """Patterns that `re` itself matches in short texts, with flags."""

    def atom(depth: int) -> str:
        kind = chance.random()
        if kind < 0.3:
            return chance.choice(PARTS)
        if kind < 0.6 and depth:
            return f"{chance.choice(['(', '(', '(?:', '(?i:', '(?s:', '(?m:'])}{choice(depth - 1)})"
        return chance.choice(EDGES) if kind < 0.65 else re.escape(chance.choice(LETTERS))

    def part(depth: int) -> str:
        found = atom(depth)
        return (
            found if found in EDGES else found + chance.choice(["", "", "", *"*+?", "*?", "+?", "??", "{0,3}", "{2}"])
        )

    def choice(depth: int) -> str:
        many = chance.choice([1, 1, 2, 3])
        return "|".join("".join(part(depth) for _ in range(chance.randint(1, 4))) for _ in range(many))

    while count:
        pattern = choice(3) + chance.choice(["", "", "$"])
        flags = chance.choice([re.ASCII, re.ASCII | re.I, re.I, re.ASCII | re.M, re.ASCII | re.S | re.I])
        if matching_cost(pattern, flags).length_within(100_000) > 9:
            count -= 1
            yield pattern, flags


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(0, 2))
def test_both_engines_give_the_same(seed: int) -> None:
    chance, compared = random.Random(seed), 0
    for pattern, flags in _patterns(chance, 150):
        plain = re.compile(pattern, flags)
        for values in (False, True):
            try:
                linear = LinearPattern(pattern, flags, values=values)
            except NotTranslated:
                continue
            for _ in range(6):
                text = "".join(chance.choice(LETTERS) for _ in range(chance.randint(0, 8)))
                match = plain.search(text)
                assert linear.fits(text) is (match is not None), (pattern, flags, text)
                if values:
                    compared += _same_values(plain, linear, text, chance.randint(0, len(text)))
    assert compared > 200


def _same_values(plain: re.Pattern[str], linear: LinearPattern, text: str, begin: int) -> int:
    match, found = plain.search(text), linear.search(text)
    expected = None if match is None else [match[group] for group in range(plain.groups + 1)]
    assert (None if found is None else list(found.texts)) == expected, (plain, text)
    try:
        linear.check_replaces()
    except NotTranslated:
        return 0
    pieces, last = [], 0
    for match in plain.finditer(text, begin):
        pieces.append((text[last : match.start()], match[0]))
        last = match.end()
    given = [(before, None if one is None else one[0]) for before, one in linear.pieces(text, begin)]
    assert given == [*pieces, (text[last:], None)], (plain, text, begin)
    return 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(0, 1))
def test_the_bound_holds_for_any_pattern(seed: int) -> None:
    """Texts as long as `re` is given them: no pattern of whatever shape takes longer than it is bounded to."""
    chance = random.Random(seed)
    for pattern, flags in _patterns(chance, 80):
        length = min(matching_cost(pattern, flags).length_within(STEPS_MAX), 5000)
        compiled = re.compile(pattern, flags)
        for text in (
            "a" * length,
            "ab" * (length // 2),
            "a" * max(0, length - 1) + "!",
            "s1" * (length // 2),
            "\n" * length,
        ):
            started = time.process_time()
            compiled.sub("", text)
            assert time.process_time() - started < 0.2, (pattern, flags, length)


# Each stands where its code says.
ALL = "".join(map(chr, range(0x20000)))
CLASSES = ["k", "[^k]", "[a-z]", "[S-U]", r"\u017f", r"[\u03c3-\u03c9]", r"\u0130", r"[^\u0131a]", r"\u0345", r"\u1e9e"]


@pytest.mark.parametrize("flags", [re.ASCII, re.ASCII | re.I, re.I])
@pytest.mark.parametrize("pattern", [*CLASSES, r"[\U00010400-\U00010410]", r"[\x80-\uffff]", r"[^\x00-\uffff]"])
def test_the_characters_of_a_class_are_those_of_re(pattern: str, flags: int) -> None:
    nodes, all_flags, _ = parse(pattern, flags)
    ranges = characters(nodes[0], all_flags)
    if ranges is None:
        assert flags == re.ASCII | re.I and "000" in pattern
        return
    # `re` finds the longest runs of such characters; ranges that touch or overlap are one run.
    runs = list[tuple[int, int]]()
    for low, high in sorted((low, min(high, len(ALL) - 1) + 1) for low, high in ranges if low < len(ALL)):
        if runs and low <= runs[-1][1]:
            runs[-1] = runs[-1][0], max(high, runs[-1][1])
        else:
            runs.append((low, high))
    assert runs == [found.span() for found in re.compile(f"(?:{pattern})+", flags).finditer(ALL)]
