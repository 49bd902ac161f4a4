"""How names are spelled in the statements that pages and completion write."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp, parse_one

from hybrid.schema.dialect import PinotReader
from hybrid.sql.vocabulary import KEYWORDS, RESERVED, spelled_name


def duckdb_keywords() -> list[str]:
    with duckdb.connect() as connection:
        return [name for (name,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()]


@pytest.mark.slow
def test_every_keyword_can_name_a_table_and_a_column() -> None:
    """Also those that are only known by position: a name that is left plain is read as a name."""
    words = {*duckdb_keywords(), *(word.lower() for word in [*RESERVED, *PinotReader.Tokenizer.KEYWORDS])}
    words = {word for word in words if word.isidentifier()}
    assert len(words) > 400
    for word in words:
        for name in (word, word.upper()):
            found = parse_one(f"SELECT SUM({spelled_name(name)}) FROM {spelled_name(name)} LIMIT 1", read=PinotReader)
            assert isinstance(found, exp.Select), name
            assert [table.name for table in found.find_all(exp.Table)] == [name], name
            assert [column.name for column in found.find_all(exp.Column)] == [name], name


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("orders", "orders"),
        ("Order", '"Order"'),
        ("1", '"1"'),
        ("a b", '"a b"'),
        ('a"b', '"a""b"'),
        ("$docId", "$docId"),
    ],
)
def test_a_name_is_quoted_where_it_must_be(name: str, spelled: str) -> None:
    assert spelled_name(name) == spelled


def test_keywords_that_are_highlighted_are_reserved() -> None:
    assert KEYWORDS < RESERVED
