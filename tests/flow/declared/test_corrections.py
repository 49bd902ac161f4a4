"""Flows beside corrections and beside themselves: refreshes, reverts, and two processes that run one once-flow."""

import json
from contextlib import contextmanager

import pytest

from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, HybridError
from hybrid.flow.declared import once, runner
from hybrid.lake.commit_context import CommitContext

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

GONE = "a full refresh of flow 'a' has taken those rows away since"


def flows(home, *names):
    """A file of once-flows, each over a folder of its own name."""
    return "from hybrid import flows\nflows.create_streaming_table('events')\n" + "".join(
        f"@flows.append_flow(target='events', name='{name}', once=True)\ndef {name}():\n"
        f"    return flows.read_files('{home.root}/{name}', format='json').load()\n"
        for name in names
    )


def ids(home):
    return [row[0] for row in home.rows("select id from events order by id limit 1000")]


def rejected(home):
    return [one["value"] for one in home.api.table("events").rejected()]


def segments(home):
    return sorted(one.name for one in home.api.table("events").segments() if one.half == "OFFLINE")


def replace_all(home, *files, name=None):
    """One job: each file stands for the segment of its number, or all for the one of a name; its id."""
    folder = home.folder / f"corrected-{len(list(home.folder.iterdir()))}"
    folder.mkdir()
    for number, rows in enumerate(files):
        (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = JobSpec(
        source="job-spec.yml", job_type="SegmentCreationAndTarPush", input_dir=folder, table_name="events",
        data_format="json", segment_name_type="fixed" if name else "simple", segment_name=name,
    )  # fmt: skip
    return home.api.table("events").replace(job, allow_empty=True).act


def one_id(number):
    return [{"id": number}]


def test_one_correction_over_segments_of_two_flows_and_a_refresh_of_one(spark_home):
    for name, number in (("a", 1), ("b", 2)):
        spark_home.write(f"{name}/1.json", {"id": number})
        spark_home.run(flows(spark_home, *"ab"[: "ab".index(name) + 1]))
    assert segments(spark_home) == ["events_0", "events_1"] and ids(spark_home) == [1, 2]
    replace_all(spark_home, one_id(11), one_id(22))
    assert ids(spark_home) == [11, 22]
    report = spark_home.run(flows(spark_home, "a", "b"), refresh="a")["a"]
    assert report.state == "DONE", report.sentence
    assert ids(spark_home) == [1, 22], "the correction of the other flow stays"


def test_a_revert_brings_nothing_back_that_a_refresh_has_taken_away(spark_home):
    spark_home.write("a/1.json", {"id": 1})
    spark_home.run(flows(spark_home, "a"))
    first = replace_all(spark_home, one_id(11), name="events_0")
    second = replace_all(spark_home, [], name="events_0")
    assert ids(spark_home) == []
    spark_home.run(flows(spark_home, "a"), refresh="a")
    assert ids(spark_home) == [1]
    table = spark_home.api.table("events")
    with pytest.raises(ConflictError, match=GONE):
        table.revert(second)
    assert ids(spark_home) == [1]
    again = replace_all(spark_home, [], name=segments(spark_home)[0])
    with pytest.raises(ConflictError):
        table.revert(first)
    table.revert(again)
    assert ids(spark_home) == [1], "what the refresh itself brought may come back"


def test_a_revert_to_the_rows_of_a_flow_before_its_refresh(spark_home):
    spark_home.write("a/1.json", {"id": 1})
    spark_home.run(flows(spark_home, "a"))
    emptied = replace_all(spark_home, [], name="events_0")
    spark_home.run(flows(spark_home, "a"), refresh="a")
    with pytest.raises(ConflictError, match=GONE):
        spark_home.api.table("events").revert(emptied)
    assert ids(spark_home) == [1]


@contextmanager
def meanwhile(monkeypatch, step, act):
    """Does `act` before the first call of a step of a load."""
    original, calls = getattr(once, step), []

    def stepped(*arguments):
        calls.append(step)
        if len(calls) == 1:
            act()
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(runner, step, stepped)
        yield


def test_rejected_rows_are_those_of_the_load_that_was_committed(spark_home, monkeypatch):
    """The loser of two runs has read another file; it comes between the winner's two commits, and ends."""
    text = flows(spark_home, "a")
    spark_home.write("a/1.json", {"id": 1}, "{one")

    def loser():
        spark_home.write("a/1.json", {"id": 1}, {"id": 2}, "{two")

        def fail(*_):
            raise HybridError("it was killed")

        with monkeypatch.context() as patch:
            patch.setattr(runner, "commit_load", fail)
            assert spark_home.run(text)["a"].state == "FAILED"

    with meanwhile(monkeypatch, "commit_load", loser):
        assert spark_home.run(text)["a"].state == "DONE"
    assert (ids(spark_home), rejected(spark_home)) == ([1, 2], ["{two"])
    assert spark_home.state("events", Half.REALTIME).rejected == 1


def test_a_load_that_comes_too_late_leaves_the_rejected_rows_of_the_other(spark_home, monkeypatch):
    text = flows(spark_home, "a")
    spark_home.write("a/1.json", {"id": 1}, "{one")

    def winner():
        spark_home.write("a/1.json", {"id": 1}, {"id": 2}, "{two")
        assert spark_home.run(text)["a"].rows == 2

    with meanwhile(monkeypatch, "commit_rejected", winner):
        assert spark_home.run(text)["a"].state == "NOTHING"
    assert (ids(spark_home), rejected(spark_home)) == ([1, 2], ["{two"])
    assert spark_home.state("events", Half.REALTIME).rejected == 1


def test_rows_are_sorted_into_segments_before_the_lock_is_taken(spark_home, monkeypatch):
    spark_home.write("a/1.json", {"id": 1})
    locked, seen = [], []
    lock, original = CommitContext.lock, once.segment_layout_of

    @contextmanager
    def watched(bench, layout, half, **options):
        with lock(bench, layout, half, **options):
            locked.append(half)
            try:
                yield
            finally:
                locked.pop()

    def laying(*arguments):
        seen.append(list(locked))
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(CommitContext, "lock", watched)
        patch.setattr(once, "segment_layout_of", laying)
        spark_home.run(flows(spark_home, "a"))
    assert seen == [[]] and ids(spark_home) == [1]
