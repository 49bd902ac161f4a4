"""Texts lose the constants of a condition, and nothing else that a reader needs."""

from __future__ import annotations

import json

import pytest

from hybrid.errors import QueryError
from hybrid.sql.redaction import Redaction, constants_of, without_constants

MAIL = Redaction.of_conditions([("email = 'ada@example.org'", ["email"])])
ID = Redaction.of_conditions([("customer_id IN (7, 12)", ["customer_id"])])


@pytest.mark.parametrize(
    ("condition", "constants", "shown"),
    [
        ("customer_id = 7", ("7",), "customer_id = ?"),
        ("name = 'O''Brien' AND \"from\" > -1.5", ("O'Brien", "1.5"), 'name = ? AND "from" > - ?'),
        ("lower(email) IN ('ada', 'bob') -- ada", ("ada", "bob"), "lower ( email ) IN ( ? , ? )"),
        ("active", (), "active"),
    ],
)
def test_constants_of_a_condition(condition: str, constants: tuple[str, ...], shown: str) -> None:
    assert constants_of(condition) == constants and without_constants(condition) == shown


def test_a_condition_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(QueryError, match="not closed"):
        without_constants("name = 'ada")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("delete where email = 'ada@example.org'", "delete where email = '?'"),
        ("Ada@Example.org has gone", "? has gone"),
        ("not ada@example.org.uk nor xada@example.org", "not ada@example.org.uk nor xada@example.org"),
        ("7 rows were read", "7 rows were read"),
    ],
)
def test_a_telling_word_is_masked_everywhere(text: str, masked: str) -> None:
    assert MAIL.of(text) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("7 rows, 12 files", "7 rows, 12 files"),
        ("delete where customer_id = 7", "delete where customer_id = ?"),
        ("customer_id in (12, 7) and 7 rows", "customer_id in (?, ?) and ? rows"),
        ("customer_id = 77 or 7.5", "customer_id = 77 or 7.5"),
        ("the value '7' is no number", "the value '?' is no number"),
    ],
)
def test_a_number_is_masked_in_quotes_and_behind_its_column(text: str, masked: str) -> None:
    assert ID.of(text) == masked


@pytest.mark.parametrize("column", ["customer_id", 'o."customer_id"'])
def test_a_number_is_masked_in_long_lists_and_on_the_left(column: str) -> None:
    others = ", ".join(str(number) for number in range(1000, 1100))
    for text, masked in (
        (f"{column} IN ({others}, 7, 8)", f"{column} IN ({others}, ?, 8)"),
        (f"{column} not in(7, {others}, 12)", f"{column} not in(?, {others}, ?)"),
        (f"7 = {column}", f"? = {column}"),
        (f"7<>{column} and 7 rows", f"?<>{column} and ? rows"),
        (f"7 files, {others}: {column}", f"7 files, {others}: {column}"),
        (f"{column}{' ' * 79}77", f"{column}{' ' * 79}77"),
    ):
        assert ID.of(text) == masked
        data = text.encode()
        assert len(ID.spans(data)) == masked.count("?")
    repeated = f"{column} = 7" + f"{' ' * 70}or 12" * 3
    assert ID.of(repeated) == repeated.replace("12", "?").replace("7", "?")


def test_a_long_number_is_masked_anywhere() -> None:
    long = Redaction.of_conditions([("order_id = 77770123", ["order_id"])])
    assert long.of("order 77770123 is gone, 777701234 and 1.77770123 are not") == (
        "order ? is gone, 777701234 and 1.77770123 are not"
    )
    assert [b"id-77770123."[start:end] for start, end in long.spans(b"id-77770123.")] == [b"77770123"]


def test_a_document_keeps_its_names() -> None:
    names = Redaction.of_conditions([("customer = 'orders'", ["customer"])])
    document = {
        "table": "orders",
        "detail": {"change": "delete where customer = 'orders'", "rows": 7},
        "user": "orders",
    }
    masked = names.document(document)
    assert masked["table"] == "orders" and masked["detail"] == {"change": "delete where customer = '?'", "rows": 7}


def test_an_unnamed_expectation_has_its_condition_as_its_name() -> None:
    name = "email <> 'ada@example.org'"
    check = {"name": name, "kind": "sql", "sample": [], "sentence": f"{name}: 1 of 7 rows fails."}
    document = {"checks": [check], "failed_checks": [name], "detail": {"expectations": [check], "name": name}}
    masked = MAIL.document(document)
    assert masked["detail"].pop("name") == name, "a name of anything else stays"
    assert "ada" not in json.dumps(masked) and masked["checks"][0]["name"] == "email <> '?'"


def test_bytes_of_logs_are_found_escaped_and_in_urls() -> None:
    redaction = Redaction.of_conditions([("name = 'Zoë \"O''Brien\"'", ["name"])])
    name = 'Zoë "O\'Brien"'
    twice = json.dumps({"m": json.dumps(name)}, ensure_ascii=False)
    for written in (json.dumps(name), twice, "/sql?q=name%3D%27Zo%C3%AB%20%22O%27Brien%22%27"):
        data = written.encode()
        assert len(redaction.spans(data)) == 1, written
    assert redaction.spans(b"7 rows") == [] and Redaction((), ()).spans(b"x") == [] and Redaction((), ()).of("x") == "x"
