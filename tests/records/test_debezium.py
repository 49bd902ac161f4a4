"""Envelopes of Debezium: rows and deletes, on tables with a key and without, in the spelling of each database."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hybrid.config.ddl import parse_ddl
from hybrid.config.table_json import parse_table
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Filtered, Rejected

DDL = """CREATE TABLE t (id BIGINT NOT NULL{key}, v INTEGER, day DATE, at TIME, ts TIMESTAMP, raw VARBINARY,
  price DECIMAL(10,2)) WITH ({more} 'connectors' = '[{{"transport": {{"name": "kafka_input", "config":
  {{"topic": "t", "bootstrap.servers": "b:1"}}}}, "format": {{"name": "json", "config": {config}}}}}]');"""


def decoder(key: bool = True, more: str = "", **config: Any) -> Decoder:
    doc = json.dumps({"update_format": "debezium", **config})
    (found,) = parse_ddl(DDL.format(key=" PRIMARY KEY" if key else "", more=more, config=doc), "t.sql")
    return Decoder(parse_table(found.schema_doc, "t.sql", [(one, "t.sql") for one in found.configs]))


def envelope(op: str, before: object = None, after: object = None, **more: object) -> dict[str, object]:
    return {"op": op, "before": before, "after": after, "source": {"db": "d"}, "ts_ms": 5, **more}


def said(of: Decoder, message: object) -> list[Any]:
    """(id, v) of each step, with a minus for a delete; or the reason."""
    found = of.decode_all(message if message is None else json.dumps(message).encode(), 5)
    return [_said(one) for one in found]


def _said(one: object) -> Any:
    if isinstance(one, Decoded):
        return ("-", *one.values[:2]) if one.is_delete else one.values[:2]
    return one.reason if isinstance(one, Rejected) else one


OLD, NEW = {"id": 1, "v": 2}, {"id": 1, "v": 3}


def test_a_table_with_a_key() -> None:
    keyed = decoder()
    assert said(keyed, envelope("c", after=OLD)) == said(keyed, envelope("r", after=OLD)) == [(1, 2)]
    assert said(keyed, envelope("u", OLD, NEW)) == said(keyed, envelope("u", None, NEW)) == [(1, 3)]
    assert said(keyed, envelope("d", {"id": 1, "v": None})) == [("-", 1, None)]
    assert said(keyed, envelope("u", OLD, {"id": 9, "v": 3})) == [("-", 1, 2), (9, 3)], "another key"


def test_a_table_without_a_key() -> None:
    plain = decoder(key=False)
    assert said(plain, envelope("c", after=OLD)) == [(1, 2)]
    assert said(plain, envelope("u", OLD, NEW)) == [("-", 1, 2), (1, 3)]
    assert said(plain, envelope("d", OLD)) == [("-", 1, 2)]
    for op in ("u", "d"):
        (reason,) = said(plain, envelope(op, None, NEW))
        assert f"op '{op}' has no row 'before'. Without a PRIMARY KEY it takes the whole row" in reason


def test_with_its_schema_beside_it_and_what_follows_a_delete() -> None:
    keyed = decoder()
    assert said(keyed, {"schema": {"type": "struct"}, "payload": envelope("c", after=OLD)}) == [(1, 2)]
    assert said(keyed, None) == said(keyed, {"schema": None, "payload": None}) == [Filtered()]


def test_several_envelopes_in_a_message() -> None:
    message = [envelope("c", after=OLD), envelope("u", OLD, NEW), 5, envelope("c", after={"id": 2})]
    assert said(decoder(array=True), message) == ["Record 3 of 4: 5 is no record.", (2, None)] or said(
        decoder(array=True), message
    ) == [(1, 3), "Record 3 of 4: 5 is no record.", (2, None)]
    lines = "\n".join(json.dumps(one) for one in message if one != 5).encode()
    assert [_said(one) for one in decoder(key=False).decode_all(lines)] == [
        (1, 2), ("-", 1, 2), (1, 3), (2, None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (envelope("t"), "it must be an envelope of Debezium"),
        (OLD, "it must be an envelope of Debezium"),
        ({"payload": 5}, "it must be an envelope of Debezium"),
        ([1], "The message is not one JSON object but [1]"),
        (envelope("c"), "The envelope with op 'c' has no row 'after'"),
        (envelope("d"), "The envelope with op 'd' has no row 'before'"),
        (envelope("u", OLD, {"id": 1, "v": "x"}), "Column 'v'"),
        (envelope("u", OLD, {"v": 1}), "Column 'id' is missing or null"),
    ],
)
@pytest.mark.parametrize("key", [True, False])
def test_what_is_none_is_one_rejected_row(message: object, words: str, key: bool) -> None:
    (reason,) = said(decoder(key), message)
    assert words in reason, "an update whose row after is none takes nothing away"


def test_an_older_update_does_not_hide_the_row() -> None:
    compared = decoder(more="'hybrid.comparisonColumn' = 'v',")
    assert said(compared, envelope("u", NEW, OLD)) == [(1, 2)]
    assert said(compared, envelope("u", {"id": 1}, OLD)) == [(1, 2)], "what the row was need not be known"


def test_a_delete_without_a_version_would_be_below_every_row_and_is_rejected() -> None:
    compared = decoder(more="'hybrid.comparisonColumn' = 'v',")
    assert said(compared, envelope("d", OLD)) == [("-", 1, 2)]
    for message in (
        envelope("d", {"id": 1, "v": None}),
        envelope("d", {"id": 1}),
        envelope("u", {"id": 1}, {"id": 9, "v": 3}),
    ):
        assert said(compared, message) == ["Column 'v' is missing or null: it decides which row of a key is newest."]


@pytest.mark.parametrize(
    ("flavor", "at"), [("debezium_mysql", 3_723_000_500), ("debezium_postgres", 3_723_001), ("default", "01:02:03")]
)
def test_types_as_each_database_writes_them(flavor: str, at: object) -> None:
    plain = flavor == "default"
    row = {
        "id": 1, "day": "2024-02-29" if plain else 19782, "at": at, "ts": 1_709_164_800_000,
        "raw": "0102" if plain else "AQI=", "price": "12.50",
    }  # fmt: skip
    (found,) = decoder(json_flavor=flavor).decode_all(json.dumps(envelope("c", after=row)).encode(), 5)
    assert isinstance(found, Decoded)
    _, _, day, time, ts, raw, price = found.values
    assert (day, raw, str(price)) == ("2024-02-29", b"\x01\x02", "12.500000000000000000")
    assert time in ("01:02:03", "01:02:03.000500", "01:02:03.001000")
    assert ts == datetime(2024, 2, 29, tzinfo=UTC)


def test_values_that_no_database_writes() -> None:
    of = decoder(json_flavor="debezium_mysql")
    for bad in ({"at": 10**12}, {"at": -1}, {"day": 10**9}, {"raw": "?"}):
        (reason,) = said(of, envelope("c", after={"id": 1, **bad}))
        assert f"Column '{next(iter(bad))}'" in reason
