"""Pinot's partition functions: which partition a value belongs to. Pure.

After org.apache.pinot.segment.spi.partition (MurmurPartitionFunction, ModuloPartitionFunction,
HashCodePartitionFunction, ByteArrayPartitionFunction). Murmur is Kafka's murmur2, so a column that partitions a topic
partitions segments alike. The functions take a value as text and compute in 32 bits, as Java does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hybrid.config.table_config import PartitionFunction

_BITS, _SIGN = 0xFFFFFFFF, 0x80000000
_SEED, _M, _R = 0x9747B28C, 0x5BD1E995, 24


def partition_of(function: PartitionFunction, value: str, count: int) -> int:
    """The partition of a value, from 0 on; ValueError when MODULO gets a value that is no whole number."""
    return _FUNCTIONS[function](value) % count


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key as 32 unsigned bits."""
    digest = _SEED ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _M & _BITS
        part = (part ^ (part >> _R)) * _M & _BITS
        digest = (digest * _M & _BITS) ^ part
    if whole < len(data):
        digest = (digest ^ int.from_bytes(data[whole:], "little")) * _M & _BITS
    digest = (digest ^ (digest >> 13)) * _M & _BITS
    return digest ^ (digest >> 15)


def _hash(parts: Iterable[int], first: int) -> int:
    """The absolute value of Java's hashCode over `parts`; 0 for the least integer, which has none in 32 bits."""
    digest = first
    for part in parts:
        digest = (31 * digest + part) & _BITS
    return digest if digest < _SIGN else (_BITS + 1 - digest) % _SIGN


def _of_text(value: str) -> int:
    data = value.encode("utf-16-be", "surrogatepass")
    return _hash((int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)), 0)


def _of_bytes(value: str) -> int:
    # Java's bytes are signed.
    return _hash(((byte - 256 if byte > 127 else byte) for byte in value.encode("utf-8", "replace")), 1)


_FUNCTIONS: Mapping[PartitionFunction, Callable[[str], int]] = {
    PartitionFunction.MURMUR: lambda value: murmur2(value.encode("utf-8", "replace")) & ~_SIGN,
    PartitionFunction.MODULO: int,
    PartitionFunction.HASH_CODE: _of_text,
    PartitionFunction.BYTE_ARRAY: _of_bytes,
}
