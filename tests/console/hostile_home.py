"""A home in which everything that users can write is hostile, and the pages of the console that show it.

`PAGES` and `CHANGES` name every page and every form: `test_injection.py` fails for one that is missing here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from hybrid.api.hybrid import TableDocuments
from hybrid.catalog.run_record import RunRequest
from hybrid.config.table_config import Half
from hybrid.errors import DataError, error_document
from hybrid.home.accounts import Accounts, Right
from hybrid.lake import plans
from hybrid.lake.log import open_half
from hybrid.operations.tables.create import _definition
from hybrid.table.boundary import Boundary
from hybrid.table.columns import rejected_segment
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket, Unit
from hybrid.table.state import Consuming
from tests.console.browser import HOSTILE
from tests.console.page_requests import fetched
from tests.query.halves import KEY, Halves, Row
from tests.serve.app import CONSUMING, MOVED, OFFLINE, REALTIME, SCHEMA, SEALED, App

# Delta refuses spaces, brackets and `=` in names of columns.
COLUMN = "\"'><script>window.__injected++</script>"
PLAN, ENDED, FAILED, QUEUED = "backfill-1", "backfill-2", "run-failed", "run-queued"
_BUCKET_MS = 7_200_000


def hostile(kind: str) -> str:
    """Every hostile text in one value, which begins with what kind of value it is."""
    return f"{kind}:{''.join(HOSTILE)}"


def seen(kind: str) -> str:
    """What of a hostile value must be readable: pages cut long texts, and JSON escapes quotes."""
    return COLUMN if kind == "column" else f"{kind}:{HOSTILE[0]}"


def parameters(*names: str) -> str:
    """A query in which each parameter is hostile."""
    return "?" + urlencode({name: hostile(name) for name in names})


@dataclass(frozen=True)
class Visit:
    """An address of a page: its query, the kinds of values that it shows, its status, and names for its path."""

    query: str = ""
    shows: tuple[str, ...] = ()
    status: int = 200
    names: Mapping[str, str] = field(default_factory=dict)


_SQL = f"""select customer, '{hostile("constant").replace("'", "''")}' as "{COLUMN.replace('"', '""')}" from orders"""
_TABLE, _BACKFILL = "/ui/tables/{table}", "/ui/tables/{table}/backfills/{backfill}"
_LINEAGE = ("reason", "user", "result")
PAGES: Mapping[str, tuple[Visit, ...]] = {
    "/": (Visit("", ("error", "hint")), Visit(parameters("x"))),
    "/ui/sign-in": (Visit("?next=/" + quote(hostile("next")), ("next",)),),
    "/ui/query": (
        Visit(f"?{urlencode({'sql': _SQL, 'html': 1})}", ("value", "constant", "column")),
        Visit(f"?{urlencode({'sql': _SQL})}", ("constant",)),  # scripts run it
        Visit(f"{parameters('sql', 'as_of', 'plan')}&html=1", ("sql", "as_of", "plan")),
    ),
    "/ui/runs/{run}": (Visit("", ("error", "hint")),),
    "/ui/accounts": (Visit("", ("account",)),),
    "/ui/new-table": (Visit(parameters("whole", "schema", "realtime", "offline", "kafka"), ("whole", "kafka")),),
    "/ui/tasks": (
        Visit("", ("error", "hint", "source")),
        Visit(parameters("table", "type"), ()),
        Visit(parameters("state"), (), 404),
    ),
    _TABLE: (Visit("", _LINEAGE), Visit(parameters("start"), ("start",), 400)),
    f"{_TABLE}/status": (Visit("", ("error",)),),
    f"{_TABLE}/segments": (Visit(parameters("half", "state", "from")),),
    f"{_TABLE}/edit": (Visit("", ("default", "column")),),
    f"{_TABLE}/ingestion": (Visit("", ("comment", "message", "rejection")), Visit("?rejected=all", ("message",))),
    f"{_TABLE}/ingestion/reset": (
        Visit(parameters("topic", "place", "time", "offsets"), ("time", "offsets", "place")),
    ),
    f"{_TABLE}/lag": (Visit(),),
    f"{_TABLE}/backfills": (
        Visit("", ("change", "sentence", "column", *_LINEAGE)),
        Visit(parameters("start", "end", "update", "where", "delete", "sql", "expect", "reason", "user"), ("expect",)),
    ),
    _BACKFILL: (
        Visit(parameters("sql", "page", "buckets"), ("change", "check", "warning", "before", "column", "input", "sql")),
    ),
    f"{_BACKFILL}/result": (  # a page sends a browser on to the backfill; htmx gets the difference
        Visit(f"?{urlencode({'sql': _SQL})}", ("value", "constant", "column"), 303, {"backfill": ENDED}),
        Visit(parameters("sql"), (), 303),
    ),
    f"{_TABLE}/replacements": (Visit("", _LINEAGE),),
    f"{_TABLE}/replacements/{{entry}}": (Visit("", (*_LINEAGE, "input")),),
}
# Pages of what does not exist name it in their error.
UNKNOWN = tuple(path for path in PAGES if "{" in path)

