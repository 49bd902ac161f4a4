"""Spark's workers write to the store (`spark.worker_files = "store"`): what goes on, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from hybrid.ingest import read
from tests.mirrors import new_url
from tests.recipes.conftest import RecipeHome
from tests.recipes.test_orders import FIRST, JOB, SECOND
from tests.s3_server import S3Server, needs_s3, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, needs_s3]


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


def test_ingestion_and_moves_go_on_and_the_rest_is_refused(
    store: S3Server, make_recipe: Callable[..., RecipeHome], monkeypatch: pytest.MonkeyPatch
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
    before = home.rows("select count(*) as n, sum(amount) as s from orders")
    for words in (JOB, ["query", "--engine", "spark", "select count(*) from orders"]):
        home.run(*words, code=1)
        assert "needs workers that share the home's folders" in home.messages, words
    assert home.rows("select count(*) as n, sum(amount) as s from orders") == before
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
