"""`/metrics` has what its page, the alerts and the dashboard name; these are valid. One server for all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from prometheus_client.parser import text_string_to_metric_families

from hybrid.catalog.run_record import RunRequest
from hybrid.config.table_config import Half
from hybrid.errors import DataError, MachineError
from hybrid.lake import log
from hybrid.table.state import RealtimeState, from_user_metadata, to_user_metadata
from tests.docs.pages import ROOT, reference, spans, table
from tests.docs.test_reference import CODE, name_of
from tests.query.halves import KEY
from tests.serve.app import App, lay_orders
from tests.serve.promql import parse

ALERTS = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8"))
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
DOCUMENTED = {spans(row[0])[0]: row for row in table(reference("metrics"), "Metrics").rows}
SCRAPED = {"job", "instance"}  # labels that Prometheus adds
_DURATION = re.compile(r"\d+[smhd]")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server over orders that has answered, refused, run and queued."""
    made = App(tmp_path_factory.mktemp("metrics") / "home")
    halves = lay_orders(made.home)
    halves.commit_realtime([], ingested=4, filtered=2, complete_ms=1)
    catalog = made.home.context.catalog
    catalog.serving.beat("pipeline", "ready")
    catalog.serving.note_ingestion("orders", "INGESTING", None, 3)
    move = "RealtimeToOfflineSegmentsTask"
    for state, kind in (("DONE", move), ("DONE", "backfill"), ("FAILED", "SegmentCreationAndTarPush")):
        run = RunRequest(f"{kind}-{state}", "orders", kind, "move", {}, "cli")
        assert catalog.runs.enqueue(run) is not None
        for _ in range(2):  # recorded again, it counts once
            catalog.runs.finish(run.id, state, "Done.")
    assert catalog.runs.enqueue(RunRequest("waits", "orders", move, "move", {}, "cli")) is not None
    made.home.context.query_log._slow_ms = 0
    made.ok("POST", "/query/sql", {"sql": "select count(*) from orders"})
    made.ok("POST", "/query/sql", {"sql": "selec"})
    made.app.state.context.admission._most = 0
    made.ok("POST", "/query/sql", {"sql": "select 1"})
    yield made
    made.close()


@pytest.fixture(scope="module")
def families(app: App) -> dict[str, Any]:
    """The families by the names that queries use, each with its labels."""
    found: dict[str, Any] = {}
    for family in text_string_to_metric_families(app.get("/metrics")):
        names = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
        for suffix in names:
            found[family.name + suffix] = family
    return found


def labels_of(name: str) -> set[str]:
    """The documented labels of a metric; a histogram's buckets have one more."""
    base = re.sub(r"_(bucket|count|sum)$", "", name)
    if base not in DOCUMENTED:
        return set()
    return {*spans(DOCUMENTED[base][2]), *(["le"] if name.endswith("_bucket") else [])}


def value(app: App, line: str) -> float:
    return next(float(one.rpartition(" ")[2]) for one in app.get("/metrics").splitlines() if one.startswith(line))


@pytest.mark.slow
def test_the_page_lists_every_metric_with_its_kind_and_labels(app: App, families: dict[str, Any]) -> None:
    own = {name: family for name, family in families.items() if name.startswith("hybrid_")}
    named = {re.sub(r"_(bucket|count|sum)$", "", name) if family.type == "histogram" else name: family
             for name, family in own.items()}  # fmt: skip
    assert set(DOCUMENTED) == set(named)
    assert {name: row[1] for name, row in DOCUMENTED.items()} == {name: one.type for name, one in named.items()}
    for name, family in named.items():
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                assert set(sample.labels) - {"le"} == set(spans(DOCUMENTED[name][2])), name


@pytest.mark.slow
def test_conventions(families: dict[str, Any]) -> None:
    """As `promtool check metrics`: a sentence of help, base units, `_total` for counters only."""
    for name, family in families.items():
        assert len(family.documentation.split()) > 2 and family.documentation.endswith("."), name
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mb|percent)(_|$)", name)
        assert (family.type == "counter") == name.endswith("_total"), name
        assert family.type in {"counter", "gauge", "histogram"}, name


