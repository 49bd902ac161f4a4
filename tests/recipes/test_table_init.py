"""A first table of one's own: inferred documents create it as they are, and it takes every record of the sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.kafka.topics import create_topic, produce
from tests.operations.inference.test_files import RIDES, write_rides
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RecipeHome:
    return RecipeHome(tmp_path / "home", capsys)


def created(home: RecipeHome, report: dict[str, object]) -> list[str]:
    """Creates the table from the written files, unchanged; the files."""
    files = [str(path) for path in report["files"]]  # type: ignore[attr-defined]
    schema, *configs = [path for path in files if path.endswith(".json")]
    home.run("table", "create", "--schema", schema, *(word for path in configs for word in ("--config", path)))
    return files


def test_a_topic(home: RecipeHome, broker: str, topic: str, tmp_path: Path) -> None:
    messages = [json.dumps(ride).encode() for ride in RIDES]
    produce(broker, topic, [*messages[:6], b"no JSON", *messages[6:]])
    create_topic(broker, f"{topic}-empty")
    words = ("table", "init", topic, "--kafka", broker, "--name", "rides")
    report = home.run(*words, "--key", "ride_id", "-o", str(tmp_path / "out"))
    assert (report["records"], report["malformed"], report["rejected"]) == (12, 1, 0)
    assert any("partition 0, offset 6" in note for note in report["notes"])
    few = home.run(*words, "--sample", "4")
    assert few["records"] == 4 and "4 messages of about 13" in few["notes"][0]
    created(home, report)
    home.run("ingest", "rides", "--until-caught-up")
    assert home.rows("select count(*) as n, sum(riders) as riders, max(ts) as last from rides") == [
        {"n": 12, "riders": 66, "last": RIDES[-1]["ts"]}
    ]
    assert [row["offset"] for row in home.run("rejected", "list", "rides")] == [6]
    home.run(*words, "-o", str(tmp_path / "out"), code=4)
    home.run("table", "init", f"{topic}-empty", "--kafka", broker, code=1)
    assert "has no messages to infer columns from" in home.messages
    home.run("table", "init", f"{topic[:-1]}", "--kafka", broker, code=1)
    assert "does not exist at" in home.messages and topic in home.messages
    statement = tmp_path / "rides.sql"
    statement.write_text(home.run(*words[:-1], "stated", "--ddl")["ddl"])
    home.run("table", "create", "-f", str(statement))
    home.run("ingest", "stated", "--until-caught-up")
    assert home.rows("select count(*) as n from stated") == [{"n": 12}]


@pytest.mark.parametrize("ending", [".csv", ".json", ".jsonl", ".parquet", ".orc", ".avro"])
def test_a_file(home: RecipeHome, tmp_path: Path, ending: str) -> None:
    path = write_rides(tmp_path / "in", ending)
    report = home.run("table", "init", str(path), "-o", str(tmp_path / "out"))
    *_, job = created(home, report)
    home.run("job", "run", job)
    rows = home.rows("select ride_id, ts, fare, riders, late, tags, note from rides order by ts limit 20")
    expected = [{name: ride[name] for name in rows[0]} for ride in RIDES]
    assert rows == [{**ride, "tags": ride["tags"] or None} for ride in expected]
