"""The page that resets a stream: positions, previews, what is accepted, rights, hostile text. No JVM."""

from __future__ import annotations

import json
from html import escape, unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from hybrid.api.hybrid import TableDocuments
from hybrid.home.accounts import Right
from hybrid.ingest import reset
from hybrid.operations.partitions import StreamEnds
from hybrid.serve import context
from hybrid.serve.console.stream_reset import ranges_of
from hybrid.table.boundary import TopicPartition
from tests.console.page_requests import EVIL, HTML, fetched, key, page, post, queued, twin
from tests.console.test_ingestion import lay
from tests.fake_streams import seen
from tests.serve.app import OFFLINE, SCHEMA, App

PLACE = "/ui/tables/orders/ingestion/reset"
ACCEPTED = 'name="accepted" value="'


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Where Kafka ends, by partition; it holds all from offset 2 on, and 4 were read."""
    found, place = {0: 9}, TopicPartition("orders", 0)
    monkeypatch.setattr(reset, "require_topics", lambda *_, **__: seen("orders", "id-1", {0: 2}, dict(found)))
    monkeypatch.setattr(context, "stream_ends", lambda table: StreamEnds({place: 9}, starts={place: 2}))
    return found


def preview(app: App, **parameters: str) -> Any:
    return twin(app, PLACE, f"?{urlencode(parameters)}")["preview"]


def accepted(app: App, headers: dict[str, str] | None = None, **parameters: str) -> str:
    """The hidden field of the form that carries out a preview."""
    text = page(app, f"{PLACE}?{urlencode(parameters)}", headers)
    return unescape(text.split(ACCEPTED)[1].split('"')[0])


@pytest.mark.slow
def test_the_page_shows_where_the_stream_is_read(orders: App, ends: dict[int, int]) -> None:
    model = twin(orders, PLACE)
    assert model["partitions"] == [{"topic": "orders", "partition": 0, "position": 4, "start": 2, "end": 9, "lag": 5}]
    assert model["form"] == {"topic": "orders", "place": "earliest", "time": "", "offsets": "0:4"}
    assert model["preview"] is None and model["problem"] is None and not model["is_paused"]
    text = page(orders, PLACE)
    assert 'id="place-earliest" value="earliest" checked' in text and 'value="0:4"' in text
    assert ACCEPTED not in text and 'data-testid="reset-preview"' not in text
    assert 'data-testid="to-reset"' in page(orders, "/ui/tables/orders/ingestion")


@pytest.mark.slow
def test_each_place_has_its_preview(orders: App, ends: dict[int, int]) -> None:
    (latest,) = preview(orders, place="latest")["partitions"]
    assert (latest["position"], latest["to"]) == (4, 9)
    assert latest["skipped"] == {"first": 4, "last": 8, "count": 5} and latest["again"] is latest["lost"] is None
    (earliest,) = preview(orders, place="earliest")["partitions"]
    assert earliest["to"] == 2 and earliest["again"] == {"first": 2, "last": 3, "count": 2}
    (offsets,) = preview(orders, place="offsets", offsets="0:6")["partitions"]
    assert offsets["to"] == 6 and offsets["skipped"]["count"] == 2
    assert preview(orders, place="offsets", offsets="0:4")["sentence"].startswith("Nothing to reset")
    text = page(orders, f"{PLACE}?place=latest")
    assert "5 offsets are skipped that Kafka holds" in text and "4 \N{EN DASH} 8" in text and "not paused" in text
    assert "hybrid connector reset orders orders --to latest --dry-run" in text
    assert 'value="latest" checked' in text


def test_offsets_that_are_gone_are_told() -> None:
    partition = {"to": 9, "lost": 3, "skipped": 2, "again": 0}
    assert ranges_of(partition) == {
        "lost": {"first": 4, "last": 6, "count": 3}, "skipped": {"first": 7, "last": 8, "count": 2}, "again": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"place": "offsets", "offsets": "0:99"}, "Kafka holds offsets 2 to 9"),
        ({"place": "offsets", "offsets": "7:1"}, "has no partition 7"),
        ({"place": "offsets", "offsets": " "}, "Offsets: it is empty"),
        ({"place": "time", "time": EVIL}, "is no place in a topic"),
        ({"place": EVIL}, "is none of earliest, latest, time, offsets"),
        ({"place": "latest", "topic": EVIL}, "Stream"),
    ],
)
def test_a_wrong_place_is_an_error_beside_the_form(
    orders: App, ends: dict[int, int], parameters: dict[str, str], words: str
) -> None:
    query = f"?{urlencode(parameters)}"
    model = twin(orders, PLACE, query)
    assert model["preview"] is None and words in model["problem"]["error"]
    text = page(orders, PLACE + query)
    assert 'data-testid="error"' in text and "preview-reset" in text and ACCEPTED not in text
    for value in parameters.values():
        assert EVIL not in value or escape(value) in text


@pytest.mark.slow
def test_what_was_shown_is_queued(orders: App, ends: dict[int, int]) -> None:
    """By the verb of the command line, with the report that was accepted, after the table's name was typed."""
    form = {"topic": "orders", "to": "latest", "accepted": accepted(orders, place="latest")}
    for confirm in ("", "order", EVIL):
        status, body = post(orders, PLACE, **form, confirm=confirm)
        assert status == 400 and "does not read" in body
    for wrong in ("", "[]", EVIL):
        status, body = post(orders, PLACE, **{**form, "accepted": wrong}, confirm="orders")
        assert status == 400 and "no preview" in body and EVIL not in body
    assert queued(orders) == []
    ends[0] = 12  # the stream goes on: what was shown is what is done
    status, body = post(orders, PLACE, **form, confirm="orders")
    assert status == 200 and "/ui/runs/" in body
    ((verb, arguments, source),) = queued(orders)
    assert (verb, source, arguments["table"], arguments["name"]) == ("connector_reset", "console", "orders", "orders")
    assert [one["to"] for one in arguments["accepted"]["partitions"]] == [9]


@pytest.mark.slow
def test_a_browser_without_scripts_follows_the_run(orders: App, ends: dict[int, int]) -> None:
    form = {"topic": "orders", "to": "latest", "accepted": accepted(orders, place="latest"), "confirm": "orders"}
    sent = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded", **HTML}
    status, headers, _ = fetched(orders, "POST", PLACE, sent, urlencode(form))
    assert status == 303 and headers["location"].startswith("/ui/runs/")


@pytest.mark.slow
def test_only_administrators_reset(orders: App, ends: dict[int, int]) -> None:
    admin, operator = key(orders, Right.ADMIN), key(orders, Right.OPERATE)
    form = {"topic": "orders", "to": "latest", "accepted": accepted(orders, admin, place="latest")}
    text = page(orders, f"{PLACE}?place=latest", operator)
    assert "5 offsets are skipped" in text and ACCEPTED not in text and "may reset" in text
    assert 'data-testid="to-reset"' not in page(orders, "/ui/tables/orders/ingestion", operator)
    assert post(orders, PLACE, operator, **form, confirm="orders")[0] == 403
    assert queued(orders) == []


def test_a_table_without_a_stream(app: App) -> None:
    lay(app.home, TableDocuments((SCHEMA, "schema"), [(OFFLINE, "offline")]))
    assert twin(app, PLACE) == {"table": "orders", "topics": [], "preview": None, "problem": None}
    assert "reads no stream" in page(app, PLACE)
    status, body = post(app, PLACE, accepted=json.dumps({}), confirm="orders", to="latest")
    assert status == 400 and "reads no stream" in body
    assert fetched(app, "GET", "/ui/tables/none/ingestion/reset", HTML)[0] == 404
