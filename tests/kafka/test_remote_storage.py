"""What brokers say of tiered storage, and what is taken from silence."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.config.table_config import StreamConfig
from hybrid.kafka import remote_storage
from hybrid.kafka.remote_storage import may_have_remote_storage


@pytest.mark.kafka
def test_a_topic_without_it_and_one_that_nobody_knows(broker: str, topic: str) -> None:
    assert may_have_remote_storage(StreamConfig((topic,), broker)) is False
    assert may_have_remote_storage(StreamConfig((f"{topic}-never",), broker)) is True


def test_what_a_broker_tells_holds_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(value: str | None) -> Callable[..., Any]:
        settings = {"cleanup.policy": {"value": "delete"}} if value != "refused" else {}
        if value in ("true", "false"):
            settings["remote.storage.enable"] = {"value": value}
        admin = SimpleNamespace(describe_configs=lambda wanted, config_filter: {"topic": {"orders": settings}})

        def ask(brokers: str, timeout_ms: int, look: Callable[[Any], bool], security: object) -> bool:
            asked.append(brokers)
            return look(admin)

        return ask

    for broker, value, expected in (
        ("old:1", None, False),
        ("without:1", "false", False),
        ("with:1", "true", True),
        ("refused:1", "refused", True),
    ):
        monkeypatch.setattr(remote_storage, "ask_admin", answer(value))
        for _ in range(2):
            assert may_have_remote_storage(StreamConfig(("orders",), broker)) is expected
    assert asked == ["old:1", "without:1", "with:1", "refused:1"]
