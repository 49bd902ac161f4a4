"""Bounded codecs for Avro's blocks: a small compressed block may unpack to very many bytes.

fastavro unpacks a block whole, however large it becomes. Its table of codecs is a plain dictionary. The codecs that
this module puts there unpack no more than the limits allow.
"""

from __future__ import annotations

import bz2
import io
import lzma
import struct
import sys
import zlib
from collections.abc import Callable
from functools import cache, partial
from typing import IO, Protocol

from hybrid.files.limits import DEFAULT_LIMITS


class _Decompressor(Protocol):
    """One stream of bz2, lzma or Zstandard."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


Unpack = Callable[[bytes, int], bytes]


def bound_codecs() -> None:
    """Make fastavro unpack blocks within limits from now on, in this process."""
    from fastavro._read import BLOCK_READERS

    for codec, unpack in _UNPACK.items():
        BLOCK_READERS[codec] = partial(_read_block, unpack)


def _read_block(unpack: Unpack, file: IO[bytes]) -> io.BytesIO:
    """A block in fastavro's format: its length, then its bytes. ValueError when it unpacks to far too much."""
    length = _read_long(file)
    if not 0 <= length <= DEFAULT_LIMITS.text_bytes_max:
        raise ValueError(f"a block of {length} bytes")
    packed = file.read(length)
    if len(packed) < length:
        raise EOFError(f"a block of {length} bytes ends after {len(packed)}")
    bytes_max = DEFAULT_LIMITS.unpacked_max(length)
    unpacked = unpack(packed, bytes_max)
    if len(unpacked) > bytes_max:
        raise ValueError(f"a block of {length} bytes unpacks to more than {bytes_max}, which is not read")
    return io.BytesIO(unpacked)


def _read_long(file: IO[bytes]) -> int:
    """A number in Avro's encoding: seven bits per byte, the sign in the lowest bit."""
    number = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            raise EOFError("a block's length is cut off")
        number |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return (number >> 1) ^ -(number & 1)
        if shift > 63:
            raise ValueError("a block's length has too many digits")


def deflate(packed: bytes, bytes_max: int) -> bytes:
    """Decompress a stream of deflate without a header, up to one byte more than `bytes_max`."""
    return zlib.decompressobj(-15).decompress(packed, bytes_max + 1)


def _streams(make: Callable[[], _Decompressor], packed: bytes, bytes_max: int) -> bytes:
    """Decompress one or more concatenated streams."""
    parts, bytes_left = list[bytes](), bytes_max + 1
    while packed and bytes_left > 0:
        stream = make()
        part = stream.decompress(packed, bytes_left)
        bytes_left -= len(part)
        parts.append(part)
        if not stream.eof:
            if bytes_left > 0:
                raise EOFError("a compressed block is cut off")
            break
        packed = stream.unused_data
    return b"".join(parts)


def zstandard(packed: bytes, bytes_max: int) -> bytes:
    """Decompress frames of Zstandard, up to one byte more than `bytes_max`."""
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor
    return _streams(ZstdDecompressor, packed, bytes_max)


def _snappy(packed: bytes, bytes_max: int) -> bytes:
    """Snappy's data begins with the unpacked length; Avro adds a checksum of four bytes."""
    from cramjam import snappy

    length = shift = 0
    for byte in packed[:10]:
        length |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    if length > bytes_max:
        raise ValueError(f"a block of {len(packed)} bytes unpacks to {length}, which is not read")
    return bytes(snappy.decompress_raw(packed[:-4]))


def _lz4(packed: bytes, bytes_max: int) -> bytes:
    """Avro's lz4 data begins with the unpacked length."""
    import lz4.block  # type: ignore[import-untyped]

    (length,) = struct.unpack_from("<I", packed)
    if length > bytes_max:
        raise ValueError(f"a block of {len(packed)} bytes unpacks to {length}, which is not read")
    return bytes(lz4.block.decompress(packed))


@cache
def codec_errors() -> tuple[type[Exception], ...]:
    """The exceptions of the codecs for damaged bytes."""
    from cramjam import DecompressionError
    from lz4.block import LZ4BlockError

    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError
    else:
        from backports.zstd import ZstdError
    return zlib.error, lzma.LZMAError, DecompressionError, LZ4BlockError, ZstdError, OSError, EOFError


_UNPACK: dict[str, Unpack] = {
    "deflate": deflate,
    "bzip2": partial(_streams, bz2.BZ2Decompressor),
    "xz": partial(_streams, lzma.LZMADecompressor),
    "zstandard": zstandard,
    "snappy": _snappy,
    "lz4": _lz4,
}
