"""Cases of moves and replacements that meet, and of upsert across both."""

import pytest

from tests.cases.tables import HOUR

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def row(number, ts, **more):
    return {"id": number, "key": f"k{number}", "value": number, "ts": ts, **more}


@pytest.fixture
def table(new_table):
    """Buckets 0 and 1 hold a row each, bucket 0 has moved."""
    table = new_table()
    table.produce(row(1, 5), row(2, HOUR), row(3, 10 * HOUR))
    table.ingest()
    assert table.move().segments == ("t_5_5_0",)
    return table


def check(table):
    assert table.said.all_happened
    assert table.boundary.time_ms == 2 * HOUR
    assert table.segments() == {"t_5_5_0": 1, f"t_{HOUR}_{HOUR}_0": 1}
    assert table.visible() == table.queried() == [2, 3, 101]
    assert [state.act.kind for state in acts(table)] == ["replace", "move", "move", "create"] or [
        state.act.kind for state in acts(table)
    ] == ["move", "replace", "move", "create"]


def acts(table):
    from hybrid.config.table_config import Half
    from hybrid.lake.log_entries import own_states

    half = table.half(Half.OFFLINE)
    return [state for _, state in own_states(half.path, half.version)]


def test_a_move_plans_a_replacement_of_another_bucket_commits_the_move_commits(table):
    table.said.when("Merging", lambda: table.replace("t_5_5_0", [row(101, 5)]))
    assert table.move().moved
    # A correction leaves alone all that a move looks at.
    assert not any("planning again" in message for message in table.said.messages)
    check(table)


def test_a_replacement_plans_a_move_of_another_bucket_commits_the_replacement_commits(table):
    table.said.when("Swapping", table.move)
    assert table.replace("t_5_5_0", [row(101, 5)]).version is not None
    assert any("planning again" in message for message in table.said.messages)
    check(table)


def test_a_key_deleted_its_marker_moved_its_bucket_replaced_does_not_come_back(new_table):
    table = new_table(upsert=True, merge="latest")
    table.produce(row(1, 5), row(2, 5))
    table.ingest()
    table.move()
    table.produce({"id": 9, "key": "k1", "value": 50, "ts": HOUR, "deleted": True})
    assert table.queried() == [2], "deleted in the tail"
    table.ingest()
    assert table.visible() == table.queried() == [2]
    table.move()
    assert table.visible() == table.queried() == [2], "the marker has moved, and stays"
    table.replace("t_5_5_0", [row(1, 5, value=7), row(2, 5, value=8)])
    assert table.visible() == table.queried() == [2]


def test_a_key_newer_in_another_bucket_hides_its_old_row_whatever_is_asked(new_table):
    table = new_table(upsert=True, merge="latest")
    table.produce(row(1, 5, key="k"), row(2, 5, key="other"))
    table.ingest()
    table.move()
    table.produce(row(3, HOUR, key="k"))
    table.ingest()
    sql = f"select id from t where ts < {HOUR}"
    assert table.query(sql) == [(2,)]
    table.move()
    assert table.query(sql) == [(2,)]
    assert table.visible() == table.queried() == [2, 3]


def test_upsert_ties_across_partitions_and_halves(new_table):
    """Equal comparison values: the later Kafka timestamp wins, then the higher partition, then the higher offset."""
    table = new_table(upsert=True, merge="latest", partitions=2)
    table.produce(row(1, 5, key="a", value=0), row(2, 5, key="b", value=0), partition=1, timestamp_ms=2000)
    table.produce(row(3, HOUR, key="a", value=0), timestamp_ms=1000)
    table.produce(row(4, 5, key="b", value=0), timestamp_ms=2000)
    table.produce(row(5, 5, key="c", value=0), row(6, HOUR, key="c", value=0), timestamp_ms=1000)
    expected = [1, 2, 6]
    assert table.queried() == expected
    table.ingest()
    assert table.visible() == table.queried() == expected
    table.move(1)
    assert table.visible() == table.queried() == expected
    table.move(1)
    assert table.visible() == table.queried() == expected
