"""The page of a table's ingestion: partitions, rates, rejected rows, changes, rights, hostile text. No JVM."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.home.accounts import Right
from hybrid.kafka import streams
from hybrid.kafka.streams import StreamView
from hybrid.operations.partitions import PartitionStatus, StreamEnds, partitions_of, rate_of, stream_ends
from hybrid.operations.tables.create import _definition
from hybrid.serve import context
from hybrid.serve.console import ingestion
from hybrid.serve.status_cache import StatusCaches
from hybrid.table.boundary import TopicPartition
from hybrid.table.columns import rejected_segment
from tests.console.page_requests import EVIL, fetched, key, page, post, queued, twin
from tests.fake_streams import seen
from tests.query.halves import KEY, Halves, Row
from tests.serve.app import CONSUMING, OFFLINE, SCHEMA, App, lay_orders

PLACE = "/ui/tables/orders/ingestion"
LONG = "x" * 9000


@pytest.fixture
def halves(app: App, monkeypatch: pytest.MonkeyPatch) -> Halves:
    """The table orders, where Kafka ends at 10, with three rejected messages."""
    monkeypatch.setattr(context, "stream_ends", lambda table: StreamEnds({TopicPartition("orders", 0): 10}))
    made = lay_orders(app.home)
    raws = [EVIL.encode(), LONG.encode(), b"\xff\x00"]
    rows = [
        Row({}, None, 4 + number, segment=rejected_segment("orders"), reason=f"{EVIL} at {number}", raw=raw)
        for number, raw in enumerate(raws)
    ]
    made.commit_realtime(rows, offsets={KEY: 7}, rejected=3)
    return made


def partition(**values: Any) -> PartitionStatus:
    fields = {"position": 4, "end": 10, "committed_until_ms": 0, "rows_per_minute": 1.5}
    return PartitionStatus("orders", 0, **{**fields, "segment": None, "segment_rows": 0, **values})


def test_a_rate_counts_five_minutes_and_changes_in_steps() -> None:
    now_ms = 1_000_000_000
    assert rate_of([], now_ms) == 0.0
    arrivals = [(now_ms, 100), (now_ms - 299_000 + 10_000, 20), (now_ms - 310_000, 7000), (now_ms + 20_000, 9000)]
    assert rate_of(arrivals, now_ms) == rate_of(arrivals, now_ms + 9000) == 24.0
    assert rate_of([(now_ms, 7)], now_ms) == 1.4


def test_a_lag_is_known_where_every_end_is() -> None:
    assert partition().lag == 6 and partition(end=3).lag == 0 and partition(end=None).lag is None
    found = ingestion.totals_of([partition(), partition(end=5, committed_until_ms=None)], "4 min")
    assert found == {
        "lag": 7, "committed_until": "1970-01-01T00:00:00Z", "catch_up": "4 min", "rows_per_minute": 3.0,
    }  # fmt: skip
    assert ingestion.totals_of([partition(), partition(end=None)], None)["lag"] is None
    assert ingestion.totals_of([], None)["lag"] is None and ingestion.totals_of([], None)["committed_until"] is None
    kafka, files = {"transport": "kafka_input", "lag": 3}, {"transport": "file_input", "lag": None}
    assert [found["lag"] for found in ingestion.connectors_view([kafka, files], [partition()])] == [6, None]
    assert ingestion.connectors_view([kafka], [partition(end=None)])[0]["lag"] == 3  # what ingestion last reported


def test_a_message_is_shown_up_to_a_length() -> None:
    assert ingestion.rejected_view({"value": None, "offset": 1}) == {"value": None, "offset": 1, "value_is_cut": False}
    shown = ingestion.rejected_view({"value": LONG})
    assert shown["value_is_cut"] and shown["value"] == "x" * 2000


def test_results_of_tables_are_kept_apart_and_not_without_end() -> None:
    asked: list[str] = []
    caches = StatusCaches(lambda table: asked.append(table) or table.upper())
    assert [caches.get("a"), caches.get("a"), caches.get("b")] == ["A", "A", "B"] and asked == ["a", "b"]
    for number in range(150):
        caches.get(f"t{number}")
    assert len(caches._caches) <= 100


@pytest.mark.slow
def test_a_page_shows_how_far_each_partition_is(halves: Halves, app: App) -> None:
    """Positions, ends and lags; the parts that update themselves; rejected rows with what is bounded and escaped."""
    model = twin(app, PLACE)
    (found,) = model["partitions"]
    assert (found["topic"], found["partition"], found["position"], found["end"], found["lag"]) == (
        "orders",
        0,
        7,
        10,
        3,
    )
    assert found["segment"] == CONSUMING and found["rows_per_minute"] == 0.8 and found["segment_rows"] == 2
    assert found["committed_until"] == "1970-01-01T00:00:00Z" and model["totals"]["lag"] == 3
    (connector,) = model["connectors"]
    assert (connector["name"], connector["state"], connector["lag"]) == ("kafka", "RUNNING", 3)
    assert model["rejected_count"] == 3 and [row["offset"] for row in model["rejected"]["rows"]] == [4, 5, 6]
    values = [row["value"] for row in model["rejected"]["rows"]]
    assert values == [EVIL, "x" * 2000, "hex:ff00"] and model["rejected"]["rows"][1]["value_is_cut"]
    assert all("state" in row for row in twin(app, PLACE, "?rejected=all")["rejected"]["rows"])

    text = page(app, PLACE)
    assert escape(EVIL) in text and "Cut after 2,000 characters" in text and "x" * 2001 not in text
    for part in ("pause", "seal", "replay", "preview-replay", "rejected-row", "partition"):
        assert f'data-testid="{part}"' in text, part
    forms = re.findall(r"<form [^>]*hx-post[^>]*>", text)
    assert len(forms) == 4 and all('hx-sync="this:drop" hx-disable="findAll button"' in form for form in forms)
    assert f'id="seal-{CONSUMING}"' in text, "an update makes no form of another one"
    for block, other in (("live", "rejected-row"), ("rejected", 'data-testid="partition"')):
        sent = {"HX-Request": "true", "HX-Target": f"div#{block}"}
        status, _, body = fetched(app, "GET", PLACE, sent)
        assert status == 200 and f'id="{block}"'.encode() in body and b"<html" not in body
        assert other.encode() not in body, block
    assert fetched(app, "GET", "/ui/tables/none/ingestion", {"Accept": "text/html"})[0] == 404


@pytest.mark.slow
def test_changes_are_the_verbs_of_the_command_line(halves: Halves, app: App) -> None:
    status, body = post(app, f"{PLACE.removesuffix('/ingestion')}/pause", comment=EVIL)
    assert status == 200 and EVIL not in body
    model = twin(app, PLACE)
    assert model["pause"]["paused"] and model["pause"]["comment"] == EVIL and model["problem"] is None
    assert model["connectors"][0]["state"] == "PAUSED"
    assert 'data-testid="resume"' in page(app, PLACE)
    status, body = post(app, f"{PLACE}/connectors/start")
    assert status == 200 and "kafka is running" in body and not twin(app, PLACE)["pause"]["paused"]
    status, body = post(app, f"{PLACE}/connectors/pause", name="kafka")
    assert status == 200 and "kafka is paused" in body
    status, body = post(app, f"{PLACE}/connectors/pause", name=EVIL)
    assert status == 404 and EVIL not in body
    post(app, f"{PLACE}/connectors/start")

    assert post(app, f"{PLACE}/seal", name=CONSUMING)[0] == 200
    assert queued(app) == [("seal", {"table": "orders", "name": CONSUMING}, "console")]
    assert [run["type"] for run in twin(app, PLACE)["active"]] == ["seal"]
    assert post(app, f"{PLACE}/replay", dry_run="on")[0] == 200
    assert queued(app)[0][:2] == ("rejected_replay", {"table": "orders", "dry_run": True})
    assert post(app, f"{PLACE}/replay")[0] == 200
    assert [verb for verb, _, _ in queued(app)] == ["rejected_replay", "rejected_replay", "seal"]
    for verb in ("seal", "replay", "connectors/pause"):
        assert fetched(app, "GET", f"{PLACE}/{verb}")[0] in (404, 405), verb


@pytest.mark.slow
def test_who_may_only_read_sees_no_buttons_and_is_refused(halves: Halves, app: App) -> None:
    reader = key(app, Right.READ)
    text = page(app, PLACE, reader)
    assert 'method="post" action="/ui/tables' not in text and 'data-testid="rejected-row"' in text
    for verb in ("seal", "replay", "connectors/pause", "connectors/start"):
        assert post(app, f"{PLACE}/{verb}", reader)[0] == 403, verb
    assert queued(app) == []


@pytest.mark.slow
def test_where_kafka_does_not_answer_the_page_says_so(app: App) -> None:
    """The table's broker is unreachable here: positions are shown, ends and lag are not known."""
    lay_orders(app.home)
    table = app.home.context.table("orders")
    ends = stream_ends(table)
    assert ends.offsets == {} and ends.problem is not None
    (found,) = partitions_of(table, ends, app.home.context.now_ms())
    assert found.position == 4 and found.end is None and found.lag is None
    model, text = twin(app, PLACE), page(app, PLACE)
    assert model["unreachable"]["error"] == ends.problem and model["totals"]["lag"] is None
    assert text.count(escape(ends.problem)) == 1 and "No rejected rows" in text


def test_one_look_at_kafka_serves_the_whole_page(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state, the lag of the card and the partitions: the overview's answer is that of the partitions, too."""
    looks = []

    def view(*arguments: Any) -> StreamView:
        looks.append(arguments)
        return seen("orders", "id-1", {0: 0}, {0: 10})

    monkeypatch.setattr(streams, "view_stream", view)
    lay_orders(app.home)
    model = twin(app, PLACE)
    assert model["totals"]["lag"] == 6 and model["unreachable"] is None and model["problem"] is None
    assert model["partitions"][0]["start"] == 0 and len(looks) == 1


def test_a_table_without_a_stream_says_what_fills_it(app: App) -> None:
    lay(app.home, TableDocuments((SCHEMA, "schema"), [(OFFLINE, "offline")]))
    model = twin(app, PLACE)
    assert model["connectors"] == [] and model["rejected"] is None and model["partitions"] == []
    text = page(app, PLACE)
    assert "orders reads no stream" in text and 'method="post" action="/ui/tables' not in text


def lay(home: Hybrid, documents: TableDocuments) -> Halves:
    """A table without rows."""
    spec = home.validate(documents)
    made = Halves.create(home.settings.warehouse, spec)
    home.context.definitions.add(_definition(spec))
    return made
