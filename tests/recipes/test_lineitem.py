"""The lineitem recipe: history from a Delta table, then Kafka from offset 42, in both published spellings."""

import os
from pathlib import Path

import pytest

from hybrid.kafka.topics import TopicRecord, create_topic, produce
from tests.recipes.conftest import RecipeHome
from tests.recipes.lineitems import comments, lineitems, message, write_history
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
DATA = Path(__file__).resolve().parents[2] / "data" / "lineitem"
HISTORICAL, LIVE = "lineitem.historical", "lineitem.live"
SEEN = "select l_comment from LINEITEM limit 100000"
JOB = """
jobType: SegmentCreationAndTarPush
inputDirURI: FOLDER
recordReaderSpec: {dataFormat: json}
tableSpec: {tableName: lineitem}
segmentNameGeneratorSpec: {type: fixed, configs: {segment.name: NAME}}
"""
# Of the topic's first 42 messages every row is in history already.
OLD, ROWS = 42, 400


@pytest.fixture
def home(tmp_path, capsys):
    return RecipeHome(tmp_path / "home", capsys)


def sets(topic, uri):
    config = f"/connectors/{LIVE}/transport/config"
    return [f"/connectors/{HISTORICAL}/transport/config/uri={uri}", f"{config}/topic={topic}"]


def create(home, broker, topic, uri, file="lineitem_offsets.sql", more=()):
    changes = [word for change in (*sets(topic, uri), *more) for word in ("--set", change)]
    return home.run("table", "create", "-f", str(DATA / file), "--kafka", broker, *changes)


def states(home):
    return {one["name"]: one["state"] for one in home.run("connector", "list", "lineitem")}


def seen(home):
    return sorted(row["l_comment"] for row in home.rows(SEEN))


def put(broker, topic, verb, rows, partition=0):
    produce(broker, topic, [TopicRecord(message(verb, row), partition=partition) for row in rows])


def load(home, broker, topic, folder, file):
    """Creates the table of a spelling, loads history and what the topic has beside it; the rows of both."""
    history, late = lineitems(ROWS), lineitems(10, ROWS)
    write_history(folder / "history", history, 4)
    put(broker, topic, "insert", history[-OLD:] + late)
    if file == "lineitem.sql":  # it names the topic in a list, and again where it starts
        more = [f'/connectors/{LIVE}/transport/config/topics=["{topic}"]', f"start_from/0/topic={topic}"]
        more[1] = f"/connectors/{LIVE}/transport/config/start_from/0/topic={topic}"
        changes = [word for change in (sets(topic, folder / "history")[0], *more) for word in ("--set", change)]
        home.run("table", "create", "-f", str(DATA / file), "--kafka", broker, *changes)
    else:
        create(home, broker, topic, folder / "history", file)
    assert states(home) == {HISTORICAL: "RUNNING", LIVE: "WAITING"}
    assert seen(home) == [], "neither history nor the topic is shown before it is its turn"

    home.run("ingest", "LINEITEM", "--until-caught-up")
    assert states(home) == {HISTORICAL: "COMPLETED", LIVE: "RUNNING"}
    assert seen(home) == comments(history + late), "every row once, the old messages not again"
    figures = {one["name"]: one for one in home.run("connector", "list", "lineitem")}
    assert figures[HISTORICAL]["records"] == ROWS and figures[HISTORICAL]["end_of_input"]
    assert figures[LIVE]["records"] == 10 and figures[LIVE]["lag"] == 0 and not figures[LIVE]["end_of_input"]
    return history, late


def test_history_then_live_rows(home, broker, topic, tmp_path):
    load(home, broker, topic, tmp_path, "lineitem.sql")


def test_history_then_live_rows_then_deletes(home, broker, topic, tmp_path):
    history, late = load(home, broker, topic, tmp_path, "lineitem_offsets.sql")
    totals = home.rows("select sum(l_quantity), min(L_SHIPDATE), max(l_shipmode) from lineitem")[0]
    assert float(totals["sum(l_quantity)"]) == sum(row["L_QUANTITY"] for row in history + late)
    assert totals["min(L_SHIPDATE)"] == min(row["L_SHIPDATE"] for row in history + late).isoformat()
    assert totals["max(l_shipmode)"] == "TRUCK", "CHAR without its blanks"

    # Deletes: of a row of history, of a live one, of one that was never there, and of one of two equal rows.
    twin = late[3]
    put(broker, topic, "insert", [twin])
    put(broker, topic, "delete", [history[7], late[0], twin, *lineitems(1, 9999)])
    left = comments([row for row in history + late if row not in (history[7], late[0])])
    assert seen(home) == left, "from the tail"
    home.run("ingest", "lineitem", "--until-caught-up")
    assert seen(home) == left, "committed"
    home.run("move", "lineitem", "--max-buckets", "all")
    assert seen(home) == left, "moved"
    (moved, *_) = [row["name"] for row in home.run("segment", "list", "lineitem") if row["rows"] < ROWS]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(message("insert", late[1]).decode().removeprefix('{"insert": ')[:-1])
    (tmp_path / "job.yml").write_text(JOB.replace("FOLDER", str(tmp_path / "in")).replace("NAME", moved))
    home.run("job", "run", str(tmp_path / "job.yml"), code=4)
    assert "hold 4 deletes" in home.messages and "they would come back" in home.messages
    assert seen(home) == left


