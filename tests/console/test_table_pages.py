"""The pages of new tables, definitions and accounts as HTML and JSON: forms, errors, rights, hostile text. No JVM."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from urllib.parse import unquote, urlencode

import pytest

from hybrid.home.accounts import Accounts, Right
from hybrid.rpc.verbs import VERBS
from hybrid.serve.console import rendering
from tests.console.page_requests import EVIL, HTML, fetched, key, page, post, twin
from tests.serve.app import OFFLINE, SCHEMA, App

NEW, EDIT, ACCOUNTS = "/ui/new-table", "/ui/tables/orders/edit", "/ui/accounts"
EVENTS = {
    "schema": json.dumps({**SCHEMA, "schemaName": "events"}, indent=2),
    "offline": json.dumps(
        {**OFFLINE, "tableName": "events", "segmentsConfig": {"timeColumnName": "ts", "schemaName": "events"}}, indent=2
    ),
}


def documents(app: App) -> dict[str, str]:
    """The form of the table orders as its page has it."""
    found = twin(app, EDIT)["documents"]
    return {name: json.dumps(found[name], indent=2) for name in ("schema", "realtime", "offline")}


def shown(body: str) -> str:
    """The digest of the difference that a check has shown."""
    found = re.search(r'name="shown" value="(\w+)"', body)
    assert found is not None, body
    return found[1]


@pytest.mark.slow
def test_a_table_is_checked_then_created(app: App) -> None:
    text = page(app, NEW)
    for label in ("Document", "Schema", "REALTIME config", "OFFLINE config", "Brokers"):
        assert text.count(f">{label}</label>") == 1, label
    status, body = post(app, f"{NEW}/check", **EVENTS)
    assert status == 200 and "Would create table &#39;events&#39;" in body and 'data-testid="create-table"' in body
    assert app.home.table_names() == []
    hidden = {name: unescape(value) for name, value in re.findall(r'name="(schema|offline)" value="([^"]*)"', body)}
    assert hidden == EVENTS
    status, body = post(app, NEW, **hidden)
    assert status == 200 and 'href="/ui/tables/events" data-made' in body, body
    assert app.home.table_names() == ["events"] and app.home.spec("events").time_column == "ts"
    for path in (f"{NEW}/check", NEW):
        status, body = post(app, path, **EVENTS)
        assert status == 409 and "exists already" in body, path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["new", "check", "edit", "query", "tables", "json", "status", "order", "select", "1"])
def test_a_table_may_have_any_name(app: App, name: str) -> None:
    """It is created by the page, and every page is its own; a name that is a keyword stands in quotes."""
    form = {part: EVENTS[part].replace('"events"', f'"{name}"') for part in EVENTS}
    assert post(app, f"{NEW}/check", **form)[0] == 200
    status, body = post(app, NEW, **form)
    assert status == 200 and f'href="/ui/tables/{name}" data-made' in body, body
    for part in ("", "/status", "/backfills", "/replacements", "/ingestion", "/ingestion/reset", "/segments", "/edit"):
        assert twin(app, f"/ui/tables/{name}{part}")["table"] == name, part
        page(app, f"/ui/tables/{name}{part}")
    link = re.search(r'href="/ui/query\?sql=([^"]+)"', page(app, f"/ui/tables/{name}"))
    assert link is not None
    assert app.ok("POST", "/verbs/query", {"sql": unquote(link[1])})["rows"] == []
    assert "Paste what describes it" in page(app, NEW) and set(twin(app, NEW)) == {"form", "brokers"}


@pytest.mark.slow
def test_a_browser_without_scripts(app: App) -> None:
    """A check answers a page with the button that creates; creating leads to the table."""
    own = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded", **HTML}
    status, _, body = fetched(app, "POST", f"{NEW}/check", own, urlencode(EVENTS))
    assert status == 200 and b"<html" in body and b'data-testid="create-table"' in body
    status, headers, _ = fetched(app, "POST", NEW, own, urlencode(EVENTS))
    assert (status, headers["location"]) == (303, "/ui/tables/events")
    assert fetched(app, "GET", "/ui/tables/events", HTML)[0] == 200
    status, _, body = fetched(app, "POST", f"{NEW}/check", {**own, "Accept": "application/json"}, urlencode(EVENTS))
    assert status == 409 and json.loads(body)["code"] == 409


def test_all_errors_are_shown_with_their_lines(app: App) -> None:
    schema = EVENTS["schema"].replace('"INT"', f'"{EVIL}"').replace('"FLOAT"', '"REALS"')
    status, body = post(app, f"{NEW}/check", schema=schema, offline=EVENTS["offline"])
    assert status == 400 and "2 errors" in body and body.count("<li>") == 2 and EVIL not in body
    assert len(re.findall(r"\(line \d+\)", body)) == 2
    status, body = post(app, f"{NEW}/check", whole=f"CREATE TABLE t (\n  a {EVIL}\n)")
    assert status == 400 and "line 2" in body and EVIL not in body
    status, body = post(app, f"{NEW}/check")
    assert status == 400 and "A table needs a schema" in body
    # The lines of the text as its author sees it: browsers send CRLF, and empty lines in front count.
    status, body = post(app, f"{NEW}/check", schema="\r\n\r\n{,", offline="{}")
    assert "line 3" in body, body


def test_the_address_fills_in_the_form(app: App) -> None:
    text = page(app, f"{NEW}?{urlencode({'whole': f'CREATE {EVIL}</textarea>', 'kafka': EVIL})}")
    assert text.count("&lt;/textarea&gt;") == 1
    assert twin(app, NEW)["form"] == {"whole": "", "schema": "", "realtime": "", "offline": "", "kafka": ""}


def test_warnings_of_a_statement_are_shown(app: App) -> None:
    statement = f"CREATE TABLE t (a BIGINT NOT NULL, ts TIMESTAMP) WITH ('{EVIL}' = 'true')"
    status, body = post(app, f"{NEW}/check", whole=statement)
    assert status == 200 and "Warning:" in body and "has no effect" in body and EVIL not in body, body


@pytest.mark.slow
def test_a_definition_is_changed_after_its_difference_was_shown(orders: App) -> None:
    text, form = page(orders, EDIT), documents(orders)
    assert 'aria-current="page">Definition' in text and "Reads from brokers" in text
    assert unescape(text).count('"schemaName": "orders"') == 3
    status, body = post(orders, f"{EDIT}/check", **form)
    assert status == 200 and "Nothing to change" in body and "apply-table" not in body

    edited = {**form, "offline": form["offline"].replace('"timeColumnName"', '"replication": "2", "timeColumnName"')}
    status, body = post(orders, f"{EDIT}/check", **edited)
    assert status == 200 and "replication" in body and "Would change table" in body
    for wrong in ("", "x", EVIL):
        status, refused = post(orders, EDIT, **edited, shown=wrong)
        assert status == 409 and "no longer the one that was shown" in refused
    assert documents(orders) == form
    status, told = post(orders, EDIT, **edited, shown=shown(body))
    assert status == 200 and "Changed table" in told, told
    assert "replication" in documents(orders)["offline"]
    assert post(orders, EDIT, **edited, shown=shown(body))[0] == 409  # it has been applied

    status, body = post(orders, f"{EDIT}/check", **EVENTS)
    assert status == 400 and "describe table" in body
    assert post(orders, "/ui/tables/none/edit/check", **EVENTS)[0] == 404
    assert fetched(orders, "GET", "/ui/tables/none/edit", HTML)[0] == 404


@pytest.mark.slow
def test_a_new_column_is_a_run(orders: App) -> None:
    form = documents(orders)
    schema = json.loads(form["schema"])
    schema["dimensionFieldSpecs"].append({"name": "note", "dataType": "STRING"})
    form["schema"] = json.dumps(schema)
    status, body = post(orders, f"{EDIT}/check", **form)
    assert status == 200 and "note" in body
    status, body = post(orders, EDIT, **form, shown=shown(body))
    assert status == 200 and "/ui/runs/" in body
    assert [run.verb for run in orders.home.runs() if run.state == "QUEUED"] == ["table_apply"]


@pytest.mark.slow
def test_hidden_secrets_are_named_and_never_stored(orders: App) -> None:
    form = documents(orders)
    secret = '"stream.kafka.topic.name": "orders", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", '
    secret += '"sasl.jaas.config": "********",'
    form["realtime"] = form["realtime"].replace('"stream.kafka.topic.name": "orders",', secret)
    status, body = post(orders, f"{EDIT}/check", **form)
    assert status == 400 and "is hidden where it was shown" in body, body


@pytest.mark.slow
def test_accounts_are_listed_for_administrators(app: App) -> None:
    text = page(app, ACCOUNTS)
    assert "No accounts yet" in text and f"hybrid access add NAME --right admin --home {app.home.home}" in text
    assert twin(app, ACCOUNTS)["accounts"] == []
    admin, reader, operator = (key(app, right) for right in (Right.ADMIN, Right.READ, Right.OPERATE))
    text = page(app, ACCOUNTS, admin)
    for right in Right:
        assert f"<b>of-{right.word}</b>" in text and f'data-copy="hybrid access remove of-{right.word} --home' in text
        assert f'data-copy="hybrid access add NAME --right {right.word} --home {app.home.home}"' in text
    assert f'data-copy="hybrid access remove NAME --home {app.home.home}"' in text and "No account can make" in text
    assert post(app, ACCOUNTS, admin, name="eve", right="admin")[0] in (404, 405)
    assert not [verb for verb in VERBS if "access" in verb or "account" in verb]
    found = json.loads(fetched(app, "GET", f"{ACCOUNTS}.json", admin)[2])["accounts"]
    assert [set(account) for account in found] == [{"name", "right", "created_at", "remove"}] * 3
    for lower in (reader, operator):
        for path in (ACCOUNTS, f"{ACCOUNTS}.json"):
            status, _, body = fetched(app, "GET", path, {**HTML, **lower})
            assert status == 403 and b"of-admin" not in body, path
    assert fetched(app, "GET", ACCOUNTS, HTML)[0] in (303, 401)


def test_hostile_names_of_accounts(app: App) -> None:
    """A file that somebody wrote by hand."""
    entry = {"name": EVIL, "right": "admin", "sha256": "0", "created_at": EVIL}
    admin = key(app, Right.ADMIN)
    path = Accounts(app.home.home).path
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({"accounts": [*stored["accounts"], entry]}))
    app.app.state.authentication._look()
    page(app, ACCOUNTS, admin)


@pytest.mark.slow
def test_who_may_only_read_sees_no_forms_and_is_refused(orders: App) -> None:
    for right in (Right.READ, Right.OPERATE):
        sent = key(orders, right)
        for path in (NEW, EDIT):
            text = page(orders, path, sent)
            assert 'method="post" action="/ui/tables' not in text and "check-table" not in text, path
            assert ">New table</a>" not in text and ">Accounts</a>" not in text
        assert "Administrators create tables" in page(orders, NEW, sent)
        assert unescape(page(orders, EDIT, sent)).count("<pre ") == 3
        for path in (f"{NEW}/check", NEW, f"{EDIT}/check", EDIT):
            assert post(orders, path, sent, **EVENTS)[0] == 403, path
    assert orders.home.table_names() == ["orders"]


@pytest.mark.slow
def test_links_of_the_navigation_lead_to_pages(orders: App) -> None:
    for path in ("/", NEW, EDIT, ACCOUNTS, "/ui/query"):
        assert {NEW, ACCOUNTS} <= set(re.findall(r'href="([^"]+)"', page(orders, path)))
    assert EDIT in page(orders, "/ui/tables/orders")


def test_many_errors_are_one_note() -> None:
    errors = [{"error": f"{EVIL} {number}", "hint": EVIL if number else None} for number in range(2)]
    document: dict[str, Any] = {"error": EVIL, "hint": EVIL, "errors": errors}
    body = rendering.render("_error.html", {"error": document})
    assert "2 errors" in body and body.count("<li>") == 2 and EVIL not in body and "note-hint" not in body
    assert "<li>" not in rendering.render("_error.html", {"error": {"error": "x", "hint": None}})
