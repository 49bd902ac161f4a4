"""Partition functions, against values of Java, of Kafka's producer and of Pinot's tests."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as of_kafka

from hybrid.config.table_config import PartitionFunction
from hybrid.table.partitions import murmur2, partition_of

COUNT = 2**31
# String.hashCode and Arrays.hashCode(getBytes(UTF_8)), made positive as Kafka does; from Java 17.
JAVA = {
    "": (0, 1),
    "a": (97, 128),
    "hello": (99162322, 127791473),
    "é€": (15587, 30330267),
    "😀x": (54959989, 10859296),
    "polygenelubricants": (0, 1303011777),  # whose hashCode is the one that has no positive
    "-42": (44907, 74698),
    "9223372036854775807": (1773151198, 2112991873),
}


@pytest.mark.parametrize("text", JAVA)
def test_hashes_are_those_of_java(text):
    functions = PartitionFunction.HASH_CODE, PartitionFunction.BYTE_ARRAY
    assert tuple(partition_of(one, text, COUNT) for one in functions) == JAVA[text]
    assert partition_of(PartitionFunction.HASH_CODE, text, 7) == JAVA[text][0] % 7


def test_murmur_is_kafkas():
    known = {b"": 681, b"a": 524, b"ab": 434, b"abc": 107, b"123456789": 566, b"\x00 ": 742}
    assert {data: (murmur2(data) & 0x7FFFFFFF) % 1000 for data in known} == known
    assert partition_of(PartitionFunction.MURMUR, "abc", 1000) == 107
    for length in range(20):
        data = os.urandom(length)
        assert murmur2(data) == of_kafka(data) & 0xFFFFFFFF


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 100))
def test_modulo_is_never_negative(value, count):
    assert partition_of(PartitionFunction.MODULO, str(value), count) == value % count


@given(st.sampled_from([one for one in PartitionFunction if one is not PartitionFunction.MODULO]), st.text())
def test_every_text_has_a_partition(function, text):
    assert 0 <= partition_of(function, text, 5) < 5
