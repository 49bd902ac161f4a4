"""The orders recipe in a warehouse on an object store, read and taken over by another home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.mirrors import new_url
from tests.recipes.conftest import RecipeHome
from tests.recipes.test_orders import EVERYTHING, FIRST, JOB, SECOND, about, totals
from tests.s3_server import S3Server, needs_s3, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, needs_s3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture
def url(server: S3Server, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> str:
    """A prefix of its own, which every home of the test names."""
    monkeypatch.chdir(pytestconfig.rootpath)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    url = new_url()
    monkeypatch.setenv("HYBRID_WAREHOUSE", url)
    return url


@pytest.fixture
def other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RecipeHome:
    """Another home, which does not exist yet."""
    return RecipeHome(tmp_path / "other", capsys)


def halves(home: RecipeHome) -> dict[str, dict[str, object]]:
    return {half["half"]: half for half in home.run("warehouse", "show")["halves"]}


def definition(home: RecipeHome) -> str:
    return (home.home / "warehouse" / "orders" / "definition.json").read_text()


def test_the_recipe_end_to_end(
    url: str, server: S3Server, make_recipe: Callable[..., RecipeHome], other: RecipeHome, tmp_path: Path
) -> None:
    home = make_recipe("orders")
    home.run("ingest", "orders", "--until-caught-up")
    assert home.run("move", "orders")["segments"] == [FIRST]
    home.run(*JOB)
    assert totals(home) == about(14, 888.692)
    shown = halves(home)
    assert {half["state"] for half in shown.values()} == {"SAME"}
    rows = {
        name: DeltaTable(str(half["url"]), storage_options=server.options).to_pyarrow_table().num_rows
        for name, half in shown.items()
    }
    assert rows == {"REALTIME": 14, "OFFLINE": 7}, "other engines read the halves where they are"

    other.run("warehouse", "pull")
    assert "Another home writes it" in other.messages
    assert other.rows(EVERYTHING) == home.rows(EVERYTHING)
    assert other.run("segment", "list", "orders") == home.run("segment", "list", "orders")
    other.run("warehouse", "pull")
    assert "Everything is there already" in other.messages
    for words in (
        ["move", "orders"],
        ["table", "drop", "orders", "--yes"],
    ):
        other.run(*words, code=4)
        assert "is written by another home" in other.messages, words

    assert home.run("move", "orders")["segments"] == [SECOND]
    other.run("warehouse", "pull")
    assert other.rows(EVERYTHING) == home.rows(EVERYTHING)
    assert other.names("OFFLINE") == [FIRST, SECOND]

    other.run("warehouse", "pull", "--take-over", "--yes")
    assert "This home writes the warehouse now" in other.messages
    home.run("move", "orders", code=4)
    assert "is written by another home" in home.messages
    event = tmp_path / "later.jsonl"
    event.write_text('{"order_id":99,"customer_id":1,"order_status":"OPEN","amount":100,"ts":"1632681000000"}\n')
    home.run("kafka", "produce", home.topic, str(event), "--kafka", home.broker)
    assert other.run("ingest", "orders", "--until-caught-up")["rows"] == 1
    assert len(other.run("move", "orders")["segments"]) == 1
    (entry,) = other.run("replacement", "list", "orders")
    other.run("replacement", "revert", "orders", entry["id"], "--yes")
    assert totals(other) == about(15, 880.08)
    assert {half["state"] for half in halves(other).values()} == {"SAME"}
    home.run("ingest", "orders", "--until-caught-up", code=4)


def test_a_home_is_pushed_and_goes_on(
    url: str, monkeypatch: pytest.MonkeyPatch, make_recipe: Callable[..., RecipeHome], other: RecipeHome
) -> None:
    monkeypatch.delenv("HYBRID_WAREHOUSE")
    home = make_recipe("orders")
    home.run("ingest", "orders", "--until-caught-up")
    home.run("warehouse", "push", code=1)
    assert "the setting 'warehouse' names no store" in home.messages
    monkeypatch.setenv("HYBRID_WAREHOUSE", url)
    home.run("move", "orders", code=4)
    assert "hybrid warehouse push" in home.messages
    assert home.run("warehouse", "push")["tables"] == ["orders"]
    home.run("warehouse", "push", code=4)
    assert home.run("move", "orders")["segments"] == [FIRST]
    other.run("warehouse", "pull")
    assert other.rows(EVERYTHING) == home.rows(EVERYTHING)
    monkeypatch.delenv("HYBRID_WAREHOUSE")
    assert home.rows(EVERYTHING) == other.rows(EVERYTHING), "reading needs no store"
    home.run("move", "orders", code=1)
    assert "but the setting 'warehouse' is not set" in home.messages


def test_drops_and_definitions(url: str, make_recipe: Callable[..., RecipeHome], other: RecipeHome) -> None:
    home = make_recipe("orders")
    home.run("ingest", "orders", "--until-caught-up")
    files = "data/orders/orders"
    config = ["--schema", f"{files}_schema.json", "--config", f"{files}_table.json", "--kafka", home.broker]
    changes = ["--set", f"stream.kafka.topic.name={home.topic}", "--set", "/tableIndexConfig/loadMode=HEAP"]
    home.run("table", "apply", *config, *changes)
    other.run("warehouse", "pull")
    assert '"HEAP"' in definition(other) and definition(other) == definition(home)
    home.run("table", "drop", "orders", "--yes")
    other.run("warehouse", "pull")
    assert other.run("table", "list") == []
    home.run("table", "undrop", "orders")
    other.run("warehouse", "pull")
    assert other.rows(EVERYTHING) == home.rows(EVERYTHING)
    home.run("table", "drop", "orders", "--purge", "--yes")
    fresh = make_recipe("orders")
    fresh.run("ingest", "orders", "--until-caught-up")
    other.run("warehouse", "pull")
    assert other.rows(EVERYTHING) == fresh.rows(EVERYTHING)