def test_a_pause_is_not_undone_by_what_is_waited_for(home, broker, topic, tmp_path):
    history, live = lineitems(20), lineitems(6, 100)
    write_history(tmp_path / "history", history, 2)
    put(broker, topic, "insert", lineitems(OLD, 1000) + live[:2])
    create(home, broker, topic, tmp_path / "history")
    home.run("connector", "pause", "lineitem", LIVE)
    home.run("ingest", "lineitem", "--until-caught-up")
    assert states(home) == {HISTORICAL: "COMPLETED", LIVE: "PAUSED"}
    assert seen(home) == comments(history)

    home.run("connector", "start", "lineitem", LIVE)
    home.run("ingest", "lineitem", "--until-caught-up")
    assert seen(home) == comments(history + live[:2])

    put(broker, topic, "insert", live[2:3])
    home.run("connector", "pause", "lineitem", LIVE)
    put(broker, topic, "insert", live[3:])
    assert seen(home) == comments(history + live[:3]), "what came before the pause is shown, and nothing after it"
    home.run("ingest", "lineitem", "--until-caught-up")
    assert seen(home) == comments(history + live[:3])
    home.run("connector", "resume", "lineitem", LIVE)
    assert seen(home) == comments(history + live), "all of it, from the tail"
    home.run("ingest", "lineitem", "--until-caught-up")
    assert seen(home) == comments(history + live)


def test_what_is_wrong_with_the_hand_over_is_said_before_anything_is_loaded(home, broker, topic, tmp_path):
    write_history(tmp_path / "history", lineitems(5), 1)
    put(broker, topic, "insert", lineitems(3))
    create(home, broker, topic, tmp_path / "history")
    home.run("ingest", "lineitem", "--until-caught-up", code=1)
    assert "starts at offset 42" in home.messages
    found = {one["name"]: one for one in home.run("connector", "list", "lineitem")}
    assert found[HISTORICAL]["state"] == "FAILED" and found[LIVE]["state"] == "WAITING"
    assert "starts at offset 42 of partition 0" in found[HISTORICAL]["latest_error"]
    assert "which ends at 3" in found[LIVE]["detail"], "a failed dependency shows on what waits for it"
    assert seen(home) == [] and found[HISTORICAL]["errors"] == 1
    put(broker, topic, "insert", lineitems(OLD - 3, 500))
    home.run("ingest", "lineitem", "--until-caught-up")
    assert states(home) == {HISTORICAL: "COMPLETED", LIVE: "RUNNING"}


def test_after_history_starts_each_partition_after_its_highest_loaded_offset(home, broker, tmp_path):
    topic = f"li-{os.urandom(4).hex()}"
    create_topic(broker, topic, partitions=3)
    rows = lineitems(60)
    for partition in range(3):
        put(broker, topic, "insert", rows[partition::3], partition)
    held = [(row, number % 3, number // 3) for number, row in enumerate(rows) if number % 3 < 2 and number // 3 < 15]
    write_history(
        tmp_path / "history",
        [row for row, *_ in held],
        3,
        kafka_topic=[topic] * len(held),
        kafka_partition=[partition for _, partition, _ in held],
        kafka_offset=[offset for *_, offset in held],
    )
    config = f"/connectors/{LIVE}/transport/config"
    create(home, broker, topic, tmp_path / "history", more=[f'{config}/start_from="after_history"'])
    home.run("ingest", "lineitem", "--until-caught-up")
    assert seen(home) == comments(rows)
    assert {one["name"]: one["records"] for one in home.run("connector", "list", "lineitem")} == {
        HISTORICAL: 30,
        LIVE: 30,
    }


@pytest.mark.parametrize(("offset", "words"), [(20, "messages would be there twice"), (50, "would be in neither")])
def test_a_gap_and_an_overlap_are_said_before_anything_is_loaded(home, broker, topic, tmp_path, offset, words):
    rows = lineitems(60)
    put(broker, topic, "insert", rows)
    write_history(
        tmp_path / "history", rows[:42], 2, topic=[topic] * 42, partition=[0] * 42, offset=list(range(42))
    )  # fmt: skip
    config = f"/connectors/{LIVE}/transport/config"
    create(home, broker, topic, tmp_path / "history", more=[f'{config}/start_from={{"offsets":[{offset}]}}'])
    home.run("ingest", "lineitem", "--until-caught-up", code=1)
    found = {one["name"]: one for one in home.run("connector", "list", "lineitem")}
    assert words in found[HISTORICAL]["latest_error"] and seen(home) == []


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_kills_in_the_middle_of_history_and_of_live(home, broker, tmp_path, dies, workbench):
    """Three partitions; the process dies at every point of both kinds of commit, first by kill -9, and starts again."""
    topic = f"li-{os.urandom(4).hex()}"
    create_topic(broker, topic, partitions=3)
    history, live = lineitems(90), lineitems(30, 1000)
    write_history(tmp_path / "history", history, 3)
    for partition in range(3):
        put(broker, topic, "insert", live[partition::3], partition)
    config = f"/connectors/{LIVE}/transport/config"
    create(home, broker, topic, tmp_path / "history", more=[f'{config}/start_from={{"offsets":[0,0,0]}}'])
    words = (str(home.home), "ingest", "lineitem", "--until-caught-up")
    die_at("history.commit.inside", workbench, "tests.recipes.killed_command", *words)
    check_no_row_twice(home, history + live)
    for point in ("history.commit.after", "start.commit.before", "ingest.commit.inside"):
        with dies(point):
            home.run("ingest", "lineitem", "--until-caught-up")
        check_no_row_twice(home, history + live)
    home.run("ingest", "lineitem", "--until-caught-up")
    assert seen(home) == comments(history + live)


def check_no_row_twice(home, rows):
    found = seen(home)
    assert len(found) == len(set(found)) and set(found) <= set(comments(rows))
