"""One suite for both connections: `hybrid.connect(home)`, and `hybrid.connect(url)` to a server on the same home."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.api.table import Table
from hybrid.config.table_config import BoundaryMode, Half
from hybrid.errors import (
    ConflictError,
    DataError,
    HybridError,
    MachineError,
    NotFoundError,
    QueryError,
    SpecError,
    StreamError,
    UsageError,
)
from hybrid.kafka.sampling import MessageSample, SampledMessage
from hybrid.operations.erasure import Erasure
from hybrid.operations.inference import topic_sample
from hybrid.rpc import remote_values
from hybrid.rpc.client import Client
from hybrid.rpc.json_views import boundary_view
from hybrid.rpc.remote_hybrid import RemoteHybrid
from hybrid.table.boundary import INFINITE, Boundary, TopicPartition
from hybrid.table.effective import effective_boundary
from tests.fake_streams import seen
from tests.query.halves import KEY
from tests.serve.app import MOVED, OFFLINE, SCHEMA, SEALED, App, Worker, fail_at_once, lay_orders

MANY = "select a.order_id, b.order_id from orders a cross join orders b order by 1, 2"  # 16 rows
TYPES = """
    select cast(1.25 as decimal(10, 2)) as n, cast('2026-11-26 10:11:12.345678' as timestamp) as t,
           cast(unhex('00ff') as blob) as x, true as b, 1.5 as d, cast('nan' as double) as nan, 9007199254740993 as l,
           'é\n' as s, null as missing, array[1, 2] as m
    from orders limit 1
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One server for all tests, over a home with orders and a table of one half."""
    made = App(tmp_path_factory.mktemp("shared") / "home")
    lay_orders(made.home)
    made.home.create_table({**SCHEMA, "schemaName": "plain"}, config("plain"))
    yield made
    made.close()


@pytest.fixture(params=["local", "remote"])
def hy(request: pytest.FixtureRequest, app: App) -> Iterator[Hybrid]:
    with hybrid.connect(app.home.home if request.param == "local" else app.url) as opened:
        yield opened


@pytest.fixture
def both(app: App) -> Iterator[tuple[Hybrid, Hybrid]]:
    """The home, and the server on it."""
    with hybrid.connect(app.home.home) as local, hybrid.connect(app.url) as remote:
        yield local, remote


def config(name: str) -> dict[str, Any]:
    return {**OFFLINE, "tableName": name, "segmentsConfig": {"timeColumnName": "ts", "schemaName": name}}


# Queries


@pytest.mark.slow
def test_rows_have_exact_types(hy: Hybrid) -> None:
    result = hy.query(TYPES)
    row = dict(zip(result.column_names, result.rows[0], strict=True))
    assert row["n"] == Decimal("1.25") and isinstance(row["n"], Decimal)
    assert row["t"] == datetime(2026, 11, 26, 10, 11, 12, 345678) and row["t"].tzinfo is None
    assert row["x"] == b"\x00\xff" and row["b"] is True
    assert row["d"] == 1.5 and math.isnan(row["nan"]) and row["l"] == 9007199254740993
    assert row["s"] == "é\n" and row["missing"] is None and row["m"] == [1, 2]
    assert isinstance(result.rows[0], tuple)
    assert str(result.arrow().schema.field("n").type) == "decimal128(38, 18)"
    assert list(result.df()["l"]) == [9007199254740993]


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["select * from orders order by ts", "select count(*) from orders", TYPES, MANY])
def test_results_are_the_same(both: tuple[Hybrid, Hybrid], sql: str) -> None:
    local, remote = (hy.query(sql, all_rows=True) for hy in both)
    assert repr(local.rows) == repr(remote.rows)  # NaN is not equal to itself
    assert (local.column_names, local.column_types) == (remote.column_names, remote.column_types)
    assert str(local.revision) == str(remote.revision) and local.revision == remote.revision
    assert local.stats.total_docs == remote.stats.total_docs
    assert str(local).splitlines()[0] == str(remote).splitlines()[0]


@pytest.mark.slow
def test_an_answer_is_repeated_by_its_revision(hy: Hybrid) -> None:
    first = hy.query("select count(*) from orders_OFFLINE")
    assert hy.query("select count(*) from orders_OFFLINE", as_of=first.revision).rows == first.rows == [(2,)]


@pytest.mark.slow
def test_the_default_limit_gives_a_warning(hy: Hybrid) -> None:
    with pytest.warns(hybrid.ResultLimitWarning) as found:
        assert len(hy.query(MANY)) == 10
    assert [warning.filename for warning in found] == [__file__]
    assert len(hy.query(MANY, all_rows=True)) == 16


def test_a_statement_is_awaited(hy: Hybrid) -> None:
    assert asyncio.run(hy.aquery("select count(*) from orders")).rows == [(4,)]


@pytest.mark.slow
def test_statements_are_logged(hy: Hybrid) -> None:
    marker = f"select order_id, '{type(hy).__name__}' from orders where order_id = 3"
    hy.query(marker)
    with pytest.raises(QueryError):
        hy.query(f"{marker} and nope = 1")
    until = time.monotonic() + 10
    while True:  # a server's thread writes a moment later
        found = [entry for entry in hy.queries(table="orders", since="1h") if marker in entry.statement]
        if len(found) == 2 or time.monotonic() > until:
            break
    failed, done = found
    assert (failed.state, failed.code, failed.rows, failed.tables) == ("FAILED", 710, None, ())
    assert (done.state, done.rows, done.tables, done.source) == ("DONE", 1, ("orders",), "files")
    assert done.segments and done.bytes and done.duration_ms > 0 and not done.slow and "orders[" in str(done.revision)
    assert (done.client == "python") is not isinstance(hy, RemoteHybrid)
    assert "nope" in str(failed.error) and repr(done).startswith("<LoggedQuery 20")
    assert hy.queries(table="plains") == [] and hy.queries(account="nobody") == [] and len(hy.queries(limit=1)) == 1
    with pytest.raises(UsageError, match="is no time"):
        hy.queries(since="yesterday")
    with pytest.raises(UsageError, match="1 to 10000"):
        hy.queries(limit=0)


def test_an_explanation(hy: Hybrid) -> None:
    found = hy.explain("select * from orders where ts > 1500")
    assert found.tables[0].table == "orders" and {half.half for half in found.tables[0].halves} == {*Half}
    assert "revision" in str(found)


@pytest.mark.slow
def test_parameters(hy: Hybrid, tmp_path: Path) -> None:
    sql = "select order_id from orders where customer = :who and order_id in (:ids) and ts >= $since order by 1"
    given = {"who": "ada", "ids": [1, 3, 9], "since": datetime(1970, 1, 1)}
    assert hy.query(sql, given).rows == [(1,), (3,)] == asyncio.run(hy.aquery(sql, given)).rows
    assert hy.query("select count(*) from orders where customer = ?", ["' or 1=1 --"]).rows == [(0,)]
    values = [Decimal("1.20"), datetime(2026, 11, 26, 10, 11, 12, 345678), "é\n'", None, True, -(2**60), math.inf]
    row = hy.query("select ? a, ? b, ? c, ? d, ? e, ? f, ? g from orders limit 1", values).rows[0]
    assert list(row) == values
    assert hy.export(sql, tmp_path / "out.csv", given).rows == 2
    asked, same = "select * from orders where ts > :n", "select * from orders where ts > 1500"
    assert str(hy.explain(asked, {"n": 1500})) == str(hy.explain(same))
    for params, words in ((None, "Parameter 'x' has no value"), ({"x": 1, "y": 2}, "no parameter 'y'")):
        with pytest.raises(QueryError, match=words) as raised:
            hy.query("select :x from orders", params)
        assert raised.value.pinot_code == 700


@pytest.mark.slow
def test_an_export(hy: Hybrid, tmp_path: Path) -> None:
    report = hy.export(MANY, tmp_path / "out.csv")
    assert report.rows == 16 and len((tmp_path / "out.csv").read_text().splitlines()) == 17
    with pytest.raises(ConflictError):
        hy.export(MANY, tmp_path / "out.csv")
    with pytest.raises(QueryError):
        hy.export("selec", tmp_path / "none.csv")
    with pytest.raises(QueryError):
        hy.export("select :x from orders", tmp_path / "none.csv", {"x": object()})
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


# Tables


def test_tables(hy: Hybrid) -> None:
    assert hy.table_names() == ["orders", "plain"]
    table = hy.table("orders")
    assert isinstance(table, Table) and table.name == "orders"
    assert repr(table) == "<Table orders: REALTIME, OFFLINE>" and "<svg" in table._repr_html_()
    assert "<svg" not in hy.table("plain")._repr_html_()


@pytest.mark.slow
def test_a_table_is_created_changed_dropped_and_restored(
    hy: Hybrid, both: tuple[Hybrid, Hybrid], tmp_path: Path
) -> None:
    name = f"made_{'remote' if isinstance(hy, RemoteHybrid) else 'local'}"
    schema = {**SCHEMA, "schemaName": name}
    assert hy.create_table(schema, config(name)).table == name
    with pytest.raises(ConflictError, match="exists already"):
        hy.create_table(schema, config(name))
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema))
    unchanged = hy.apply_table(path, config(name), dry_run=True)
    assert unchanged.changes == () and unchanged.sentence == str(unchanged)
    assert name in hy.drop_table(name) and name not in hy.table_names()
    (dropped,) = hy.dropped_tables()
    assert (dropped.table, dropped.rows, dropped.state) == (name, 0, "DROPPED") and dropped.bytes > 0
    for other in both:
        assert other.dropped_tables() == [dropped]
    assert name in hy.undrop_table(name) and hy.dropped_tables() == []
    assert hy.query(f"select count(*) from {name}").rows == [(0,)]
    hy.drop_table(name, purge=True)


def test_documents_are_inferred(both: tuple[Hybrid, Hybrid], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = SampledMessage(TopicPartition("rides", 0), 3, b'{"id": 1, "ts": 1764045855732, "tags": ["a"]}')
    monkeypatch.setattr(topic_sample, "view_stream", lambda stream: seen("rides", "id", {0: 3}, {0: 4}))
    monkeypatch.setattr(topic_sample, "sample_messages", lambda *_: MessageSample([message]))
    (tmp_path / "rides.json").write_bytes(message.value or b"")
    for source, options in (("rides", {"kafka": "127.0.0.1:9", "key": ["id"]}), (tmp_path / "rides.json", {})):
        local, remote = (hy.infer_table(source, ddl=True, **options) for hy in both)
        assert local == remote and local.time_column == "ts"
        assert both[1].apply_table(remote.documents(), dry_run=True).table == "rides"


def test_an_exported_table_is_applied_again(hy: Hybrid, tmp_path: Path) -> None:
    exported = hy.table("orders").export()
    assert hy.apply_table(exported.documents(), dry_run=True).changes == ()
    files = exported.write(tmp_path / "orders")
    assert [path.name for path in files] == [
        "orders_schema.json", "orders_offline_table.json", "orders_realtime_table.json"
    ]  # fmt: skip
    with pytest.raises(ConflictError, match="exists already"):
        exported.write(tmp_path / "orders")


@pytest.mark.slow
def test_the_state_of_a_table(hy: Hybrid) -> None:
    table = hy.table("orders")
    found = {segment.name: segment for segment in table.segments()}
    assert MOVED in found and found[MOVED].half == "OFFLINE" and found[MOVED].rows == 2
    assert table.segment(MOVED) == found[MOVED]
    boundary = table.boundary()
    assert boundary is not None and boundary.time_ms == 2001 and [*boundary.frontier.values()] == [2]
    effective = table.effective_boundary()
    assert effective is not None and effective.limit_ms == 2001
    assert hy.table("plain").boundary() is None and hy.table("plain").effective_boundary() is None
    assert table.rejected() == [] and table.purges() == [] and table.replacements() == []
    assert hy.runs("plain") == [] or hy.runs("plain")[0].table_name == "plain"
    assert hy.runs(limit=1) == hy.runs()[:1]
    for wrong in (0, 1001):
        with pytest.raises(UsageError, match=rf"limit: {wrong} is not between 1 and 1000"):
            hy.runs(limit=wrong)


@pytest.mark.parametrize(
    "read",
    [
        lambda hy: hy.table("orders").segments(),
        lambda hy: hy.table("plain").segments(),
        lambda hy: hy.table("orders").boundary(),
        lambda hy: hy.table("orders").effective_boundary(),
        lambda hy: hy.table("orders").time_boundary(),
        lambda hy: hy.table("orders").pause_status(),
        lambda hy: hy.table("orders").origins(MOVED),
        lambda hy: hy.table("orders").connectors.statuses(),
        lambda hy: hy.table("orders").view("duckdb").code,
        lambda hy: hy.table("orders").export(),
        lambda hy: hy.table("plain").export(),
        lambda hy: hy.explain("select * from orders where ts > 1500").tables,
        lambda hy: hy.status(),
        lambda hy: hy.schedules(),
        lambda hy: hy.flows(),
        lambda hy: hy.backfills.statuses(),
        lambda hy: hy.table("orders")._repr_html_(),
    ],
)
def test_the_same_values_come_from_both(both: tuple[Hybrid, Hybrid], read: Callable[[Hybrid], Any]) -> None:
    local, remote = map(read, both)
    assert local == remote and type(local) is type(remote)


def test_a_pause(hy: Hybrid) -> None:
    table = hy.table("orders")
    assert table.pause("test").paused and table.pause_status().comment == "test"
    assert not table.resume().paused


def test_an_override_of_the_boundary_is_seen_with_its_limit(both: tuple[Hybrid, Hybrid]) -> None:
    class Shown:
        """A table as far as its boundary is shown."""

        def __init__(self, boundary: Boundary, last_ms: int | None) -> None:
            self.name, self.spec, self._found = "t", both[0].spec("orders"), (boundary, last_ms)

        def boundary(self) -> Boundary:
            return self._found[0]

        def effective_boundary(self) -> Any:
            return effective_boundary(self._found[0], self._found[1], 1000)

        def time_boundary(self) -> None:
            return None

    for boundary in (
        Boundary(),
        Boundary(5000, {KEY: 3}, floor_ms=100, step_ms=60),
        Boundary(INFINITE, {KEY: 3}),
        Boundary(5000, {KEY: 3}, override_ms=4000),
        Boundary(None, {}, BoundaryMode.PINOT),
        Boundary(5000, {KEY: 3}, BoundaryMode.PINOT, override_ms=2000),
    ):
        shown = Shown(boundary, 4500)
        document = json.loads(json.dumps(boundary_view(shown)))  # type: ignore[arg-type]
        assert remote_values.boundary(document) == boundary
        assert remote_values.effective(document) == shown.effective_boundary()


# Errors


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda hy: hy.query("selec 1"), QueryError, "."),
        (lambda hy: hy.query("select nope from orders"), QueryError, "nope"),
        (lambda hy: hy.query("select 1 from ordrs"), QueryError, "Did you mean 'orders'"),
        (lambda hy: hy.table("ordrs"), NotFoundError, "Did you mean 'orders'"),
        (lambda hy: hy.table("orders").segment("x"), NotFoundError, "x"),
        (lambda hy: hy.table("orders").replacement("x"), NotFoundError, "x"),
        (lambda hy: hy.table("orders").view("cobol"), UsageError, "cobol"),
        (lambda hy: hy.table("orders").rejected(offset=-1), UsageError, "offset: -1 is not 0 or more"),
        (lambda hy: hy.table("orders").rejected(-1, 5), UsageError, "limit: -1 is not 0 or more"),
        (lambda hy: hy.run("x"), NotFoundError, "x"),
        (lambda hy: hy.run("x/../y?z"), NotFoundError, "x"),
        (lambda hy: hy.backfills.status("x"), NotFoundError, "x"),
        (lambda hy: hy.create_table(SCHEMA), UsageError, "table configs"),
        (lambda hy: hy.create_table(SCHEMA, {**OFFLINE, "tableType": "UP"}), SpecError, "config 1"),
        (lambda hy: hy.undrop_table("never"), NotFoundError, "never"),
        (lambda hy: hy.table("orders").connectors.status("x"), NotFoundError, "x"),
        (lambda hy: hy.infer_table("none", kafka="127.0.0.1:9"), StreamError, "cannot be reached"),
        (lambda hy: hy.infer_table("none", sample=0), UsageError, "at least 1"),
        (lambda hy: hy.infer_table("./none.csv"), NotFoundError, "does not exist"),
    ],
)
def test_errors_are_the_same(
    both: tuple[Hybrid, Hybrid], call: Callable[[Hybrid], Any], kind: type[HybridError], words: str
) -> None:
    raised = []
    for hy in both:
        with pytest.raises(kind, match=words) as error:
            call(hy)
        raised.append(error.value)
    local, remote = raised
    assert type(local) is type(remote) and str(local) == str(remote) and local.hint == remote.hint
    if isinstance(local, QueryError) and isinstance(remote, QueryError):
        assert local.pinot_code == remote.pinot_code


def test_a_replacement_without_a_commit_is_no_entry(both: tuple[Hybrid, Hybrid], app: App) -> None:
    replacing = app.home.table("orders").replacing
    pending = replacing.start([MOVED], ["orders_new"])
    for end in (replacing.throw_away, replacing.find):
        said = set()
        for hy in both:
            with pytest.raises(NotFoundError, match=f"Replacement '{pending.id}' does not exist") as raised:
                hy.table("orders").replacement(pending.id)
            said.add(str(raised.value))
        assert len(said) == 1
        end(pending.id)


def test_a_status_says_why_it_cannot_be_read(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A boundary is unknown for a table that has none, not for a server that does not answer."""
    remote = hybrid.connect(app.url)
    call = Client.call

    def lost(self: Client, verb: str, *arguments: Any) -> Any:
        if verb == "boundary":
            raise MachineError("The server does not answer.")
        return call(self, verb, *arguments)

    assert [found.boundary is None for found in remote.status()] == [False, True]
    monkeypatch.setattr(Client, "call", lost)
    with pytest.raises(MachineError):
        remote.status()


