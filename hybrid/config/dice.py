"""A random number generator that is a pure function of a key and a row, so that any row can be generated again.

Bits are mixed as in SplitMix64. Zipf ranks are drawn by rejection, after rand_distr, which Feldera uses.
"""

from __future__ import annotations

import math
from hashlib import sha256

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Dice:
    """The random numbers of one row: `key` says for which value, `row` for which row. Equal dice draw equal numbers."""

    __slots__ = ("_state",)

    def __init__(self, key: int, row: int) -> None:
        self._state = _mixed(key ^ _mixed(row + _GOLDEN))

    def bits(self) -> int:
        """64 random bits."""
        self._state = (self._state + _GOLDEN) & _MASK
        return _mixed(self._state)

    def below(self, count: int) -> int:
        """A whole number from 0 to `count` - 1, uniformly distributed."""
        length = (count - 1).bit_length()
        while True:
            number = self.bits()
            for _ in range((length - 1) // 64):
                number = number << 64 | self.bits()
            number &= (1 << length) - 1
            if number < count:
                return number

    def unit(self) -> float:
        """A number from 0 to below 1, uniformly distributed."""
        return float((self.bits() >> 11) * 2.0**-53)

    def zipf(self, count: int, exponent: float) -> int:
        """A rank from 0 to `count` - 1, by Zipf's law: the weight of rank r is (r + 1) to the power of -`exponent`."""
        total = _area(count, exponent)
        while True:
            at = _inverse(self.unit() * total, exponent)
            rank = math.floor(at + 1)
            likely = rank**-exponent * (at**exponent if rank > 1 else 1.0)
            if self.unit() < likely and rank <= count:
                return rank - 1


def key_of(*parts: object) -> int:
    """The key of dice for the value that `parts` name: a hash of their texts."""
    text = "/".join(map(str, parts))
    return int.from_bytes(sha256(text.encode()).digest()[:8])


def _mixed(number: int) -> int:
    number &= _MASK
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & _MASK
    return number ^ (number >> 31)


def _area(count: int, exponent: float) -> float:
    """The area up to `count` under the curve that is 1 up to x = 1, and x to the power of -exponent beyond."""
    if exponent == 1:
        return 1 + math.log(count)
    return float((count ** (1 - exponent) - exponent) / (1 - exponent))


def _inverse(area: float, exponent: float) -> float:
    if area <= 1:
        return area
    if exponent == 1:
        return math.exp(area - 1)
    return float((area * (1 - exponent) + exponent) ** (1 / (1 - exponent)))
