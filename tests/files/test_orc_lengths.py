"""The bounds of ORC's runs of lengths: never too small, and not much too large."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from hybrid.files.limits import DEFAULT_LIMITS
from hybrid.files.orc_layout import read_layout
from hybrid.files.orc_lengths import Lengths, bound_lengths

PATCHED = [2030, 2000, 2020, 1000000, *range(2040, 2200, 10)]

# The examples of the specification.
RUNS: list[tuple[str, int, list[int]]] = [
    ("0a2710", 2, [10000] * 5),
    ("5e035ca1ab1edeadbeef", 2, [23713, 43806, 57005, 48879]),
    ("8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8", 2, PATCHED),
    ("c609020222424246", 2, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
    ("610007", 1, [7] * 100),
    ("61ff64", 1, list(range(100, 0, -1))),
    ("fb020306070b", 1, [2, 3, 6, 7, 11]),
]


@pytest.mark.parametrize(("run", "version", "numbers"), RUNS)
def test_runs_of_the_specification(run: str, version: int, numbers: list[int]) -> None:
    bounds = bound_lengths(bytes.fromhex(run), version)
    assert max(numbers) <= bounds.longest <= 5 * max(numbers)
    assert sum(numbers) <= bounds.total <= 10 * sum(numbers)


@pytest.mark.parametrize(("run", "version", "numbers"), RUNS)
def test_runs_follow_each_other(run: str, version: int, numbers: list[int]) -> None:
    data = bytes.fromhex(run)
    one, three = bound_lengths(data, version), bound_lengths(data * 3, version)
    assert three == Lengths(one.longest, 3 * one.total)
    assert bound_lengths(data * 3, version, len(numbers) + 1) == Lengths(one.longest, 2 * one.total)


@pytest.mark.parametrize(("run", "version", "numbers"), RUNS)
def test_a_run_that_is_cut_off_ends_the_stream(run: str, version: int, numbers: list[int]) -> None:
    data = bytes.fromhex(run)
    for size in range(1, len(data)):
        assert bound_lengths(data[:size], version) == Lengths()


WAYS: list[dict[str, Any]] = [
    {},
    {"dictionary_key_size_threshold": 1.0},
    {"dictionary_key_size_threshold": 1.0, "file_version": "0.11", "compression": "snappy"},
    {"compression": "lz4"},
    {"compression": "zlib", "compression_strategy": "compression"},
    {"compression": "zstd", "compression_block_size": 65536},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3)), 4])
def test_the_bound_of_a_row_holds_for_files(tmp_path: Path, way: dict[str, Any], seed: int) -> None:
    """Lengths in every shape of run: equal, growing, of one size, and few that are long."""
    chance = random.Random(seed)
    shapes = [
        lambda row: seed * 7,
        lambda row: row // 3,
        lambda row: chance.randrange(1 << (seed * 3 + 1)),
        lambda row: 20_000 if row == 777 else chance.randrange(40),
    ]
    for number, shape in enumerate(shapes):
        texts = ["x" * shape(row) for row in range(3000)]
        path = tmp_path / f"{number}.orc"
        orc.write_table(pa.table({"a": texts, "b": [[text] for text in texts]}), path, **way)
        layout, longest = read_layout(path), max(map(len, texts))
        with path.open("rb") as file:
            bound = max(layout.row_bytes(file, stripe, DEFAULT_LIMITS) for stripe in layout.stripes)
        assert 2 * longest <= bound <= 2 * 4 * longest + 5_000
