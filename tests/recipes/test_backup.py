"""A restored orders recipe goes on from its offsets, or says which ones Kafka no longer holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from hybrid.kafka.clients import admin_client
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

COUNT = "select count(*) as n, sum(order_id) as ids from orders"
MORE = [
    '{"order_id": 9001, "customer_id": 1, "order_status": "OPEN", "amount": 1.0, "ts": 1632467100000}',
    '{"order_id": 9002, "customer_id": 1, "order_status": "OPEN", "amount": 2.0, "ts": 1632467160000}',
]


def restored(
    recipe: RecipeHome, store: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[RecipeHome, dict[str, Any]]:
    new = RecipeHome(target, capsys)
    return new, new.run("backup", "restore", str(store))


def test_a_restored_home_goes_on_from_its_offsets(
    make_recipe: Callable[..., RecipeHome], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, store = make_recipe("orders"), tmp_path / "backups"
    recipe.run("ingest", "orders", "--until-caught-up")
    recipe.run("move", "orders")
    (before,) = recipe.rows(COUNT)
    made = recipe.run("backup", "create", str(store))
    (tmp_path / "more.jsonl").write_text("\n".join(MORE), encoding="utf-8")
    recipe.run("kafka", "produce", recipe.topic, str(tmp_path / "more.jsonl"), "--kafka", recipe.broker)
    recipe.run("ingest", "orders", "--until-caught-up")
    (after,) = recipe.rows(COUNT)
    assert after["n"] == before["n"] + 2

    new, report = restored(recipe, store, tmp_path / "new", capsys)
    assert not [warning for warning in report["warnings"] if "orders" in warning]
    assert new.rows(COUNT) == [after]  # what was not committed at the backup comes from Kafka
    as_of = ("--as-of", made["tables"]["orders"])
    assert new.run("query", COUNT, *as_of) == recipe.run("query", COUNT, *as_of) == [before]
    assert new.run("ingest", "orders", "--until-caught-up")["rows"] == 2
    new.run("move", "orders", "--max-buckets", "all")
    assert new.rows(COUNT) == [after] and recipe.rows(COUNT) == [after]

    with admin_client(recipe.broker, 10_000) as admin:
        admin.delete_records({TopicPartition(recipe.topic, 0): 15})
    late, report = restored(recipe, store, tmp_path / "late", capsys)
    (gap,) = [warning for warning in report["warnings"] if "orders" in warning]
    assert f"topic '{recipe.topic}', partition 0: Kafka no longer holds the offsets 14 to 14 (1 offset)" in gap
    late.run("ingest", "orders", "--until-caught-up", code=1)
    assert "Offsets expired" in late.messages and "hybrid connector reset" in late.messages
    late.run("connector", "reset", "orders", "--to", "earliest", "--yes")
    assert late.run("ingest", "orders", "--until-caught-up")["rows"] == 1
    assert late.rows(COUNT)[0]["n"] == before["n"] + 1
