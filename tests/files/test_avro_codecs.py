"""Blocks of Avro files and stripes of ORC files that stand for far more than they have bytes are not unpacked."""

from __future__ import annotations

import io
import resource
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from hybrid.files import avro_codecs
from hybrid.files.avrofile import read_avro
from hybrid.files.limits import FileLimits
from hybrid.files.orcfile import stripes
from hybrid.files.records import Shape, Slice
from hybrid.schema.problem import Problem

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "bytes"}]}
CODECS = ("null", "deflate", "bzip2", "xz", "snappy", "zstandard", "lz4")
MIB = 1024 * 1024


def avro(path: Path, codec: str, size: int, rows: int = 1) -> Slice:
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, [{"x": bytes(size)}] * rows, codec=codec, sync_interval=2**30)
    return Slice(path, Shape.AVRO)


@pytest.mark.parametrize("codec", CODECS)
def test_blocks_of_every_codec_are_read_as_before(tmp_path: Path, codec: str) -> None:
    found = list(read_avro(avro(tmp_path / "a", codec, 10_000, 30)))
    assert len(found) == 30 and all(one.values == {"x": bytes(10_000)} for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_block_that_becomes_far_too_large_is_not_unpacked(tmp_path: Path, codec: str) -> None:
    """8: 100 MB of zeros are some kB; the bound is 64 MiB, or 300 times the block."""
    piece = avro(tmp_path / "a", codec, 100 * MIB)
    packed = piece.path.stat().st_size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if packed * 300 >= 100 * MIB:  # snappy and lz4 do not pack so well: that is no bomb
        assert len(list(read_avro(piece))) == 1
        return
    with pytest.raises(Problem, match="unpacks to"):
        list(read_avro(piece))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000, "kB"


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_length_that_a_block_only_claims_is_not_believed(codec: str) -> None:
    for claimed in (2**62, -1, 2**40):
        number = (claimed << 1) ^ (claimed >> 63)
        written = bytearray()
        while number > 0x7F:
            written.append(number & 0x7F | 0x80)
            number >>= 7
        with pytest.raises((ValueError, EOFError)):
            avro_codecs._read_block(avro_codecs._UNPACK[codec], io.BytesIO(bytes([*written, number]) + b"x"))


@pytest.mark.slow
def test_a_stripe_of_very_many_equal_values_is_not_unpacked(tmp_path: Path) -> None:
    """8: runs of equal values take some bytes in ORC."""
    orc.write_table(pa.table({"x": pa.array([7] * 1_000_000)}), tmp_path / "a")
    assert len(stripes(tmp_path / "a")) == 1, "8 MB are no bomb, however well they pack"
    with pytest.raises(Problem, match="unpacks to more than"):
        stripes(tmp_path / "a", FileLimits(ratio_from=MIB))
