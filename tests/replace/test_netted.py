"""Corrections of a table without a key whose stream deletes: no delete is left without the row that it is of."""

import json

import pytest

from hybrid.config.ddl import parse_ddl
from hybrid.config.table_json import parse_table
from hybrid.errors import ConflictError
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.revert import revert
from hybrid.table.boundary import INFINITE, Boundary
from tests.replace.tables import KAFKA, Table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

STREAM = {
    "transport": {"name": "kafka_input", "config": {"topic": "orders", "bootstrap.servers": "k:1"}},
    "format": {"name": "json"}, "name": "kafka",
}  # fmt: skip
OLD = "orders_0"


def row(number):
    return {"id": number, "note": None if number % 2 else "even"}


def ids(table):
    return sorted(one["id"] for one in table.rows())


@pytest.fixture(scope="module")
def table(workbench, tmp_path_factory):
    """Rows 1, 2, 3 and 3 again in history; of 1 and 3 one each has been deleted since."""
    ddl = f"CREATE TABLE orders (id BIGINT, note VARCHAR) WITH ('connectors' = '{json.dumps([STREAM])}');"
    (found,) = parse_ddl(ddl, "orders.sql")
    spec = parse_table(found.schema_doc, "orders.sql", [(config, "orders.sql") for config in found.configs])
    made = Table.create(workbench, tmp_path_factory.mktemp("netted"), spec)
    events = [{"insert": row(number)} for number in (1, 2, 3, 3)]
    made.add_offline(OLD, [(event, at) for at, event in enumerate(events)], Boundary(INFINITE, {KAFKA: 4}))
    made.ingest([{"delete": row(1)}, {"delete": row(3)}], start=4)
    return made


def correct(table, *numbers, segment=OLD, **options):
    table.write_rows([row(number) for number in numbers])
    return run_job(table.context, table.job(segment), JobOptions(**options))


def test_deletes_keep_the_rows_that_they_are_of(table):
    with pytest.raises(ConflictError, match="2 of the rows that would go are already deleted on 'orders'"):
        correct(table, 2)
    assert ids(table) == [1, 2, 3, 3]
    first = correct(table, 1, 3, 5)
    assert ids(table) == [1, 3, 5], "of two equal rows one may go: the delete has the other"
    revert(table.context, first.act)
    assert ids(table) == [1, 2, 3, 3]


def test_a_revert_leaves_no_delete_alone_either(table):
    added = correct(table, 7, segment="orders_new", append=True)
    table.ingest([{"delete": row(7)}], start=6)
    with pytest.raises(ConflictError, match="already deleted on"):
        revert(table.context, added.act)
