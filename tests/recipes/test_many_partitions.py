"""A topic of more partitions than Spark's tasks: each task reads several, one after the other."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from hybrid.kafka.topics import TopicRecord, create_topic, produce
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PARTITIONS, SEAL_ROWS = 30, 5
DATA = Path(__file__).resolve().parents[2] / "data" / "orders"


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RecipeHome:
    return RecipeHome(tmp_path / "home", capsys)


def messages(first: int) -> list[TopicRecord]:
    """Of partition p, p % 12 rows, and a message that is no row in the middle of every fourth one."""
    found = []
    for partition in range(PARTITIONS):
        for number in range(partition % 12):
            if partition % 4 == 0 and number == 2:
                found.append(TopicRecord(b"{", partition=partition))
            row = {"order_id": first + 1000 * partition + number, "ts": 1_632_463_351_000 + number}
            found.append(TopicRecord(json.dumps(row).encode(), partition=partition))
    return found


def test_rows_of_many_partitions_are_in_segments_of_their_own(home: RecipeHome, broker: str, tmp_path: Path) -> None:
    topic = f"wide-{tmp_path.name[-8:].replace('_', '-')}"
    create_topic(broker, topic, PARTITIONS)
    config = json.loads((DATA / "orders_table.json").read_text())
    stream = config["tableIndexConfig"]["streamConfigs"]
    stream["stream.kafka.topic.name"], stream["realtime.segment.flush.threshold.rows"] = topic, SEAL_ROWS
    (tmp_path / "table.json").write_text(json.dumps(config))
    schema, table = str(DATA / "orders_schema.json"), str(tmp_path / "table.json")
    home.run("table", "create", "--kafka", broker, "--schema", schema, "--config", table)
    expected = Counter[tuple[int, int]]()
    for first in (0, 100):
        produce(broker, topic, messages(first))
        home.run("ingest", "orders", "--until-caught-up")
        expected.update(
            (partition, first + 1000 * partition + number)
            for partition in range(PARTITIONS)
            for number in range(partition % 12)
        )
    rows = home.rows('select "$partition", order_id from orders limit 10000')
    assert Counter((row["$partition"], row["order_id"]) for row in rows) == expected
    segments = home.rows(
        'select "$segmentName", "$partition", count(*) as n, min("$offset") as low, max("$offset") as high '
        'from orders group by "$segmentName", "$partition" limit 10000'
    )
    assert len({row["$segmentName"] for row in segments}) == len(segments), "a segment has rows of one partition"
    assert all(
        row["n"] <= SEAL_ROWS and int(row["$segmentName"].split("__")[1]) == row["$partition"] for row in segments
    )
    for partition in range(PARTITIONS):
        spans = sorted((row["low"], row["high"]) for row in segments if row["$partition"] == partition)
        assert all(one[1] < next_one[0] for one, next_one in pairwise(spans)), "in offset order"
    rejected = home.run("rejected", "list", "orders")
    assert len(rejected) == 2 * len([p for p in range(PARTITIONS) if p % 4 == 0 and p % 12 > 2])
