"""Every hostile input that was found, by kind: one line of `corpus/KIND.jsonl` each. A new one is a new line."""

import json
import random
from pathlib import Path

import pytest

from tests.hostile.targets import TARGETS, corpus

CASES = [(kind, number, case) for kind in TARGETS for number, case in enumerate(corpus(kind))]


@pytest.mark.parametrize(("kind", "case"), [pytest.param(k, c, id=f"{k}-{n}") for k, n, c in CASES])
def test_case(kind: str, case: bytes) -> None:
    TARGETS[kind](case)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TARGETS)
def test_changed_cases(kind: str) -> None:
    """The same with bytes changed, left out and doubled, from a seed; `make fuzz` goes on for minutes."""
    dice, known = random.Random(7), list(corpus(kind))
    pieces = [b"", b"\0", b"\xff", b"{", b"'", b"-", b"99999"]
    for _ in range(50 if kind == "http" else 200):
        case = bytearray(dice.choice(known)[:2000])
        for _ in range(dice.randint(1, 4)):
            place = dice.randint(0, len(case))
            case[place : place + dice.randint(0, 3)] = dice.choice(pieces)
        TARGETS[kind](bytes(case))


def test_the_corpus_has_no_twins() -> None:
    for kind in TARGETS:
        found = list(corpus(kind))
        assert len(set(found)) == len(found) >= 10, kind
    folder = Path(__file__).with_name("corpus")
    assert {path.stem for path in folder.iterdir()} == set(TARGETS)
    assert all(isinstance(json.loads(line), str) for path in folder.iterdir() for line in path.read_text().splitlines())