@pytest.mark.slow
def test_an_error_of_queued_work_is_raised(app: App) -> None:
    with Worker(app.home, fail_at_once), hybrid.connect(app.url) as remote:
        for work in (
            lambda: remote.table("orders").move(),
            lambda: remote.table("orders").upkeep.vacuum(),
            lambda: remote.table("orders").purge(Erasure("order_id = 1")),
        ):
            with pytest.raises(DataError, match="no Spark"):
                work()
        failed = remote.runs("orders")[0]
        assert failed.state == "FAILED" and remote.run(failed.id).error == hybrid_error(app, failed.id)


def hybrid_error(app: App, run_id: str) -> Any:
    return app.home.run(run_id).error


# The interface


def test_every_public_name_works_or_says_what_would_do(app: App) -> None:
    """No name of the local interface ends in an AttributeError, also one that is added later."""
    with hybrid.connect(app.url) as remote:
        table = remote.table("orders")
        for found, kind in ((remote, Hybrid), (table, Table)):
            for name in dir(kind):
                if name.startswith("_") or name == "of":
                    continue
                try:
                    getattr(found, name)
                except UsageError as error:
                    assert error.hint and name not in dir(found) and "not through a server" in str(error), name
        with pytest.raises(UsageError, match="not through a server"):
            remote.serve_from_memory(1)
        with pytest.raises(AttributeError):
            remote.nonsense  # noqa: B018
        assert {"query", "table", "backfills"} <= set(dir(remote)) and "spec" not in dir(remote)
        assert repr(remote) == f"<Hybrid {app.url}>"


@pytest.mark.slow
def test_a_cancelled_task_ends_the_statement_on_the_server(app: App) -> None:
    running = app.app.state.context.queries._running
    power = " cross join ".join(f"orders t{number}" for number in range(14))  # 4 ** 14 rows
    hy = hybrid.connect(app.url)

    async def cancelled() -> None:
        task = asyncio.create_task(hy.aquery(f"select sum(t0.amount * t1.amount + t13.amount) from {power}"))
        async with asyncio.timeout(30):
            while not any(query.interrupt for query in running.values()):
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(cancelled())  # it waits for the thread
    while running:
        assert time.monotonic() - began < 30, "the server goes on"
        time.sleep(0.02)
    assert hy.query("select count(*) from orders").rows == [(4,)]


def test_segments_of_a_consuming_partition(hy: Hybrid) -> None:
    assert SEALED in {segment.name for segment in hy.table("orders").segments()}
