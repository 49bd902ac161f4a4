"""Random numbers that are a function of a key and a place, so that any row can be made alone and again.

The mixing is that of SplitMix64, the Zipf distribution is drawn by rejection (after rand_distr, which Feldera uses).
"""

from __future__ import annotations

import math
from hashlib import sha256

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Dice:
    """The numbers of one place: `key` says what is drawn, `row` for which row. Equal dice throw equal numbers."""

    __slots__ = ("_state",)

    def __init__(self, key: int, row: int) -> None:
        self._state = _mixed(key ^ _mixed(row + _GOLDEN))

    def bits(self) -> int:
        """64 random bits."""
        self._state = (self._state + _GOLDEN) & _MASK
        return _mixed(self._state)

    def below(self, count: int) -> int:
        """A whole number from 0 to `count` - 1, each as likely."""
        length = (count - 1).bit_length()
        while True:
            number = self.bits()
            for _ in range((length - 1) // 64):
                number = number << 64 | self.bits()
            number &= (1 << length) - 1
            if number < count:
                return number

    def unit(self) -> float:
        """A number from 0 on, less than 1."""
        return float((self.bits() >> 11) * 2.0**-53)

    def zipf(self, count: int, exponent: float) -> int:
        """A rank from 0 to `count` - 1: rank r is as likely as (r + 1) to the power of -`exponent`."""
        total = _area(count, exponent)
        while True:
            at = _inverse(self.unit() * total, exponent)
            rank = math.floor(at + 1)
            likely = rank**-exponent * (at**exponent if rank > 1 else 1.0)
            if self.unit() < likely and rank <= count:
                return rank - 1


def key_of(*parts: object) -> int:
    """The key of dice for what `parts` name, by their texts."""
    text = "/".join(map(str, parts))
    return int.from_bytes(sha256(text.encode()).digest()[:8])


def _mixed(number: int) -> int:
    number &= _MASK
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & _MASK
    return number ^ (number >> 31)


def _area(count: int, exponent: float) -> float:
    """Under the curve that is 1 up to 1 and x to the power of -exponent beyond, up to `count`."""
    if exponent == 1:
        return 1 + math.log(count)
    return float((count ** (1 - exponent) - exponent) / (1 - exponent))


def _inverse(area: float, exponent: float) -> float:
    if area <= 1:
        return area
    if exponent == 1:
        return math.exp(area - 1)
    return float((area * (1 - exponent) + exponent) ** (1 / (1 - exponent)))
