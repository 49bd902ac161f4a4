"""What becomes of a rejected message when it is decoded once more: it comes as a whole, or it stays."""

import json
from dataclasses import replace
from typing import Any

import pytest

from hybrid.config.table_config import Half, Records, TableSpec
from hybrid.lake.rejected import KIND, LOW, OTHERS_ARE_THERE, WHY, _as_batch, _rows
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Rejected
from hybrid.schema.ingestion import IngestionConfig
from hybrid.schema.schema import Schema
from hybrid.schema.types import DataType
from tests.cases.tables import table_spec


def spec(records: Records = Records.ONE, where: str | None = None) -> TableSpec:
    found = table_spec("b:1", "topic")
    assert found.stream is not None
    ingestion = {Half.REALTIME: IngestionConfig((), where, False)} if where else {}
    return replace(found, stream=replace(found.stream, records=records), ingestion=ingestion)


def what(made: TableSpec, raw: bytes | None, *reasons: str) -> list[dict[str, Any]]:
    """The rows that a message becomes."""
    place = {"connector": "kafka", "topic": "topic", "epoch": 0, "partition": 2, "offset": 14, "timestamp": 5}
    message = {**{f"_hy_{name}": value for name, value in place.items()}, "_hy_raw": raw, "reasons": list(reasons)}
    found: list[dict[str, Any]] = _as_batch(made, list(_rows(made, Decoder(made), message))).to_pylist()
    assert all((row["_hy_partition"], row["_hy_offset"], row["_hy_timestamp"]) == (2, 14, 5) for row in found)
    return found


def row(number: object, **more: object) -> dict[str, object]:
    return {"id": number, "key": "k", "ts": 7, **more}


def lines(*rows: object) -> bytes:
    return b"\n".join(json.dumps(one).encode() for one in rows)


def test_a_message_that_converts_now() -> None:
    rejected, come = what(spec(), lines(row(1)), "a reason of then")
    assert (rejected["_hy_op"], rejected["_hy_reason"], rejected["_hy_connector"]) == (
        "replayed", "a reason of then", "kafka",
    )  # fmt: skip
    assert rejected["_hy_raw"] == lines(row(1)) and rejected[KIND] == "replayed" and rejected["id"] is None
    assert (come["_hy_op"], come["_hy_time"], come["id"], come[LOW]) == ("row", 7, 1, 7)
    assert come["_hy_connector"] == "replay/kafka" and come["_hy_raw"] is come["_hy_reason"] is None


def test_a_message_that_still_does_not() -> None:
    (rejected,) = what(spec(), lines(row("x")), "a reason of then")
    assert (rejected["_hy_op"], rejected[KIND]) == ("row", "row")
    assert rejected["_hy_reason"] == rejected[WHY] and rejected[WHY].startswith("Column 'id': \"x\" does not fit.")


def test_a_message_that_the_filter_drops_now() -> None:
    (rejected,) = what(spec(where="id < 5"), lines(row(1)), "a reason of then")
    assert (rejected["_hy_op"], rejected["_hy_reason"], rejected[WHY]) == ("filtered", "a reason of then", None)


@pytest.mark.parametrize("reasons", [["Record 2 of 3: no"], ["Record 1 of 3: no", "Record 3 of 3: no"]])
def test_a_message_of_which_some_records_came_stays(reasons: list[str]) -> None:
    found = what(spec(Records.LINES), lines(row(1), row(2), row(3)), *reasons)
    assert [(one["_hy_op"], one["_hy_reason"], one[WHY]) for one in found] == [
        ("row", reason, OTHERS_ARE_THERE) for reason in reasons
    ]


def test_a_message_of_which_none_came_comes_as_a_whole_or_not_at_all() -> None:
    reasons = ["Record 1 of 2: no", "Record 2 of 2: no"]
    found = what(spec(Records.LINES), lines(row(1), row(2)), *reasons)
    assert [one[KIND] for one in found] == ["replayed", "replayed", "brought", "brought"]
    found = what(spec(Records.LINES), lines(row(1), row("x")), *reasons)
    assert [(one["_hy_op"], one["_hy_reason"]) for one in found] == [("row", reason) for reason in reasons]
    assert found[0][WHY].startswith("Record 2 of 2: Column 'id'")
    found = what(spec(Records.LINES), lines(row("x"), row("y")), *reasons)
    assert [one["_hy_reason"][:34] for one in found] == [
        "Record 1 of 2: Column 'id': \"x\" do",
        "Record 2 of 2: Column 'id': \"y\" do",
    ]


def test_records_that_the_filter_dropped_do_not_count() -> None:
    then, now = spec(Records.LINES, where="key = 'test'"), spec(Records.LINES)
    dropped, bad, worse = row(9, key="test"), row("x"), row("y")
    reasons = [outcome.reason for outcome in Decoder(then).decode_all(lines(dropped, bad)) if type(outcome) is Rejected]
    assert [reason[:12] for reason in reasons] == ["Column 'id':"]
    lenient = replace(now, schema=text_ids(now))
    assert [one[KIND] for one in what(lenient, lines(dropped, bad), *reasons)] == ["replayed", "brought", "brought"]
    lenient = replace(then, schema=lenient.schema)
    assert [one[KIND] for one in what(lenient, lines(dropped, bad), *reasons)] == ["replayed", "brought"]

    found = what(then, lines(dropped, bad, worse), "Record 1 of 2: no", "Record 2 of 2: no")
    assert [one["_hy_reason"][:27] for one in found] == ["Record 1 of 2: Column 'id':", "Record 2 of 2: Column 'id':"]
    found = what(then, lines(dropped, bad), "Record 2 of 2: of an earlier build")
    assert [(one["_hy_op"], one[WHY]) for one in found] == [("row", OTHERS_ARE_THERE)]


def text_ids(made: TableSpec) -> Schema:
    ids = replace(made.schema.fields[0], data_type=DataType.STRING)
    return replace(made.schema, fields=(ids, *made.schema.fields[1:]))


def test_a_message_that_was_one_record_and_now_is_several() -> None:
    then = "The message is not one JSON object: extra data."
    found = what(spec(Records.LINES), lines(row(1), row(2)), then)
    assert [one[KIND] for one in found] == ["replayed", "brought", "brought"]
    (rejected,) = what(spec(Records.LINES), lines(row(1), row("x")), then)
    assert rejected["_hy_reason"] == then, "so that the next replay knows that nothing of it came"


def test_a_message_without_a_value() -> None:
    (rejected,) = what(spec(), None, "then")
    assert rejected["_hy_raw"] is None and "tombstone" in rejected["_hy_reason"]
