"""The same statements on a real Pinot (as recorded), on us, and by hand in DuckDB, over the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import duckdb
import pytest

from hybrid.errors import QueryError
from hybrid.query.engine import QueryOptions, run
from hybrid.query.result import QueryResult
from tests.docs.pages import reference, table
from tests.parity.compare import from_wire, same_rows
from tests.parity.differences import DIFFERENCES, ERRORS, NAMES, ROWS, TYPES
from tests.parity.fixtures import Answer, Fixture, fixtures, recorded
from tests.parity.table import NOW_MS, by_hand, parity_table
from tests.query.halves import Halves, ListTail

FIXTURES = fixtures()
Table = tuple[Halves, ListTail]


@pytest.fixture(scope="module")
def parity(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return parity_table(tmp_path_factory.mktemp("parity"))


@pytest.fixture(scope="module")
def hand() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = by_hand()
    yield connection
    connection.close()


Ask = Callable[[str], QueryResult | QueryError]


@pytest.fixture(scope="module")
def ours(parity: Table) -> Ask:
    halves, tail = parity

    @cache
    def asked(sql: str) -> QueryResult | QueryError:
        try:
            return run(sql, halves, QueryOptions(tail=tail, now_ms=lambda: NOW_MS))
        except QueryError as error:
            return error

    return asked


def differences(pinot: Answer, found: QueryResult | QueryError, *, ordered: bool) -> set[str]:
    """What of Pinot's answer is not in ours."""
    if isinstance(found, QueryError) or pinot.error is not None:
        code = found.pinot_code if isinstance(found, QueryError) else None
        return set() if code == pinot.error else {ERRORS}
    rows = [[from_wire(*pair) for pair in zip(row, pinot.types, strict=True)] for row in pinot.rows]
    equal = {
        NAMES: tuple(found.column_names) == pinot.names,
        TYPES: tuple(found.column_types) == pinot.types,
        ROWS: same_rows(rows, found.rows, ordered=ordered),
    }
    return {what for what, is_equal in equal.items() if not is_equal}


def is_ordered(fixture: Fixture) -> bool:
    return "order by" in fixture.sql.lower().partition("over (")[0]


def test_the_recording_is_of_these_statements() -> None:
    assert {name: sql for name, (sql, _) in recorded().items()} == {one.id: one.sql for one in FIXTURES}
    assert len(FIXTURES) == len({one.id for one in FIXTURES}) >= 120


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda one: one.id)
def test_as_pinot_answered(fixture: Fixture, ours: Ask) -> None:
    pinot = recorded()[fixture.id][1]
    found = ours(fixture.sql)
    differing = differences(pinot, found, ordered=is_ordered(fixture))
    if fixture.differs is None:
        assert differing == set(), f"{fixture.sql}\nPinot: {pinot}\nours:  {found!r}"
    else:
        assert differing, "this does not differ any more"
        assert differing <= DIFFERENCES[fixture.differs], f"{fixture.sql}\nPinot: {pinot}\nours:  {found!r}"


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda one: one.id)
def test_as_by_hand(fixture: Fixture, ours: Ask, hand: duckdb.DuckDBPyConnection) -> None:
    found = ours(fixture.sql)
    assert isinstance(found, QueryError) == fixture.fails, repr(found)
    if fixture.duckdb is not None and isinstance(found, QueryResult):
        rows = hand.execute(fixture.duckdb).fetchall()
        assert same_rows(found.rows, rows, ordered=is_ordered(fixture)), f"{fixture.sql}\n{found.rows}\n{rows}"


def test_the_docs_list_the_differences() -> None:
    assert table(reference("query"), "Differences from Pinot").column("what") == list(DIFFERENCES)
    assert {one.differs for one in FIXTURES if one.differs} == set(DIFFERENCES)
