"""The short way of the decoder takes many messages as it takes each alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, to_batch
from tests.records.test_decode import EVERY_TYPE, table

NULLS = {"nullHandlingEnabled": True}
UPSERT = {"mode": "FULL", "comparisonColumn": "ts", "deleteRecordColumn": "b"}
DECODERS = [
    Decoder(table(EVERY_TYPE, many=("m",))),
    Decoder(table({"i": "INT", "b": "BOOLEAN", "s": "STRING"}, key=("i",), upsert=UPSERT)),
    Decoder(table({"i": "INT", "f": "FLOAT"}, time={"name": "ts", "dataType": "STRING", "format": "1:SECONDS:EPOCH"})),
    Decoder(table({}, time={"name": "ts", "dataType": "TIMESTAMP", "format": "TIMESTAMP"})),
]

# Values as a message spells them: what one parser reads like another, and what they might not.
SPELLINGS = [
    *("null", "true", "false", "-0", "-0.0", "0", "1", "1.0", "1e2", "1E-7", "0.1", "1e999", "-1e999", "1e-999"),
    *("2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "1" + "0" * 25),
    *("18446744073709551615", "18446744073709551616", "3.4028236e38", "1" * 5000, "NaN", "Infinity", "01", "+1"),
    *('"1"', '"1.5"', '"NaN"', '" 7 "', '"true"', '"ff"', '"2021-09-24"', '"\\ud800"', '"\\ud83d\\ude00"', '"é"'),
    *(
        '{"a": 1, "b": "x", "a": null}',
        '["x", 1, true, null]',
        "[[1]]",
        '{"a": 1, "b": 2, "a": 3}',
        '[{"a": 1}]',
        '{"a": [1]}',
    ),
    *("[]", "[1]", "[1.50]", '["x", null]', "{}", '{"a": 1.0}', "[" * 250 + "]" * 250, "1632463351000", "\u00a01"),
]
spelled = st.one_of(
    st.sampled_from(SPELLINGS),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5).map(json.dumps),
)
names = st.sampled_from([*EVERY_TYPE, "ts", "ts", "unknown"])
records = st.lists(st.tuples(names, spelled), max_size=14).map(
    lambda pairs: ("{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}").encode()
)
good = st.tuples(st.integers(-(2**31), 2**31 - 1), st.floats(width=32, allow_nan=False, allow_infinity=False)).map(
    lambda pair: json.dumps({"i": pair[0], "f": pair[1], "b": False, "s": "x", "ts": 5}).encode()
)
odd = st.sampled_from(
    [None, b"", b"[]", b"1", b"null", b"\xff", b'{"ts": 1}{"ts": 2}', b' {"ts": 1}\n', b"\xef\xbb\xbf{}"]
)
messages = st.one_of(records, records, good, good, st.binary(max_size=8), odd)


@pytest.mark.parametrize("decoder", DECODERS, ids=["every type", "upsert", "seconds", "timestamp"])
@given(payloads=st.lists(messages, max_size=8))
def test_many_messages_are_taken_as_each_of_them_is(decoder: Decoder, payloads: list[bytes | None]) -> None:
    batch = decoder.decode_batch(payloads, range(len(payloads)))
    alone = [decoder.decode(payload, place) for place, payload in enumerate(payloads)]
    expected = to_batch(alone, len(batch.columns), range(len(payloads)))
    assert _exactly(batch.columns) == _exactly(expected.columns)
    assert (batch.times_ms, batch.deletes) == (expected.times_ms, expected.deletes)
    assert (batch.reasons, batch.filtered) == (expected.reasons, expected.filtered)
    assert list(batch.origins) == list(expected.origins)


def _exactly(columns: list[list[Any]]) -> list[list[tuple[type, str]]]:
    """Equal numbers of other types, signs of zero and NaN told apart."""
    return [[(type(value), repr(value)) for value in column] for column in columns]


def test_plain_ones_do_not_go_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, asked = DECODERS[0], list[bytes | None]()
    whole = Decoder.decode

    def counted(self: Decoder, payload: bytes | None, now_ms: int | None = None) -> Any:
        asked.append(payload)
        return whole(self, payload, now_ms)

    monkeypatch.setattr(Decoder, "decode", counted)
    plain = [json.dumps({"i": n, "d": 0.5 * n, "s": "é", "b": n % 2 == 0, "ts": n}).encode() for n in range(100)]
    few, wrong = b'{"ts": 7}', b'{"i": "x", "ts": 7}'
    batch = decoder.decode_batch([*plain, few, wrong])
    assert asked == [wrong] and batch.reasons[:-1] == [None] * 101 and len(batch.rows) == 101
    assert isinstance(whole(decoder, few), Decoded)
