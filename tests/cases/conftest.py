"""Real tables for the tests of cases: a topic, a folder, and the session's Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hybrid.kafka.topics import create_topic
from hybrid.lake.commit_context import CommitContext
from tests.cases.tables import LiveTable, layout_in, table_spec


@pytest.fixture
def new_table(broker: str, workbench: CommitContext, tmp_path: Path) -> Callable[..., LiveTable]:
    """Makes a table on a new topic of `partitions`; `topic=False` leaves the topic to the test."""
    return partial(make_table, broker, workbench, tmp_path)


def make_table(
    broker: str, workbench: CommitContext, within: Path, *, partitions: int = 1, topic: bool = True, **options: object
) -> LiveTable:
    """A table in a folder of its own below `within`."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    if topic:
        create_topic(broker, name, partitions)
    folder = within / name
    folder.mkdir()
    return LiveTable(table_spec(broker, name, **options), layout_in(folder), workbench).create()