# Forms, with the fields that their pages have. Each is sent with hostile texts in all of them.
CHANGES: Mapping[str, tuple[str, ...]] = {
    "/ui/sign-in": ("secret", "next"),
    "/ui/sign-out": (),
    "/ui/new-table/check": ("whole", "schema", "realtime", "offline", "kafka"),
    "/ui/new-table": ("whole", "schema", "realtime", "offline", "kafka"),
    f"{_TABLE}/edit/check": ("whole", "schema", "realtime", "offline", "kafka"),
    f"{_TABLE}/edit": ("whole", "schema", "realtime", "offline", "kafka", "shown"),
    f"{_TABLE}/pause": ("comment",),
    f"{_TABLE}/resume": (),
    f"{_TABLE}/move": (),
    f"{_TABLE}/backfills": ("start", "end", "update", "where", "delete", "sql", "expect", "reason", "user"),
    f"{_BACKFILL}/run": ("reason", "user", "rows_per_second"),
    f"{_BACKFILL}/pause": (),
    f"{_BACKFILL}/cancel": (),
    f"{_BACKFILL}/release": (),
    f"{_BACKFILL}/revert": ("confirm", "reason", "user"),
    f"{_TABLE}/replacements/{{entry}}/revert": ("confirm", "reason", "user"),
    f"{_TABLE}/ingestion/connectors/pause": ("name",),
    f"{_TABLE}/ingestion/connectors/start": ("name",),
    f"{_TABLE}/ingestion/seal": ("name",),
    f"{_TABLE}/ingestion/replay": (),
    f"{_TABLE}/ingestion/reset": ("confirm", "topic", "to", "accepted"),
}


@dataclass(frozen=True)
class HostileHome:
    """The application, the header of an account whose name is hostile, and the names of what paths speak of."""

    app: App
    account: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)

    def place(self, path: str, visit: Visit = Visit()) -> str:
        """The address of a route, with what is there."""
        return path.format(**{**self.names, **visit.names}) + visit.query


def hostile_home(app: App) -> HostileHome:
    """Fills an empty home: by the API what it takes without Spark and Kafka, and by the lake what those would write."""
    halves = _table(app)
    for name in (PLAN, ENDED):
        _plan(app, name)
    app.home.backfills.cancel(ENDED)  # its results are compared with the rows that it was planned on
    told = {name: hostile(name) for name in (*_LINEAGE, "change")}
    numbers = {"version_before": 0, "rows_before": 2, "rows_after": 2, "added": 0, "removed": 0, "changed": 2}
    entry = halves.commit_entry(
        "replace", segments_to=[MOVED], inputs=[{"path": hostile("input"), "sha256": "0"}], **told, **numbers
    )
    _runs(app)
    own = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    assert fetched(app, "POST", "/ui/tables/orders/pause", own, urlencode({"comment": hostile("comment")}))[0] == 303
    names = {"table": "orders", "run": FAILED, "backfill": PLAN, "entry": entry}
    return HostileHome(app, _account(app), names)


