"""Spark's workers read and write the store (`spark.worker_files = "store"`): what goes on, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from hybrid.ingest import read
from hybrid.store.mirror import mirror_at
from tests.mirrors import new_url
from tests.recipes.conftest import RecipeHome
from tests.recipes.test_orders import CORRECTED, FIRST, JOB, SECOND
from tests.s3_server import S3Server, needs_s3, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, needs_s3]

FLOW = "CREATE FLOW live AS INSERT INTO orders BY NAME SELECT * FROM STREAM read_files('/data', format => 'json');"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture
def store(server: S3Server, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> S3Server:
    monkeypatch.chdir(pytestconfig.rootpath)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HYBRID_WAREHOUSE", new_url())
    monkeypatch.setenv("HYBRID_SPARK_WORKER_FILES", "store")
    return server


def test_all_goes_on_but_what_reads_files_of_a_user(
    store: S3Server, make_recipe: Callable[..., RecipeHome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home, brought = make_recipe("orders"), list[int]()
    bring = read.bring_uploaded

    def counted(half: Path, entries: Sequence[Mapping[str, Any]]) -> None:
        brought.append(len(entries))
        bring(half, entries)

    monkeypatch.setattr(read, "bring_uploaded", counted)
    home.run("ingest", "orders", "--until-caught-up")
    assert sum(brought) > 0, "workers uploaded the files, and the driver brought them"
    assert home.run("move", "orders")["segments"] == [FIRST]
    home.run(*JOB)
    assert [row["amount"] for row in home.rows("select * from orders order by order_id limit 7")] == CORRECTED
    counted_rows = ["query", "select count(*) as n, sum(amount) as s from orders"]
    assert home.run(*counted_rows, "--engine", "spark") == home.run(*counted_rows)
    mirror = mirror_at(home.home / "warehouse" / "orders")
    assert mirror is not None
    assert [item.key for item in mirror.client.list_below("orders") if ".plans/" in item.key] == [], "nothing is staged"
    flow = tmp_path / "flow.sql"
    flow.write_text(FLOW)
    home.run("flow", "run", str(flow), code=1)
    assert "needs workers that share the home's folders" in home.messages
    assert home.run("move", "orders")["segments"] == [SECOND]
    for task in ("OptimizeTask", "VacuumTask"):
        home.run("task", "run", "orders", task)
    for half in home.run("warehouse", "show")["halves"]:
        assert half["state"] == "SAME"
        DeltaTable(str(half["url"]), storage_options=store.options).to_pyarrow_table()


def test_workers_that_write_to_no_store(
    store: S3Server, make_recipe: Callable[..., RecipeHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HYBRID_WAREHOUSE")
    with pytest.raises(AssertionError, match="but the tables of this home are on no store"):
        make_recipe("orders").run("ingest", "orders", "--until-caught-up")
