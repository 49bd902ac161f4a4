"""The layout of an ORC file: its footer, its stripes, and a bound for the memory that a row of a stripe takes.

pyarrow reads a stripe whole, unless the file is scanned as a data set, which has no choice of stripes. So a stripe is
presented as a file of its own: the same bytes, with a footer that names this stripe alone.
Its messages are Protocol Buffers (https://orc.apache.org/specification/ORCv1/, "File Tail").
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hybrid.files.avro_codecs import Unpack, codec_errors, deflate, zstandard
from hybrid.files.limits import FileLimits
from hybrid.files.orc_lengths import Lengths, bound_lengths, varint

Field = tuple[int, int | bytes]

_LENGTH_STREAM = 2
_DICTIONARY = {1: 1, 3: 2}  # the encoding of a column with a dictionary, and the version of its runs
_NESTED, _REPEATED, _TEXTS = {12, 13}, {10, 11}, {7, 8, 16, 17}
_VALUE_BYTES = 16
# Upper bounds of lengths are at most so many times too large.
_INEXACT = 4
_CHUNK_BYTES_MAX = (1 << 23) - 1


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe: where it begins, the bytes of its parts, its rows, and its own entry in the footer."""

    offset: int
    index_bytes: int
    data_bytes: int
    footer_bytes: int
    rows: int
    entry: bytes

    @property
    def end(self) -> int:
        """Where it ends in the file."""
        return self.offset + self.index_bytes + self.data_bytes + self.footer_bytes


@dataclass(frozen=True, slots=True)
class OrcColumn:
    """A type of the schema, with the numbers of the types in it."""

    kind: int
    children: tuple[int, ...]


