"""Other engines are asked the same statements in their dialects, and their answers are held to the same oracle."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serving import report
from benchmarks.serving.bare import Bare
from benchmarks.serving.chdb import Chdb, ChdbEndpoint
from benchmarks.serving.chdb import library as chdb_library
from benchmarks.serving.http import Endpoint, Rows
from benchmarks.serving.loaded import HOST, Loaded, Unavailable, fetch_once
from benchmarks.serving.measure import Oracle, latency
from benchmarks.serving.questdb import QuestDb, QuestDbEndpoint
from benchmarks.serving.questdb import library as questdb_library
from benchmarks.serving.run import read_plan
from benchmarks.serving.workload import BY_NAME, STATEMENTS, Sizes, make_events

SIZES = Sizes(2_000)
EVENTS = make_events(SIZES)
QUESTDB, CHDB = QuestDbEndpoint(HOST, 1), ChdbEndpoint(HOST, 1)


def as_questdb(rows: Rows, names: tuple[str, ...]) -> bytes:
    """The rows as QuestDB writes them: keys are symbols, times are ISO 8601."""
    types = {"ts": "TIMESTAMP", "order_id": "SYMBOL", "customer_id": "SYMBOL"}
    columns = [{"name": name, "type": types.get(name, "DOUBLE")} for name in names]
    return json.dumps({"columns": columns, "dataset": [list(map(_as_text, names, row)) for row in rows]}).encode()


def _as_text(name: str, value: Any) -> Any:
    if name == "ts":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(value) if name in {"order_id", "customer_id"} else value


def test_each_dialect_has_every_statement() -> None:
    texts = {name: QUESTDB.dialect(statement.text) for name, statement in BY_NAME.items()}
    assert "distinctcount" not in "".join(texts.values())
    assert texts["count"] == "select count(*) from {table} where ts >= {p}000"
    assert "ts >= {p}000 and ts < {hour}000" in texts["one-hour group-by"]
    assert texts["customer history"].count("000") == 0
    assert CHDB.dialect(BY_NAME["distinct count"].text) == "select uniqExact(customer_id) from {table} where ts >= {p}"
    for statement in STATEMENTS:
        assert Endpoint(HOST, 1).dialect(statement.text) == statement.text


def test_answers_of_questdb_are_read_as_the_oracle_has_them() -> None:
    names = ("order_id", "customer_id", "order_status", "amount", "ts")
    key = int(EVENTS.order_id[7])
    expected = BY_NAME["key lookup"].answer(EVENTS, key)
    oracle = Oracle({"orders": EVENTS})
    assert oracle.check(QUESTDB, "orders", [("key lookup", key, as_questdb(expected, names))]) == 0


@pytest.mark.parametrize("wrong", ["a row less", "another value", "another order", "an error"])
def test_a_wrong_answer_of_a_peer_is_counted_and_shown(wrong: str) -> None:
    names = ("order_id", "order_status", "amount", "ts")
    customer = int(EVENTS.customer_id[0])
    rows = BY_NAME["customer history"].answer(EVENTS, customer)
    assert len(rows) > 1
    changed = {
        "a row less": rows[1:],
        "another value": [[*rows[0][:2], rows[0][2] + 0.25, rows[0][3]], *rows[1:]],
        "another order": rows[::-1],
    }
    answer = as_questdb(changed[wrong], names) if wrong in changed else b'{"query":"x","error":"no such table"}'
    oracle = Oracle({"orders": EVENTS})
    assert oracle.check(QUESTDB, "orders", [("customer history", customer, answer)]) == 1
    assert oracle.wrong == {"orders": 1}
    assert f"customer_id = '{customer}'" in oracle.examples[0]


def test_answers_of_chdb_are_read_as_they_come() -> None:
    assert CHDB.rows(b'{"meta":[],"data":[[3,"PAID",1.5]],"rows":1}') == [[3, "PAID", 1.5]]
    assert CHDB.rows(b'{"exceptions":["Code: 60"]}') is None


def result(count: float, lookup: float, qps: float) -> dict[str, Any]:
    ms = {name: {"median": 5.0} for name in BY_NAME} | {"count": {"median": count}, "key lookup": {"median": lookup}}
    one, mixed = {"ms": ms, "wrong": 0, "answers": 10}, {"qps": qps, "wrong": 0, "answers": 10}
    return {"append": {"one": one, "mixed": mixed}}


PART = {
    "at": "2026-01-01",
    "commit": "abc",
    "machine": {"cpu": "x", "processors": 2, "memory_gib": 4, "system": "Linux", "python": "3"},
    "versions": {"product": "hybrid 1", "questdb": "QuestDB 9", "chdb": "chdb 4"},
    "sizes": {"rows": 10, "rounds": 1, "warm_rounds": 1, "mixed_seconds": 1},
    "systems": {"product": result(2.0, 1.5, 300), "questdb": result(0.5, 1.0, 200), "chdb": result(4.0, 6.0, 600)},
}


def test_lost_cases_are_the_worst_first_and_before_all_others() -> None:
    lost = report.lost_cases(PART)
    assert [(round(times, 2), case.split(",")[0], name) for times, case, name, _, _ in lost] == [
        (4.0, "count", "questdb"),
        (2.0, "all eight", "chdb"),
        (1.5, "key lookup", "questdb"),
    ]
    text = report.markdown({"peers": PART})
    first, table = text.index("| count | 2.00 | QuestDB 9 | 0.50 | 4.00 |"), text.index("| ms | hybrid 1")
    assert first < table
    assert "Wrong answers: product 0 of 20, questdb 0 of 20, chdb 0 of 20." in text


def test_a_report_without_lost_cases_says_so() -> None:
    systems = {"product": result(1.0, 1.0, 900), "chdb": result(4.0, 6.0, 600)}
    text = report.markdown({"peers": {**PART, "systems": systems}})
    assert "Lost cases, the worst first:\n\nnone." in text
    text = report.markdown({"peers": {**PART, "systems": {"chdb": result(4.0, 6.0, 600)}}})
    assert "the product was not measured." in text and "none." not in text


def test_a_system_that_cannot_be_run_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(QuestDb, "missing", staticmethod(lambda: "java not found"))
    plan, _ = read_plan(["--systems", "product,questdb,chdb", "--parts", "peers"])
    assert plan.systems == ("product", "chdb")
    assert "questdb is left out: java not found." in capsys.readouterr().err


@pytest.mark.process
def test_a_library_is_fetched_once_and_whole(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "library"
    with pytest.raises(Unavailable, match="no-such-command"):
        fetch_once(folder, lambda part: ["no-such-command", str(part)])
    with pytest.raises(Unavailable):
        fetch_once(folder, lambda part: ["false"])
    assert not folder.exists(), "a failed fetch leaves nothing that looks whole"
    fetch_once(folder, lambda part: ["cp", __file__, str(part)])
    fetch_once(folder, lambda part: ["false"])
    assert [path.name for path in folder.iterdir()] == [Path(__file__).name]


def _peers() -> list[Any]:
    marks = {
        QuestDb: pytest.mark.skipif(not questdb_library().exists(), reason="QuestDB was not fetched"),
        Chdb: pytest.mark.skipif(not chdb_library().exists(), reason="chdb was not installed"),
        Bare: (),
    }
    return [pytest.param(kind, marks=mark, id=kind.name) for kind, mark in marks.items()]


@pytest.mark.process
@pytest.mark.parametrize("kind", _peers())
def test_every_answer_of_a_loaded_server_is_right(kind: type[Loaded], tmp_path: Path) -> None:
    with kind(tmp_path, {"orders": EVENTS}) as system:
        oracle = Oracle({"orders": EVENTS})
        found = latency(system.endpoint, oracle, "orders", SIZES, rounds=3, warm=1)
        assert (found["wrong"], found["answers"]) == (0, 4 * len(STATEMENTS)), oracle.examples
        process = system._process
    assert process.poll() is not None, "the server was left running"