@pytest.mark.slow
def test_values(app: App) -> None:
    orders = 'table="orders"'
    assert value(app, f"hybrid_ingested_rows_total{{{orders}}}") == 4
    assert value(app, f"hybrid_filtered_messages_total{{{orders}}}") == 2
    assert value(app, f"hybrid_ingest_lag_offsets{{{orders}}}") == 3
    assert value(app, f"hybrid_ingest_lag_seconds{{{orders}}}") > 1e9, "since the epoch"
    assert value(app, f"hybrid_moves_total{{{orders}}}") == 1
    assert value(app, f'hybrid_corrections_total{{{orders},type="backfill"}}') == 1
    assert value(app, f'hybrid_runs_ended_total{{state="FAILED",{orders},type="SegmentCreationAndTarPush"}}') == 1
    assert value(app, "hybrid_queue_runs ") == 1 and 0 <= value(app, "hybrid_queue_oldest_age_seconds ") < 600
    ended = {state: value(app, f'hybrid_queries_ended_total{{state="{state}"}}') for state in
             ("DONE", "FAILED", "CANCELLED", "REFUSED")}  # fmt: skip
    assert ended == {"DONE": 1, "FAILED": 1, "CANCELLED": 0, "REFUSED": 1}
    assert value(app, 'hybrid_slow_queries_total{source="files"}') == 1
    assert value(app, "hybrid_disk_free_bytes ") < value(app, "hybrid_disk_size_bytes ")
    assert value(app, "hybrid_build_info{") == 1 and value(app, "process_start_time_seconds ") > 1e9


def test_no_lag_is_known_while_nothing_is_ingested(app: App) -> None:
    catalog = app.home.context.catalog
    catalog.serving.note_ingestion("orders", "INGESTING", None, 0)
    assert value(app, 'hybrid_ingest_lag_seconds{table="orders"}') == 0
    catalog.serving.note_ingestion("orders", "STOPPED", "Kafka is silent.", None)
    assert "hybrid_ingest_lag_seconds{" not in app.get("/metrics")
    catalog.serving.note_ingestion("orders", "INGESTING", None, 3)


def test_a_scrape_opens_each_half_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, really = [], log.open_half

    def open_half(path: Path, version: int | None = None) -> log.HalfSnapshot:
        opened.append(path.name)
        return really(path, version)

    monkeypatch.setattr(log, "open_half", open_half)
    app.get("/metrics")
    assert sorted(opened) == ["OFFLINE", "REALTIME"]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), DataError("damaged"), KeyError("name")])
