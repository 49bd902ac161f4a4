"""The numbers of ORC's LENGTH streams, without decoding each: how long the longest is, and all of them together.

Such a stream holds the lengths of texts or lists as runs (https://orc.apache.org/specification/ORCv1/, "Run Length
Encoding"). A reader allocates what they say before it reads a text, so they bound its memory. The results are never too
small. For long texts and lists, as writers write them, they are at most four times too large.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

_FIXED_BITS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)


class Lengths(NamedTuple):
    """Upper bounds of a stream's numbers."""

    longest: int = 0
    total: int = 0

    def __or__(self, other: Lengths) -> Lengths:
        return Lengths(max(self.longest, other.longest), self.total + other.total)


class _Run(NamedTuple):
    """A run of so many numbers, whose bytes end at `end`."""

    numbers: int
    longest: int
    total: int
    end: int


def bound_lengths(data: bytes, version: int, count: int = sys.maxsize) -> Lengths:
    """The bounds of the first `count` numbers, in version 1 or 2 of the encoding. A cut off run is not counted."""
    read_run = _run_v2 if version == 2 else _run_v1
    lengths, at = Lengths(), 0
    while at < len(data) and count > 0:
        try:
            run = read_run(data, at)
        except IndexError:  # the reader meets the same end, and says so
            break
        lengths |= Lengths(max(run.longest, 0), max(run.total, 0))
        at, count = run.end, count - run.numbers
    return lengths


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of seven bits per byte, lowest first, and where it ends. IndexError when it is cut off."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number has too many digits")


def _run_v1(data: bytes, at: int) -> _Run:
    """Numbers with a fixed difference, or up to 128 single ones."""
    control = data[at]
    if control < 0x80:
        count, step = control + 3, data[at + 1] - ((data[at + 1] & 0x80) << 1)
        first, end = varint(data, at + 2)
        return _steps(count, first, step * (count - 1), end)
    count, end, total, longest = 256 - control, at + 1, 0, 0
    for _ in range(count):
        number, end = varint(data, end)
        total, longest = total + number, max(longest, number)
    return _Run(count, longest, total, end)


def _run_v2(data: bytes, at: int) -> _Run:
    """One number repeated, packed numbers, packed numbers with exceptions, or packed differences."""
    head = data[at]
    encoding, bits = head >> 6, _FIXED_BITS[head >> 1 & 0x1F]
    if encoding == 0:
        end = at + 2 + (head >> 3 & 7)
        count, number = (head & 7) + 3, _number(data, at + 1, end)
        return _Run(count, number, number * count, end)
    count = ((head & 1) << 8 | data[at + 1]) + 1
    if encoding == 1:
        end = at + 2 + _bytes(bits * count)
        return _Run(count, *_packed(data, at + 2, end, bits, count), end)
    if encoding == 2:
        return _patched(data, at, bits, count)
    first, end = varint(data, at + 2)
    step, end = varint(data, end)
    step = step >> 1 ^ -(step & 1)
    rise = step * (count - 1)
    if head >> 1 & 0x1F and count > 2:  # else all differences are the same
        start, end = end, end + _bytes(bits * (count - 2))
        rise = -1 if step < 0 else step + _packed(data, start, end, bits, count - 2)[1]
    return _steps(count, first, rise, end)


def _patched(data: bytes, at: int, bits: int, count: int) -> _Run:
    """Small differences to a base. Some of them get more high bits from a list of patches."""
    base_bytes, patch_bits = (data[at + 2] >> 5) + 1, _FIXED_BITS[data[at + 2] & 0x1F]
    gap_bits, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 0x1F
    start = at + 4 + base_bytes
    base = _number(data, at + 4, start)
    entry_bits = next((width for width in _FIXED_BITS if width >= gap_bits + patch_bits), 64)
    end = start + _bytes(bits * count) + _bytes(entry_bits * patches)
    if end > len(data):
        raise IndexError
    patched = 1 << (bits + patch_bits)
    return _Run(count, base + patched, count * (base + (1 << bits)) + patches * patched, end)


def _steps(count: int, first: int, rise: int, end: int) -> _Run:
    longest = max(first, first + rise)
    return _Run(count, longest, longest * count, end)


def _packed(data: bytes, start: int, end: int, bits: int, count: int) -> tuple[int, int]:
    """The largest of packed numbers, and their sum. For whole bytes the sum is exact, else each may be the largest."""
    if end > len(data):
        raise IndexError
    if bits % 8:
        return (1 << bits) - 1, ((1 << bits) - 1) * count
    largest = total = 0
    for place, shift in enumerate(range(bits - 8, -8, -8), start):
        column = data[place : end : bits // 8]
        total += sum(column) << shift
        if not largest and (top := max(column)):
            largest = ((top + 1) << shift) - 1
    return largest, total


def _number(data: bytes, start: int, end: int) -> int:
    if end > len(data):
        raise IndexError
    return int.from_bytes(data[start:end])


def _bytes(bits: int) -> int:
    return (bits + 7) // 8
