"""A server bounds what it takes up at once, and every path that answers from tables keeps its bounds."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.settings import load_settings
from hybrid.errors import NotFoundError, QueryError
from hybrid.home.accounts import Account, Right
from hybrid.home.running_queries import RunningQueries
from hybrid.progress import Silent
from hybrid.serve.admission import Admission
from hybrid.serve.app import build_app
from hybrid.serve.authentication import asking, may_operate, who_asks
from hybrid.serve.context import ServerLimits

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
_RECURSIVE = "with recursive t(n) as (select 1 union all select n + 1 from t where n < {rows}) "
NUMBERS = _RECURSIVE + "select n from t limit 100000"
ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r"


class _Silent:
    """A request whose client says nothing more, or goes."""

    def __init__(self, goes_s: float = 3600) -> None:
        self._goes_s = goes_s

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(self._goes_s)
        return {"type": "http.disconnect"}


def _client(home: Path, **limits: Any) -> tuple[Hybrid, TestClient]:
    hy = Hybrid(load_settings(home=home), Silent())
    hy.create_table(TableDocuments.read(DATA / "orders_schema.json", [DATA / "orders_offline_table.json"]))
    return hy, TestClient(build_app(hy, ServerLimits(**limits), "http://x", hosts=None))


@pytest.mark.slow
def test_the_verb_query_keeps_the_server_s_bounds(home: Path) -> None:
    hy, client = _client(home, query_rows=10, query_timeout_ms=2000)
    with client:
        many = client.post("/verbs/query", json={"sql": NUMBERS.format(rows=50)})
        began = time.monotonic()
        slow = client.post("/verbs/query", json={"sql": ENDLESS})
        own = client.post("/verbs/query", json={"sql": f"SET timeoutMs = 999999999; {ENDLESS}"})
        took = time.monotonic() - began
        few = client.post("/verbs/query", json={"sql": NUMBERS.format(rows=5)})
    hy.close()
    assert many.status_code == 400 and "more than 10 rows" in many.json()["error"]
    assert "stopped after 2000 ms" in slow.json()["error"] and "stopped after 2000 ms" in own.json()["error"]
    assert took < 20 and len(few.json()["rows"]) == 5


@pytest.mark.slow
def test_the_verb_query_can_be_cancelled(home: Path) -> None:
    hy, client = _client(home)
    with client:
        answers: list[Any] = []
        headers = {"X-Request-Id": "verb-1"}
        asks = threading.Thread(
            target=lambda: answers.append(client.post("/verbs/query", json={"sql": ENDLESS}, headers=headers))
        )
        asks.start()
        while client.delete("/query/verb-1").status_code != 200:
            time.sleep(0.02)
        asks.join(20)
    hy.close()
    assert "cancelled" in answers[0].json()["error"]


@pytest.mark.slow
def test_a_result_is_bounded_by_its_bytes(home: Path) -> None:
    hy, client = _client(home, query_bytes=100_000)
    with client:
        sql = NUMBERS.format(rows=5000).replace("select n from", "select repeat('x', 1000) from")
        (large,) = client.post("/query/sql", json={"sql": sql}).json()["exceptions"]
        lists = NUMBERS.format(rows=20_000).replace("select n from", "select list(n) from")
        (nested,) = client.post("/query/sql", json={"sql": lists.replace(" limit 100000", "")}).json()["exceptions"]
        small = client.post("/query/sql", json={"sql": NUMBERS.format(rows=1000)}).json()
    hy.close()
    assert "larger than 100000 bytes" in large["message"] and "query_result_bytes_max" in large["message"]
    assert "larger than 100000 bytes" in nested["message"]
    assert len(small["resultTable"]["rows"]) == 1000


def test_only_so_many_statements_wait_and_an_account_has_its_share() -> None:
    async def run() -> tuple[int, list[Any]]:
        admission = Admission(most=6, most_of_one=3, running_of_one=1)
        free, at_once, most = threading.Event(), [0], [0]

        def work() -> str:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
            free.wait(10)
            at_once[0] -= 1
            return "done"

        def asked(account: str) -> asyncio.Task[str]:
            return asyncio.create_task(admission.run(_Silent(), account, work, lambda: None))  # type: ignore[arg-type]

        tasks = [asked("a") for _ in range(5)] + [asked("b")]
        await asyncio.sleep(0.1)
        free.set()
        return most[0], await asyncio.gather(*tasks, return_exceptions=True)

    most, found = asyncio.run(run())
    refused = [one for one in found if isinstance(one, QueryError)]
    assert most == 2 and [one.pinot_code for one in refused] == [429, 429]
    assert "account 'a'" in str(refused[0]) and found.count("done") == 4


def test_a_statement_ends_when_its_client_has_gone() -> None:
    async def run() -> float:
        left, began = threading.Event(), time.monotonic()
        request: Any = _Silent(0.05)
        await Admission().run(request, None, lambda: left.wait(10), left.set)
        return time.monotonic() - began

    assert asyncio.run(run()) < 5


def test_an_account_cancels_its_own_statements_only() -> None:
    queries, said = RunningQueries(), list[str]()
    with pytest.raises(QueryError, match="cancelled"), queries.running("id", "alice") as running:
        running(lambda: said.append("interrupted"))
        with pytest.raises(NotFoundError):
            queries.cancel("id", "mallory")
        assert not said
        queries.cancel("id", "alice")
        raise QueryError("interrupted")
    assert said == ["interrupted"]


def test_an_id_that_runs_is_refused_for_a_second_statement() -> None:
    queries = RunningQueries()
    with queries.running("id", "alice") as running:
        running(lambda: None)
        with pytest.raises(QueryError, match="runs already"), queries.running("id", "mallory"):
            raise AssertionError
        queries.cancel("id")
    with queries.running("id"):
        pass


def test_the_right_of_who_asks_is_known() -> None:
    with asking(Account("reader", Right.READ, b"", "")):  # type: ignore[arg-type]
        assert who_asks() == "reader" and not may_operate()
    with asking(Account("worker", Right.OPERATE, b"", "")):  # type: ignore[arg-type]
        assert may_operate()
    assert who_asks() is None and may_operate()
