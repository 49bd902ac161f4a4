"""Pinot's partition functions: which partition a value belongs to. Pure.

After org.apache.pinot.segment.spi.partition (MurmurPartitionFunction, ModuloPartitionFunction,
HashCodePartitionFunction, ByteArrayPartitionFunction): Murmur is Kafka's murmur2, so that a column by which a producer
divides a topic divides segments alike. They take a value as text, and count as Java does, in 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hybrid.config.table_config import PartitionFunction

_BITS, _SIGN = 0xFFFFFFFF, 0x80000000
_SEED, _M, _R = 0x9747B28C, 0x5BD1E995, 24


def partition_of(function: PartitionFunction, value: str, count: int) -> int:
    """The partition of a value, from 0 on; ValueError when MODULO is asked of no whole number."""
    return _FUNCTIONS[function](value) % count


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, 32 bits without a sign."""
    found = _SEED ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _M & _BITS
        part = (part ^ (part >> _R)) * _M & _BITS
        found = (found * _M & _BITS) ^ part
    if whole < len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * _M & _BITS
    found = (found ^ (found >> 13)) * _M & _BITS
    return found ^ (found >> 15)


def _hash(parts: Iterable[int], first: int) -> int:
    """Java's hashCode of what is made of `parts`, without its sign; 0 where there is no such number."""
    found = first
    for part in parts:
        found = (31 * found + part) & _BITS
    return found if found < _SIGN else (_BITS + 1 - found) % _SIGN


def _of_text(value: str) -> int:
    data = value.encode("utf-16-be", "surrogatepass")
    return _hash((int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)), 0)


def _of_bytes(value: str) -> int:
    # A byte of Java has a sign.
    return _hash(((byte - 256 if byte > 127 else byte) for byte in value.encode("utf-8", "replace")), 1)


_FUNCTIONS: Mapping[PartitionFunction, Callable[[str], int]] = {
    PartitionFunction.MURMUR: lambda value: murmur2(value.encode("utf-8", "replace")) & ~_SIGN,
    PartitionFunction.MODULO: int,
    PartitionFunction.HASH_CODE: _of_text,
    PartitionFunction.BYTE_ARRAY: _of_bytes,
}