class OrcLayout:
    """The footer of a file, as pyarrow serializes it."""

    def __init__(self, serialized_tail: bytes) -> None:
        tail = dict(_fields(serialized_tail))
        self._postscript = list(_fields(_bytes_of(tail[1])))
        self._footer = list(_fields(_bytes_of(tail[2])))
        self.stripes = [_stripe(_bytes_of(value)) for number, value in self._footer if number == 3]
        self._columns = [_column(_bytes_of(value)) for number, value in self._footer if number == 4]
        sizes = dict(self._postscript)
        self._compression, self._block_bytes = _int(sizes.get(2, 0)), _int(sizes.get(3, 256 * 1024))

    def alone(self, file: IO[bytes], stripe: Stripe) -> StripeFile:
        """A stripe as a file of its own."""
        footer = [field for field in self._footer if field[0] not in {3, 6, 7}]  # stripes, rows, statistics
        message = _message([*footer, (3, stripe.entry), (6, stripe.rows)])
        if self._compression:
            message = b"".join(_stored(message))
        sizes = [field for field in self._postscript if field[0] not in {1, 5}]  # of the footer and statistics
        postscript = _message(sorted([*sizes, (1, len(message)), (5, 0)], key=lambda field: field[0]))
        return StripeFile(file, stripe.end, message + postscript + bytes([len(postscript)]))

    def row_bytes(self, file: IO[bytes], stripe: Stripe, limits: FileLimits) -> int:
        """A bound of the bytes of a row. Problem when one text, list or dictionary unpacks to far too much."""
        if self._compression and self._compression not in _CODECS:
            return limits.ratio_from
        lengths = self._lengths(file, stripe, limits)
        sizes = [_VALUE_BYTES] * len(self._columns)
        for number, column in reversed(list(enumerate(self._columns))):
            if any(child <= number for child in column.children):
                raise ValueError("a type holds one before it")
            parts = sum(sizes[child] for child in column.children)
            if column.kind in _NESTED:
                sizes[number] = parts
            elif column.kind in _REPEATED:
                sizes[number] = lengths[number].longest * parts + _VALUE_BYTES
            elif column.kind in _TEXTS:
                sizes[number] = lengths[number].longest + 2 * _VALUE_BYTES
        return sizes[0]

    def _lengths(self, file: IO[bytes], stripe: Stripe, limits: FileLimits) -> defaultdict[int, Lengths]:
        """The bounds of the lengths of each column with texts or lists."""
        packed = file.seek(0, io.SEEK_END)
        footer = list(_fields(self._unpack(_part(file, stripe.end - stripe.footer_bytes, stripe.footer_bytes), limits)))
        encodings = [dict(_fields(_bytes_of(value))) for number, value in footer if number == 2]
        lengths, offset = defaultdict[int, Lengths](Lengths), stripe.offset
        for stream in (dict(_fields(_bytes_of(value))) for number, value in footer if number == 1):
            number, size = _int(stream.get(2, 0)), _int(stream.get(3, 0))
            if stream.get(1) == _LENGTH_STREAM and size:
                kind, data = _int(encodings[number].get(1, 0)), self._unpack(_part(file, offset, size), limits)
                column = self._columns[number]
                if version := _DICTIONARY.get(kind):
                    of_stream = bound_lengths(data, version, _int(encodings[number].get(2, 0)))
                    limits.check_ratio(of_stream.total // _INEXACT, packed)
                else:
                    of_stream = bound_lengths(data, 2 if kind else 1)
                value_bytes = 8 * len(column.children) or 1
                limits.check_ratio(of_stream.longest * value_bytes // _INEXACT, packed)
                lengths[number] |= of_stream
            offset += size
        return lengths

    def _unpack(self, data: bytes, limits: FileLimits) -> bytes:
        """The bytes of a stream: chunks with a header of three bytes, or plain bytes in a file without compression."""
        if not self._compression:
            return data
        parts, at, bytes_left = list[bytes](), 0, limits.unpacked_max(len(data))
        while at + 3 <= len(data):
            head = int.from_bytes(data[at : at + 3], "little")
            chunk = data[at + 3 : at + 3 + (head >> 1)]
            part = chunk if head & 1 else _decompress(self._compression, chunk, min(bytes_left, self._block_bytes))
            parts.append(part)
            at, bytes_left = at + 3 + (head >> 1), bytes_left - len(part)
            if bytes_left <= 0:
                raise ValueError(f"a stream of {len(data)} bytes unpacks to too many")
        return b"".join(parts)


class StripeFile(io.RawIOBase):
    """The beginning of a file, up to the end of a stripe, followed by another tail."""

    def __init__(self, file: IO[bytes], end: int, tail: bytes) -> None:
        super().__init__()
        self._file, self._end, self._tail, self._at = file, end, tail, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end + len(self._tail)}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """All `size` bytes from here on, or those up to the end."""
        length = self._end + len(self._tail) - self._at
        stop = self._at + (length if size is None or size < 0 else min(size, length))
        data = _part(self._file, self._at, min(stop, self._end) - self._at) if self._at < self._end else b""
        data += self._tail[max(self._at - self._end, 0) : max(stop - self._end, 0)]
        self._at = max(stop, self._at)
        return data


def read_layout(path: Path) -> OrcLayout:
    """The layout of a file, whose footer pyarrow has found readable."""
    import pyarrow.orc as orc

    file: Any = orc.ORCFile(path)
    return OrcLayout(file.reader.serialized_file_tail())


def _part(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _decompress(compression: int, chunk: bytes, bytes_max: int) -> bytes:
    """A chunk, by the number of its CompressionKind. ValueError when it is damaged or unpacks to more than it may."""
    try:
        unpacked = _CODECS[compression](chunk, bytes_max)
    except codec_errors() as error:
        raise ValueError(str(error)) from error
    if len(unpacked) > bytes_max:
        raise ValueError(f"a chunk of {len(chunk)} bytes unpacks to more than {bytes_max}")
    return unpacked


def _snappy(chunk: bytes, bytes_max: int) -> bytes:
    """Snappy's data begins with the unpacked length."""
    from cramjam import snappy

    if varint(chunk, 0)[0] > bytes_max:
        raise ValueError(f"a chunk of {len(chunk)} bytes unpacks to more than {bytes_max}")
    return bytes(snappy.decompress_raw(chunk))


def _lz4(chunk: bytes, bytes_max: int) -> bytes:
    import lz4.block  # type: ignore[import-untyped]

    return bytes(lz4.block.decompress(chunk, uncompressed_size=bytes_max))


# Without LZO, for which there is no codec here.
_CODECS: dict[int, Unpack] = {1: deflate, 2: _snappy, 4: _lz4, 5: zstandard}


def _stripe(entry: bytes) -> Stripe:
    fields = dict(_fields(entry))
    offset, index, data, footer, rows = (_int(fields.get(number, 0)) for number in range(1, 6))
    return Stripe(offset, index, data, footer, rows, entry)


def _column(message: bytes) -> OrcColumn:
    kind, children = 0, list[int]()
    for number, value in _fields(message):
        if number == 1:
            kind = _int(value)
        elif number == 2:
            children.extend([value] if isinstance(value, int) else _varints(value))
    return OrcColumn(kind, tuple(children))


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        number, at = varint(data, at)
        yield number


def _fields(message: bytes) -> Iterator[Field]:
    """The fields of a message: their numbers, and values that are numbers or bytes."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        value, at = varint(message, at)
        if tag & 7 == 0:
            yield tag >> 3, value
        elif tag & 7 == 2 and at + value <= len(message):
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            raise ValueError("a field of the footer is cut off or of another kind")


def _message(fields: Iterable[Field]) -> bytes:
    parts = list[bytes]()
    for number, value in fields:
        is_bytes = isinstance(value, bytes)
        parts.append(_varint(number << 3 | (2 if is_bytes else 0)))
        parts.append(_varint(len(value)) + value if isinstance(value, bytes) else _varint(value))
    return b"".join(parts)


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def _stored(message: bytes) -> Iterator[bytes]:
    """Chunks that are not compressed, of a file that is."""
    for start in range(0, len(message), _CHUNK_BYTES_MAX):
        chunk = message[start : start + _CHUNK_BYTES_MAX]
        yield (len(chunk) << 1 | 1).to_bytes(3, "little") + chunk


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a field of the footer is no number")
    return value


def _bytes_of(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a field of the footer is a number")
    return value