def _table(app: App) -> Halves:
    """The table orders with a hostile column, hostile values, and a message that was rejected."""
    column = {"name": COLUMN, "dataType": "STRING", "defaultNullValue": hostile("default")}
    schema = {**SCHEMA, "dimensionFieldSpecs": [*SCHEMA["dimensionFieldSpecs"], column]}
    spec = app.home.validate(TableDocuments((schema, "schema"), [(REALTIME, "realtime"), (OFFLINE, "offline")]))
    halves = Halves.create(app.home.settings.warehouse, spec)
    app.home.context.definitions.add(_definition(spec))
    values = {"order_id": 1, "customer": hostile("value"), "amount": 1.5, COLUMN: hostile("cell")}
    rows = [
        Row({**values, "ts": 1000 * number}, 1000 * number, number, segment=SEALED if number < 3 else CONSUMING)
        for number in range(1, 5)
    ]
    halves.commit_realtime(
        rows, offsets={KEY: 5}, consuming={KEY: Consuming(CONSUMING, 1, 3, 2, 100, 1_632_463_351_000)},
        sequences={KEY: 2},
    )  # fmt: skip
    halves.commit_offline(
        [Row({**values, "ts": 1000 * number}, 1000 * number, number, segment=MOVED) for number in (1, 2)],
        Boundary(2001, {KEY: 3}),
    )
    reason, raw = hostile("rejection"), hostile("message").encode()
    rejected = Row({}, None, 5, segment=rejected_segment("orders"), reason=reason, raw=raw)
    halves.commit_realtime([rejected], offsets={KEY: 6}, rejected=1)
    return halves


def _plan(app: App, name: str) -> None:
    """A plan in which a hostile author has written every text."""
    layout = app.home.context.layout("orders")
    offline, realtime = (open_half(layout.half(half)) for half in (Half.OFFLINE, Half.REALTIME))
    sample = {
        "change": "changed",
        "before": {"ts": 1000, "customer": hostile("before"), COLUMN: None},
        "after": {"ts": 1000, "customer": hostile("after"), COLUMN: hostile("cell")},
    }
    counts = Counts(2, 2, changed=2, changed_columns={COLUMN: 2, "amount": 2})
    plan = Plan(
        id=name, table="orders", created_at="2026-01-01T00:00:00.000Z", change=hostile("change"),
        request={"update": hostile("update"), "where": hostile("where"), "start": "0"}, table_id=offline.table_id,
        offline_version=offline.version, realtime_version=None,
        base_revision=f"orders[OFFLINE={offline.version} REALTIME={realtime.version}]", fresh_topic="",
        buckets=(PlannedBucket(0, _BUCKET_MS, BucketState.PRESENT, counts, unit=0, samples=[sample]),),
        units=(Unit(0, (0,), {}, ()),), sentence=hostile("sentence"), warnings=(hostile("warning"),),
        reason=hostile("reason"), user=hostile("user"), checks=({"state": "WARNED", "sentence": hostile("check")},),
        inputs=({"path": hostile("input"), "sha256": "0"},),
    )  # fmt: skip
    plans.publish(layout, layout.staging(name), plan)


def _runs(app: App) -> None:
    """A run that failed, and one that waits by whoever has a hostile name."""
    runs = app.home.context.catalog.runs
    error = error_document(DataError(hostile("error"), hint=hostile("hint")))
    with runs.recorded(FAILED, "orders", "move"):
        runs.finish(FAILED, "FAILED", hostile("error"), error=error)
    source = f"cli:{hostile('source')}"
    runs.enqueue(RunRequest(QUEUED, "orders", "merge", "task_run", {"table": "orders"}, source))


def _account(app: App) -> Mapping[str, str]:
    """An administrator whose name was written into the file by hand, for the API refuses it."""
    accounts = Accounts(app.home.home)
    secret = accounts.add("ada", Right.ADMIN)[1]
    stored = accounts.path.read_text(encoding="utf-8")
    accounts.path.write_text(stored.replace('"ada"', json.dumps(hostile("account"))), encoding="utf-8")
    app.app.state.authentication._look()
    return {"Authorization": f"Bearer {secret}"}
