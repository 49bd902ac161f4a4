"""Messages of a connector: changes, several records in one message, names whatever their case."""

import json
from typing import Any

import pytest

from hybrid.config.ddl import parse_ddl
from hybrid.config.table_config import ARRIVED, TableSpec, UpsertConfig
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Rejected

DDL = """CREATE TABLE t (id BIGINT NOT NULL{key}, v INTEGER DEFAULT 7, at TIMESTAMP{time}) WITH ({more}
  'connectors' = '[{{"transport": {{"name": "kafka_input", "config": {{"topic": "t", "bootstrap.servers": "b:1"}}}},
  "format": {{"name": "json", "config": {config}}}}}]');"""


def decoder(*, key: bool = False, time: bool = False, more: str = "", **config: Any) -> Decoder:
    return Decoder(spec_of(key=key, time=time, more=more, **config))


def spec_of(*, key: bool = False, time: bool = False, more: str = "", dedup: bool = False, **config: Any) -> TableSpec:
    lateness = " NOT NULL LATENESS INTERVAL 1 HOUR" if time else ""
    text = DDL.format(key=" PRIMARY KEY" if key else "", time=lateness, more=more, config=json.dumps(config))
    (found,) = parse_ddl(text, "t.sql")
    for one in found.configs if dedup else ():
        one.pop("upsertConfig", None)
        one["dedupConfig"] = {"dedupEnabled": True}
    return parse_table(found.schema_doc, "t.sql", [(one, "t.sql") for one in found.configs])


def outcome(one: Any) -> Any:
    """(id, v), with a minus for a delete; or the reason."""
    if isinstance(one, Rejected):
        return one.reason
    assert isinstance(one, Decoded)
    return ("-", one.values[0]) if one.is_delete else (one.values[0], one.values[1])


def outcomes(of: Decoder, message: bytes) -> list[Any]:
    return [outcome(one) for one in of.decode_all(message, 5)]


def test_one_change() -> None:
    plain, keyed = decoder(), decoder(key=True, time=True)
    assert outcomes(plain, b'{"insert": {"ID": 1, "V": 2}}') == [(1, 2)]
    assert outcomes(plain, b'{"insert": {"id": 1}}') == [(1, 7)] and outcomes(
        plain, b'{"insert": {"id": 1, "v": null}}'
    ) == [(1, None)]
    assert outcomes(plain, b'{"delete": {"id": 1, "v": 2}}') == [("-", 1)]
    (gone,) = keyed.decode_all(b'{"delete": {"Id": 3}}', 5)
    assert gone == Decoded((3, None, None), 5, True) or (gone.values[0] == 3 and gone.time_ms == 5)
    assert "part of the primary key" in outcomes(keyed, b'{"delete": {"v": 3}}')[0]


def test_a_delete_has_a_version_where_a_column_decides() -> None:
    """Without one it would be below every row of its key, which a default or the message's time would only hide."""
    compared = decoder(key=True, more="'hybrid.comparisonColumn' = 'v',")
    assert outcomes(compared, b'{"delete": {"id": 1, "v": 3}}') == [("-", 1)]
    timed = decoder(key=True, time=True, more="'hybrid.comparisonColumn' = 'at',")
    assert outcomes(timed, b'{"delete": {"id": 1, "at": "2024-03-01 00:00:00"}}') == [("-", 1)]
    for of, name in ((compared, "v"), (timed, "at")):
        reason = f"Column '{name}' is missing or null: it decides which row of a key is newest."
        for message in (b'{"delete": {"id": 1}}', f'{{"delete": {{"id": 1, "{name}": null}}}}'.encode()):
            assert outcomes(of, message) == [reason]


@pytest.mark.parametrize(
    "message",
    [b'{"upsert": {"id": 1}}', b'{"id": 1}', b"{}", b'{"insert": 5}', b'{"insert": {"id": 1}, "delete": {"id": 1}}'],
)
def test_what_is_no_change(message: bytes) -> None:
    (said,) = outcomes(decoder(), message)
    assert said.endswith('it must be one of {"insert": {...}}, {"update": {...}} and {"delete": {...}}.')


def test_updates_of_tables_that_do_not_fold() -> None:
    message = b'{"update": {"id": 1, "v": 2}}'
    assert outcomes(decoder(), message) == [
        'An "update" needs a primary key that says which row it means; send a delete and an insert.'
    ]
    assert outcomes(decoder(key=True), message) == [
        'An "update" of some columns needs upsertConfig mode PARTIAL; send an "insert" of the whole row.'
    ]


def test_several_records_in_lines_and_in_an_array() -> None:
    lines = b'{"insert": {"id": 1}}\n\n{"delete": {"id": 2, "v": 7}}\n{"insert": {"id": "x"}}\n'
    said = outcomes(decoder(), lines)
    assert said[:2] == [(1, 7), ("-", 2)] and said[2].startswith("Record 3 of 3: Column 'id'")
    spread = json.dumps({"insert": {"id": 1}}, indent=1).encode()
    assert outcomes(decoder(), spread) == [(1, 7)], "one object over several lines"
    array = decoder(array=True, update_format="raw")
    assert outcomes(array, b'[{"id": 1}, {"id": 2, "v": 3}]') == [(1, 7), (2, 3)] and outcomes(array, b"[]") == []
    assert outcomes(array, b'{"id": 1}') == ['The message is not an array of records but {"id":1}.']
    assert outcomes(array, b'[{"id": 1}, 5]') == [(1, 7), "Record 2 of 2: 5 is no record."]
    assert "not UTF-8" in outcomes(array, b"\xff")[0] and "tombstone" in outcome(array.decode_all(None)[0])


def test_of_one_key_the_last_of_a_message_stays() -> None:
    message = (
        b'[{"insert": {"id": 1, "v": 5}}, {"insert": {"id": 2}}, {"delete": {"id": 1}}, {"insert": {"id": 1, "v": 4}}]'
    )
    assert outcomes(decoder(key=True, array=True), message) == [(2, 7), (1, 4)]
    assert outcomes(decoder(array=True), message)[0] == (1, 5), "without a key all of them count"
    compared = decoder(key=True, array=True, more="'hybrid.comparisonColumn' = 'v',")
    assert (1, 5) in outcomes(compared, message.replace(b'{"delete": {"id": 1}}, ', b""))


def test_on_a_dedup_table_the_first_of_a_message_stays() -> None:
    spec = spec_of(key=True, dedup=True, array=True, update_format="raw")
    assert spec.upsert == UpsertConfig(ARRIVED, first_wins=True)
    message = b'[{"id": 1, "v": 5}, {"id": "x"}, {"id": 2}, {"id": 1, "v": 4}, {"id": 2, "v": 9}]'
    said = outcomes(Decoder(spec), message)
    assert (said[0], said[2]) == ((1, 5), (2, 7)) and len(said) == 3 and said[1].startswith("Record 2 of 5")
    with pytest.raises(SpecError, match="delete and update rows, and on a dedup table"):
        spec_of(key=True, dedup=True, array=True)


def test_batches_know_the_message_of_each_record() -> None:
    batch = decoder(array=True, update_format="raw").decode_batch(
        [b"[]", b'[{"id": 1}, {"id": 2}]', b"5", b'[{"id": 3}]']
    )
    assert list(batch.origins) == [1, 1, 2, 3] and batch.columns[0] == [1, 2, None, 3] and batch.rows == [0, 1, 3]
