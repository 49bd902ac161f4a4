"""The pages of backfills and replacements as HTML and JSON: forms, states, rights, uploads, hostile text. No JVM."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from hybrid.config.table_config import Half
from hybrid.home.accounts import Right
from hybrid.lake import plans
from hybrid.lake.log import open_half
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.serve.context import ServerLimits
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket, Unit
from tests.console.page_requests import EVIL, FORM, HTML, fetched, key, page, post, queued, twin
from tests.query.halves import Halves
from tests.serve.app import App, lay_orders

PLAN = "backfill-1"
PLACE = f"/ui/tables/orders/backfills/{PLAN}"
BLANK = {"version_before": 0, "rows_before": 2, "rows_after": 2, "added": 0, "removed": 0, "changed": 2, "result": "x"}


@pytest.fixture
def halves(app: App) -> Halves:
    """The table orders, with a plan whose texts a hostile user wrote."""
    return lay_plan(app)


def lay_plan(app: App) -> Halves:
    """Lays the table orders with the plan."""
    made = lay_orders(app.home)
    layout = app.home.context.layout("orders")
    half = open_half(layout.half(Half.OFFLINE))
    sample = {"change": "changed", "before": {"ts": 1, "customer": EVIL}, "after": {"ts": 1, "customer": "ada"}}
    counts = Counts(2, 2, changed=2, changed_columns={"customer": 2, "amount": 2})
    bucket = PlannedBucket(0, 7_200_000, BucketState.PRESENT, counts, unit=0, samples=[sample])
    realtime = open_half(layout.half(Half.REALTIME))
    revision = f"orders[OFFLINE={half.version} REALTIME={realtime.version}]"
    plan = Plan(
        id=PLAN, table="orders", created_at="2026-01-01T00:00:00.000Z", change=f"update customer = '{EVIL}'",
        request={"update": "customer = 'ada'", "where": EVIL, "start": "0"}, table_id=half.table_id,
        offline_version=half.version, realtime_version=None, base_revision=revision,
        fresh_topic="", buckets=(bucket,), units=(Unit(0, (0,), {}, ()),), sentence=f"Would correct {EVIL}",
        warnings=(EVIL,), reason=EVIL, user=EVIL, checks=({"state": "WARNED", "sentence": EVIL},),
        inputs=({"path": EVIL, "sha256": "0"},),
    )  # fmt: skip
    plans.publish(layout, layout.staging(PLAN), plan)
    return made


def test_the_form_is_filled_in_by_its_address(halves: Halves, app: App) -> None:
    text = page(app, f"/ui/tables/orders/backfills?start=1000&end=2000&{urlencode({'update': EVIL, 'where': 'a'})}")
    for field, value in (("start", "1000"), ("end", "2000"), ("update", escape(EVIL)), ("where", "a"), ("reason", "")):
        assert f'name="{field}" value="{value}"' in text, field
    for label in ("From", "To", "Update", "Delete where", "Where", "Reason"):
        assert text.count(f">{label}</label>") == 1, label
    assert 'hx-config="timeout:0"' in text, "an upload takes as long as it takes"
    assert '<details class="more-ways">' in text
    again = page(app, f"/ui/tables/orders/backfills?{urlencode({'expect': 'a > 0', 'from_kafka': 'on'})}")
    assert '<details class="more-ways" open>' in again and 'aria-describedby="expect-help">a &gt; 0<' in again
    model = twin(app, "/ui/tables/orders/backfills")
    assert [found["id"] for found in model["backfills"]] == [PLAN] and model["history"] == []
    assert model["copies"][0]["text"] == "hybrid backfill list orders" and "Nothing has been replaced" in text


@pytest.mark.slow
def test_planning_queues_what_the_form_says(halves: Halves, app: App) -> None:
    fields = {"start": "0", "end": " 7200000 ", "update": "amount = amount * 2", "where": "", "reason": "net prices"}
    status, body = post(app, "/ui/tables/orders/backfills", **fields, expect="amount > 0\namount < 9", user="ada")
    assert status == 200 and "/ui/runs/" in body
    ((verb, arguments, source),) = queued(app)
    assert (verb, source) == ("backfill_plan", "console")
    assert arguments == {
        "table": "orders", "start": "0", "end": "7200000", "update": "amount = amount * 2", "reason": "net prices",
        "user": "ada", "expect": ["amount > 0", "amount < 9"],
    }  # fmt: skip
    assert "Planning" in page(app, "/ui/tables/orders/backfills")
    status, body = post(app, "/ui/tables/orders/backfills", where="a", delete="b")
    assert status == 400 and 'data-testid="error"' in body and len(queued(app)) == 1
    assert post(app, "/ui/tables/none/backfills", delete="b")[0] == 404
    post(app, "/ui/tables/orders/backfills", delete="customer = 'x'")
    assert {"delete": True, "where": "customer = 'x'"}.items() <= queued(app)[0][1].items()


@pytest.mark.slow
def test_uploaded_files_are_all_that_their_run_may_read(halves: Halves, app: App) -> None:
    def sent(*files: tuple[str, str], table: str = "orders") -> tuple[int, str]:
        parts = "".join(
            f'--limit\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{content}\r\n'
            for name, content in files
        )
        headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "multipart/form-data; boundary=limit"}
        status, _, body = fetched(app, "POST", f"/ui/tables/{table}/backfills", headers, f"{parts}--limit--\r\n")
        return status, body.decode()

    assert sent(("../../evil.json", '{"order_id": 1}'))[0] == 303
    ((_, arguments, source),) = queued(app)
    path = Path(arguments["input"])
    assert (path.name, path.parent.parent, source) == ("evil.json", app.home.home / "uploads", "upload")
    assert path.read_text() == '{"order_id": 1}'
    assert sent(("a.csv", "x"), ("a.csv", "y"))[0] == 303
    folder = Path(next(found for _, found, _ in queued(app) if found["input"] != str(path))["input"])
    assert sorted(file.name for file in folder.iterdir()) == ["0-a.csv", "1-a.csv"]
    assert sent(("", ""))[0] == 303 and "input" not in queued(app)[0][1]  # no file was chosen
    before = sorted((app.home.home / "uploads").iterdir())
    status, _ = sent(("a.csv", "x"), table="none")
    assert status == 404 and sorted((app.home.home / "uploads").iterdir()) == before


def test_files_may_be_longer_than_other_forms(tmp_path: Path) -> None:
    app = App(tmp_path / "home", ServerLimits(body_bytes=1000, upload_bytes=5000))
    lay_orders(app.home)
    own, path = {"Sec-Fetch-Site": "same-origin"}, "/ui/tables/orders/backfills"
    file = '--limit\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    form = {**own, "Content-Type": "multipart/form-data; boundary=limit"}
    for length, expected in ((3000, 303), (6000, 413)):
        assert fetched(app, "POST", path, form, f"{file}{'x' * length}\r\n--limit--\r\n")[0] == expected
    assert fetched(app, "POST", path, {**own, "Content-Type": FORM}, f"reason={'x' * 3000}")[0] == 413
    app.close()


@pytest.mark.slow
def test_a_plan_shows_its_differences(halves: Halves, app: App) -> None:
    text = page(app, PLACE)
    for part in ("plan-diff", "run-backfill", "cancel-backfill"):
        assert f'data-testid="{part}"' in text
    assert 'data-testid="revert"' not in text and 'data-testid="pause-backfill"' not in text
    model = twin(app, PLACE)
    assert model["totals"] == {"rows_before": 2, "rows_after": 2, "added": 0, "removed": 0, "changed": 2}
    assert model["actions"] == ["run", "cancel"] and model["buckets"]["rows"][0]["progress"] == "waiting"
    assert model["sql"].startswith("SELECT COUNT(*) AS row_count, SUM(amount) AS sum_amount")
    assert model["samples"]["columns"][:2] == ["ts", "customer"]
    assert model["copies"][0]["label"] == "Plan it again"
    assert "where" in model["again"] and "update=customer" in model["again"]
    work = fetched(app, "GET", PLACE, {"HX-Request": "true", "HX-Target": "section#work"})[2].decode()
    found = re.findall(r'<(?:form|button) id="([\w-]+)"', work)
    assert found == ["work-run-form", "work-run", "work-discard-form", "work-discard"]
    assert work.count("<form") == 2 and work.count('type="submit"') == 2
    assert work.lstrip().startswith('<section id="work"') and "<html" not in work
    assert fetched(app, "GET", "/ui/tables/orders/backfills/none", HTML)[0] == 404


@pytest.mark.slow
def test_a_statement_is_compared(halves: Halves, app: App) -> None:
    place = f"{PLACE}/result"
    sql = "SELECT customer, count(*) AS n FROM orders GROUP BY customer;"
    app.home.backfills.cancel(PLAN)  # so that it is compared with what it was planned on: no rows are staged here
    model = json.loads(fetched(app, "GET", f"{place}.json?{urlencode({'sql': sql})}")[2])
    assert model["sentence"] == "No difference: 1 row, equal before and after." and model["key"] == ["customer"]
    assert model["rows"][0]["cells"][0]["after"] == "ada"
    body = fetched(app, "GET", f"{place}?{urlencode({'sql': sql})}", {"HX-Request": "true"})[2].decode()
    assert "= Equal" in body and "<html" not in body
    for wrong in ("", "SELECT nothing FROM orders", EVIL):
        status, _, body = fetched(app, "GET", f"{place}?{urlencode({'sql': wrong})}", {"HX-Request": "true"})
        assert status == 400 and b'data-testid="error"' in body and EVIL.encode() not in body, wrong
    status, headers, _ = fetched(app, "GET", f"{place}?sql=a%26b", HTML)
    assert (status, headers["location"]) == (303, f"{PLACE}?sql=a%26b")


@pytest.mark.slow
def test_actions_are_the_verbs_of_the_command_line(halves: Halves, app: App) -> None:
    assert post(app, f"{PLACE}/pause")[0] == 200 and twin(app, PLACE)["state"] == "PAUSED"
    status, body = post(app, f"{PLACE}/run", reason=EVIL, newest_first="on", rows_per_second="0.5")
    assert status == 200 and EVIL not in body
    ((verb, arguments, _),) = queued(app)
    assert verb == "backfill_run"
    assert arguments == {"backfill": PLAN, "reason": EVIL, "newest_first": True, "rows_per_second": 0.5}
    model = twin(app, PLACE)
    assert model["busy"]["state"] == "QUEUED" and model["actions"] == ["pause", "cancel"]
    assert 'data-poll="1000"' in page(app, PLACE)
    for pace in ("x", "nan", "-1", "inf", "0"):
        assert post(app, f"{PLACE}/run", rows_per_second=pace)[0] == 400, pace
    for verb in ("run", "pause", "cancel", "revert", "release"):
        assert post(app, f"/ui/tables/orders/backfills/none/{verb}", confirm="orders")[0] == 404
    status, body = post(app, f"{PLACE}/cancel")
    assert "Cancelled" in body and twin(app, PLACE)["state"] == "CANCELLED"
    status, body = post(app, f"{PLACE}/pause")
    assert status == 409 and 'data-testid="error"' in body


@pytest.mark.slow
def test_a_revert_is_confirmed_by_the_name_of_the_table(halves: Halves, app: App) -> None:
    """The server checks it too. The entries of the log tell who did it, why, and by which run."""
    told = {**BLANK, "reason": EVIL, "user": EVIL, "result": EVIL, "change": EVIL, "inputs": [{"path": EVIL}]}
    halves.commit_entry("backfill", backfill=PLAN, buckets=[[0, 7_200_000]], **told)
    layout = app.home.context.layout("orders")
    plans.want(layout, PLAN, DesiredStateRecord(DesiredState.ENDED))
    model = twin(app, PLACE)
    assert (model["state"], model["actions"]) == ("DONE", ["revert"])
    (item,) = model["entries"]
    assert (item["reason"], item["user"], item["state"]) == (EVIL, EVIL, "ACTIVE")
    bucket = model["buckets"]["rows"][0]
    assert bucket["progress"] == "corrected" and bucket["entry"] == item["id"]
    text = page(app, PLACE)
    assert 'data-confirm="orders"' in text and 'data-testid="revert"' in text
    for wrong in ("", "Orders", EVIL):
        status, body = post(app, f"{PLACE}/revert", confirm=wrong)
        assert status == 400 and "does not read" in body and queued(app) == []
    assert post(app, f"{PLACE}/revert", confirm="orders", reason="it was right")[0] == 200
    assert queued(app)[0][:2] == ("backfill_revert", {"backfill": PLAN, "reason": "it was right"})

    place = f"/ui/tables/orders/replacements/{item['id']}"
    assert twin(app, "/ui/tables/orders/replacements")["history"][0]["backfill"] == PLAN
    page(app, "/ui/tables/orders/replacements")
    assert 'data-testid="confirm"' in page(app, place) and twin(app, place)["revertible"]
    assert post(app, f"{place}/revert", confirm="x")[0] == 400
    assert post(app, f"{place}/revert", confirm="orders")[0] == 200
    assert queued(app)[0][0] == "revert"
    assert fetched(app, "GET", "/ui/tables/orders/replacements/none", HTML)[0] == 404


@pytest.mark.slow
def test_who_may_only_read_sees_no_buttons_and_is_refused(halves: Halves, app: App) -> None:
    halves.commit_entry("backfill", backfill=PLAN, buckets=[[0, 7_200_000]], **BLANK)
    reader = key(app, Right.READ)
    entry = json.loads(fetched(app, "GET", f"{PLACE}.json", reader)[2])["entries"][0]["id"]
    places = ("/ui/tables/orders/backfills", PLACE, f"/ui/tables/orders/replacements/{entry}")
    for path in (*places, "/ui/tables/orders/replacements"):
        text = page(app, path, reader)
        assert 'method="post" action="/ui/tables' not in text
        for part in ("plan-backfill", "run-backfill", "revert", "confirm"):
            assert f'data-testid="{part}"' not in text, (path, part)
    for path in (places[0], *(f"{PLACE}/{verb}" for verb in ("run", "pause", "cancel", "release", "revert"))):
        assert post(app, path, reader, delete="a", confirm="orders")[0] == 403, path
    assert post(app, f"{places[2]}/revert", reader, confirm="orders")[0] == 403
    assert queued(app) == []
