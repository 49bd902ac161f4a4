"""Pinot's query options: each that would change an answer is done, or said to have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import pytest

from hybrid.query.options import apply_options, option_warnings
from hybrid.query.result import QueryResult
from tests.query.halves import orders_spec
from tests.serve.app import App


def said(options: Mapping[str, str], upsert: bool = False) -> list[str]:
    return list(
        option_warnings({name.lower(): value for name, value in options.items()}, lambda: [orders_spec(upsert=upsert)])
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numGroupsLimit", "10"), ("minServerGroupTrimSize", "5"), ("maxRowsInJoin", "1"), ("joinOverflowMode", "X"),
        ("maxRowsInWindow", "3"), ("useLiteMode", "true"), ("getCursor", "true"), ("maxQueryResponseSizeBytes", "10"),
        ("enableNullHandling", "true"), ("multiStageLeafLimit", "10"), ("skipUpsertView", "true"),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_said(name: str, value: str) -> None:
    (one,) = said({name: value})
    assert one.startswith(f"Option {name} has no effect: ")


def test_what_changes_no_answer_is_passed_over() -> None:
    assert (
        said({"useMultistageEngine": "true", "maxExecutionThreads": "2", "getCursor": "false", "timeoutMs": "5"}) == []
    )
    assert said({"enableNullHandling": "false", "skipUpsert": "true", "explainPlanVerbose": "true"}) == []
    assert len(said({"skipUpsert": "true"}, upsert=True)) == 1 and said({"skipUpsert": "false"}, upsert=True) == []


def test_dropped_results() -> None:
    result = QueryResult(["a"], ["INT"], [(1,)])
    assert apply_options(result, {"dropresults": "false"}, list) is result
    assert apply_options(result, {"dropresults": "true"}, list).rows == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"sql": "SET as_of = '2021-09-24T07:00:00Z'; select 1"}, "'as_of' is no option. Did you mean 'asOf'?"),
        ({"sql": "select 1 OPTION(timeout_ms=5)"}, "'timeout_ms' is no option. Did you mean 'timeoutMs'?"),
        ({"sql": "select 1", "queryOptions": "as-of=2021"}, "'as-of' is no option. Did you mean 'asOf'?"),
        ({"sql": "select 1", "queryOptions": "plan=x"}, "queryOptions: 'plan' counts in the statement only."),
        ({"sql": "select 1", "queryOptions": "Engine=spark"}, "queryOptions: 'engine' counts in the statement only."),
        ({"sql": "select 1", "asOf": "2021-09-24T07:00:00Z"}, "'asOf' beside 'sql' has no effect."),
        ({"sql": "select 1", "as_of": "2021-09-24T07:00:00Z"}, "'as_of' beside 'sql' has no effect."),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(orders: App, body: dict[str, str], message: str) -> None:
    """The answer would be that of another moment, plan or engine than was asked for."""
    (exception,) = orders.ok("POST", "/query/sql", body)["exceptions"]
    assert exception["errorCode"] == 700 and message in exception["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/query/sql?sql=select+1&asOf=2021-09-24T07:00:00Z"),
        ("GET", "/sql?sql=select+1&asOf=2021-09-24T07:00:00Z"),
        ("POST", "/query/sql?asOf=2021-09-24T07:00:00Z"),
    ],
)
def test_an_option_in_the_address_is_refused(orders: App, method: str, path: str) -> None:
    (exception,) = orders.ok(method, path, None if method == "GET" else {"sql": "select 1"})["exceptions"]
    assert exception["errorCode"] == 700 and "'asOf' beside 'sql' has no effect." in exception["message"]


@pytest.mark.slow
def test_an_export_reads_one_option_of_its_address(orders: App) -> None:
    sql, moment = "sql=select+1+x+from+orders+limit+1", quote(str(orders.home.query("select 1 from orders").revision))
    status, document = orders.call("GET", f"/query/export?{sql}&as_of={moment}")
    assert status == 400 and "'as_of' beside 'sql' has no effect." in document["error"]
    assert orders.call("POST", f"/query/export?asOf={moment}", {"sql": "select 1 x from orders"})[0] == 400
    assert orders.call("GET", f"/query/export?{sql}&asOf={moment}&x=1") == (200, "x\n1\n")


@pytest.mark.slow
def test_other_keys_of_clients_have_no_effect(orders: App) -> None:
    body = {"sql": "select 1", "trace": True, "debugOptions": "x=1", "queryOptions": "useMultistageEngine=true"}
    assert orders.ok("POST", "/query/sql?trace=true", body)["exceptions"] == []
    assert orders.ok("GET", "/query/sql?sql=select+1&queryOptions=timeoutMs%3D5000&x=1")["exceptions"] == []


@pytest.mark.slow
@pytest.mark.parametrize("place", ["SET {}=true; {}", "{1} OPTION({0}=true)", "queryOptions"])
def test_options_in_every_place(orders: App, place: str) -> None:
    sql = "select order_id from orders order by order_id"
    for name in ("dropResults", "enableNullHandling"):
        body = (
            {"sql": sql, "queryOptions": f"{name}=true"}
            if place == "queryOptions"
            else {"sql": place.format(name, sql)}
        )
        found = orders.ok("POST", "/query/sql", body)
        assert found["exceptions"] == [] and found["resultTable"]["dataSchema"]["columnNames"] == ["order_id"]
        assert len(found["resultTable"]["rows"]) == (0 if name == "dropResults" else 4)
        assert any(name in one for one in found["warnings"]) is (name == "enableNullHandling")


@pytest.mark.slow
def test_parameters_of_a_request(orders: App) -> None:
    sql = "select order_id from orders where customer = :who and order_id > :n order by order_id"
    for path in ("/query/sql", "/sql"):
        for who, rows in (("ada", [[3], [4]]), ("' or '1'='1", []), ("o'hara", [])):
            for _ in range(3):  # from the cache at last, perhaps at once
                found = orders.ok("POST", path, {"sql": sql, "params": {"who": who, "n": 2}})
                assert found["exceptions"] == [] and found["resultTable"]["rows"] == rows
    verb = orders.ok("POST", "/verbs/query", {"sql": "select ? + ? as n from orders limit 1", "params": [1, 2]})
    assert verb["rows"] == [[3]]
    _, csv = orders.call("POST", "/query/export", {"sql": sql, "params": {"who": "ada", "n": 3}})
    assert csv == "order_id\n4\n"
    for params, words in (({}, "Parameter 'who' has no value."), ({"who": 1, "n": 1, "x": 1}, "no parameter 'x'")):
        (error,) = orders.ok("POST", "/query/sql", {"sql": sql, "params": params})["exceptions"]
        assert error["errorCode"] == 700 and words in error["message"]
    status, _ = orders.call("POST", "/query/sql", {"sql": sql, "params": "who"})
    assert status in (400, 422)