def test_an_unreadable_table_is_counted(app: App, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refused(name: str) -> None:
        raise error

    assert value(app, "hybrid_tables_unreadable ") == 0
    monkeypatch.setattr(app.home.context, "spec", refused)
    assert value(app, "hybrid_tables_unreadable ") == 1 and value(app, "hybrid_queue_runs ") == 1


@pytest.mark.parametrize("error", [sa.exc.OperationalError("SELECT 1", {}, Exception("locked")), MachineError("no")])
def test_a_catalog_that_is_down_hides_only_what_it_knows(
    app: App, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def down() -> None:
        raise error

    assert value(app, "hybrid_catalog_up ") == 1
    monkeypatch.setattr(app.home.context.catalog.runs, "queue", down)
    assert value(app, "hybrid_catalog_up ") == 0 and value(app, "hybrid_disk_size_bytes ") > 0
    assert value(app, 'hybrid_ingested_rows_total{table="orders"}') == 4
    assert "hybrid_queue_runs" not in app.get("/metrics")


def test_a_half_of_an_earlier_version_has_ingested_nothing(app: App) -> None:
    act = app.home.table("orders").half(Half.REALTIME).realtime.act
    document = json.loads(to_user_metadata(RealtimeState(act, offsets={KEY: 4}, ingested=7)))
    assert from_user_metadata(json.dumps(document)).ingested == 7  # type: ignore[union-attr]
    del document["ingested"]
    assert from_user_metadata(json.dumps(document)).ingested == 0  # type: ignore[union-attr]


def check(expression: str, families: dict[str, Any]) -> None:
    """The expression is one, and names metrics and labels that exist."""
    found = parse(expression)
    assert found.selectors
    labels = set(SCRAPED)
    for selector in found.selectors:
        assert selector.metric in families or selector.metric == "up", selector.metric
        own = {*labels_of(selector.metric), *SCRAPED}
        assert set(selector.labels) <= own, selector
        labels |= own
        if selector.metric in families and not selector.is_range:
            assert families[selector.metric].type != "histogram" or "_bucket" not in selector.metric
    assert found.grouped_by <= labels


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert(rule: dict[str, Any], families: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Hybrid[A-Za-z]+", rule["alert"]) and _DURATION.fullmatch(rule.get("for", "1m"))
    check(rule["expr"], families)
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(rule["annotations"]) == {"summary", "command"} and rule["annotations"]["summary"].endswith(".")
    command = rule["annotations"]["command"]
    words = re.sub(r"\{\{ \$labels\.\w+ \}\}", "NAME", command)
    options = {word for word in words.split() if word.startswith("--")}
    found = CODE[name_of(words)]
    assert words.startswith("hybrid ") and options <= {word for param in found.params for word in param.opts}
    known = set().union(*(labels_of(one.metric) for one in parse(rule["expr"]).selectors)) | SCRAPED
    text = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= known
    template = r"\{\{ \$(?:labels\.\w+|value)(?: \| \w+)? \}\}"
    assert text.count("{{") == len(re.findall(template, text))


def test_alerts_are_documented_in_their_order() -> None:
    names = [rule["alert"] for rule in RULES]
    documented = table(reference("metrics"), "Alerts")
    assert documented.column("alert") == [f"`{name}`" for name in names] and len(set(names)) == len(names)
    for rule, helps in zip(RULES, documented.column("what helps"), strict=True):
        command = rule["annotations"]["command"].partition(" {{")[0]
        assert spans(helps)[0].startswith(command), rule["alert"]


@pytest.mark.parametrize(("title", "expression"), TARGETS, ids=[f"{title} {n}" for n, (title, _) in enumerate(TARGETS)])
def test_a_panel_s_expression(title: str, expression: str, families: dict[str, Any]) -> None:
    check(expression.replace("$__rate_interval", "5m"), families)
    assert set(re.findall(r'"\$(\w+)"', expression)) <= {one["name"] for one in DASHBOARD["templating"]["list"]}


def test_the_dashboard_can_be_imported() -> None:
    assert DASHBOARD["uid"] == "hybrid" and DASHBOARD["schemaVersion"] >= 36 and "id" not in DASHBOARD
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        own = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])}
        assert not own & places and grid["x"] + grid["w"] <= 24, panel["title"]
        places |= own
    for panel in PANELS:
        assert panel["title"] and panel["description"].endswith(".") and panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            metrics = parse(target["expr"].replace("$__rate_interval", "5m")).selectors
            assert used <= set().union(*(labels_of(one.metric) for one in metrics)) | SCRAPED, panel["title"]


def test_variables_ask_for_metrics_that_exist(families: dict[str, Any]) -> None:
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"])
            assert found is not None and found[1] in families
            assert found[2] in labels_of(found[1]) | SCRAPED


@pytest.mark.parametrize(
    "text",
    [
        "rate(a_total)", "sum by (x (a)", "a{b=c}", "a > ", "rate(a_total[5])", "sum(a))", "histogram_quantile(a)",
        "a b", "unknown(a)", "a{b=\"c\" d=\"e\"}", "by (a)", "rate(a[5m] + b)",
    ],
)  # fmt: skip
def test_mistakes_are_found(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_files_are_plain() -> None:
    for name in ("alerts.yml", "grafana.json"):
        text = Path(ROOT / "deploy" / name).read_text(encoding="utf-8")
        assert text.isascii() and text.endswith("\n") and max(map(len, text.splitlines())) <= 240
