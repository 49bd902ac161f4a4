"""A connector that reads some partitions of two topics, after a history of both: by DDL, as a user does it."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from hybrid.kafka.topics import TopicRecord, create_topic, produce
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DDL = """
CREATE TABLE both (id BIGINT NOT NULL, note VARCHAR) WITH ('connectors' = '[
  {"labels": ["old"], "transport": {"name": "delta_table_input", "config": {"uri": "URI", "mode": "snapshot"}}},
  {"name": "live", "start_after": "old", "format": {"name": "json"}, "transport": {"name": "kafka_input", "config":
    {"topics": ["FIRST", "SECOND"], "partitions": [0], "start_from": "after_history"}}}]');
"""


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RecipeHome:
    return RecipeHome(tmp_path / "home", capsys)


def test_two_topics_after_a_history_of_both(home: RecipeHome, broker: str, tmp_path: Path) -> None:
    first, second = (f"t-{uuid.uuid4().hex[:8]}" for _ in range(2))
    create_topic(broker, first, 2)

    def send(topic: str, *ids: int, partition: int = 0) -> None:
        messages = [TopicRecord(json.dumps({"insert": {"id": n}}).encode(), partition=partition) for n in ids]
        produce(broker, topic, messages)

    def seen() -> list[int]:
        return [one["id"] for one in home.rows("select id from both order by id limit 100")]

    history = {"id": [1, 2, 11], "topic": [first, first, second], "partition": [0, 0, 0], "offset": [0, 1, 0]}
    write_deltalake(str(tmp_path / "old"), pa.table(history))
    (tmp_path / "both.sql").write_text(
        DDL.replace("URI", str(tmp_path / "old")).replace("FIRST", first).replace("SECOND", second)
    )
    home.run("table", "create", "-f", str(tmp_path / "both.sql"), "--kafka", broker)
    assert home.run("table", "show", "both")["topic"] == f"{first},{second}"

    # Where a topic starts that is not there nobody can tell: the connector waits for it.
    home.run("ingest", "both", "--until-caught-up", code=1)
    assert f"Topic '{second}' does not exist at {broker}" in home.messages and seen() == [1, 2, 11]
    create_topic(broker, second)
    send(first, 1, 2, 3)
    send(first, 99, partition=1)
    send(second, 11, 12)
    home.run("ingest", "both", "--until-caught-up")
    assert f"reads topics '{first}' and '{second}' from offset (by partition) " in home.messages
    assert f"{first}/0: 2" in home.messages and f"{second}/0: 1" in home.messages
    assert seen() == [1, 2, 3, 11, 12], "each once, and nothing of a partition that is not named"
    found = {one["topic"]: one["name"].split("__")[1] for one in home.run("segment", "list", "both") if "topic" in one}
    assert found == {first: "0", second: "10000"}

    # A pause holds both where they are, and a reset moves the one that is named.
    home.run("connector", "pause", "both", "live")
    send(first, 4)
    send(second, 13)
    home.run("ingest", "both", "--until-caught-up")
    assert seen() == [1, 2, 3, 11, 12]
    home.run("connector", "reset", "both", "live", "--to", "earliest", "--yes", code=2)
    assert f"Table 'both' reads topics '{first}' and '{second}': say which one is reset." in home.messages
    told = home.run("connector", "reset", "both", second, "--to", "latest", "--yes")
    assert (told["topic"], told["skipped"], [one["to"] for one in told["partitions"]]) == (second, 1, [3])
    home.run("connector", "start", "both", "live")
    send(second, 14)
    assert seen() == [1, 2, 3, 4, 11, 12, 14]
    home.run("ingest", "both", "--until-caught-up")
    assert seen() == [1, 2, 3, 4, 11, 12, 14]

    file = tmp_path / "both.sql"
    file.write_text(file.read_text().replace('"partitions": [0]', '"partitions": [0, 1]'))
    home.run("table", "apply", "-f", str(file), "--kafka", broker, code=1)
    assert "holds rows under the partitions that it reads, which cannot be changed" in home.messages
