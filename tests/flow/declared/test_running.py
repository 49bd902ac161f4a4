"""Flows over real halves: each file once, new columns, what does not fit, and mistakes seen only at work."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from hybrid.cli import main
from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError, SpecError
from hybrid.flow.declared.refresh import begin_refresh
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.table_context import TableContext
from hybrid.operations.queries import _Source
from hybrid.progress import Silent
from hybrid.table.columns import files_segment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

IDS = "select id from events order by id limit 1000"


def ids(home):
    return [row[0] for row in home.rows(IDS)]


def rejected(home, table="events"):
    return [(one["reason"], one["value"]) for one in home.api.table(table).rejected()]


def types(home, table="events"):
    return {field.name: str(field.data_type) for field in home.api.spec(table).schema.fields}


def test_each_file_once_in_micro_batches(spark_home, stream_file):
    text = stream_file("maxFilesPerTrigger=2")
    for number in range(3):
        spark_home.write(f"{number}.json", {"id": number})
    report = spark_home.run(text)["new"]
    assert (report.state, report.rows, report.files, report.batches) == ("DONE", 3, 3, 2)
    assert report.sentence == "Read 3 rows of 3 files in 2 batches."
    again = spark_home.run(text)["new"]
    assert again.state == "NOTHING" and "3 files with 3 rows were read" in again.sentence
    old = spark_home.write("1.json", {"id": 1}, {"id": 100})
    os.utime(old, (5, 5))
    spark_home.write("9.json", {"id": 9})
    third = spark_home.run(text)["new"]
    assert (third.rows, third.files) == (1, 1) and "changed after it was read" in third.warnings[0]
    assert ids(spark_home) == [0, 1, 2, 9]
    state = spark_home.state("events", Half.REALTIME)
    assert list(state.offsets.values()) == [4] and state.act.number == 3, "a commit for each micro-batch"
    segments = [one.name for one in spark_home.api.table("events").segments()]
    assert len(segments) == 3 and files_segment("events") not in segments
    moved = spark_home.api.table("events").move(max_buckets=None)
    assert moved.rows_read == 4 and ids(spark_home) == [0, 1, 2, 9]
    spark_home.write("10.json", {"id": 10})
    assert spark_home.run(text)["new"].rows == 1
    assert ids(spark_home) == [0, 1, 2, 9, 10]
    assert "Nothing to move" not in spark_home.api.table("events").move(max_buckets=None).sentence
    assert ids(spark_home) == [0, 1, 2, 9, 10]


def test_types_and_what_does_not_fit(spark_home, stream_file):
    text = stream_file()
    spark_home.write(
        "1.json",
        {"id": 1, "price": 1.5, "tags": ["a", "b"], "who": {"name": "x"}, "ok": True},
        "{broken",
        {"id": 2, "price": 2, "tags": [], "who": None},
    )
    report = spark_home.run(text)["new"]
    assert (report.rows, report.rejected) == (2, 1)
    assert types(spark_home) == {"id": "LONG", "price": "DOUBLE", "tags": "STRING", "who": "JSON", "ok": "BOOLEAN"}
    row = spark_home.rows("select id, price, tags, who, ok from events where id = 1")[0]
    assert row == (1, 1.5, ["a", "b"], '{"name":"x"}', True)
    spark_home.write("2.json", {"id": "seven", "price": 1}, {"id": 8, "who": {"name": "y", "age": 3}}, "[1, 2]", "")
    report = spark_home.run(text)["new"]
    assert (report.rows, report.rejected) == (1, 2)
    reasons = rejected(spark_home)
    assert reasons[0] == (f"not a JSON object, in {spark_home.root}/1.json", "{broken")
    assert any("column 'id': seven is not BIGINT, in" in reason for reason, _ in reasons)
    assert spark_home.rows("select who from events where id = 8") == [('{"name":"y","age":3}',)]
    assert spark_home.state("events", Half.REALTIME).rejected == 3


def test_new_columns_in_every_mode(spark_home, stream_file):
    spark_home.write("1.json", {"id": 1, "a": "x"})
    modes = {mode: stream_file(f"schemaEvolutionMode='{mode}'").replace("events", mode.lower()) for mode in
             ("addNewColumns", "rescue", "failOnNewColumns", "none")}  # fmt: skip
    for mode, text in modes.items():
        assert spark_home.run(text)["new"].rows == 1, mode
    spark_home.write("2.json", {"id": 2, "b": {"c": 1}}, {"id": "three", "a": "y"})
    reports = {mode: spark_home.run(text)["new"] for mode, text in modes.items()}
    assert types(spark_home, "addnewcolumns") == {"id": "LONG", "a": "STRING", "b": "JSON"}
    assert spark_home.rows("select id, a, b from addnewcolumns order by id") == [(1, "x", None), (2, None, '{"c":1}')]
    assert reports["addNewColumns"].rejected == 1
    found = spark_home.rows("select id, a, _rescued_data from rescue order by a limit 9")
    assert found[0] == (1, "x", None) and [row[:2] for row in found[1:]] == [(None, "y"), (2, None)]
    assert [json.loads(row[2]) for row in found[1:]] == [
        {"id": "three", "_file_path": f"{spark_home.root}/2.json"},
        {"b": '{"c":1}', "_file_path": f"{spark_home.root}/2.json"},
    ]
    failed = reports["failOnNewColumns"]
    assert failed.state == "FAILED" and f"{spark_home.root}/2.json has new columns: b" in failed.sentence
    assert types(spark_home, "none") == {"id": "LONG", "a": "STRING"}
    assert "new columns are not read" in reports["none"].warnings[0]


def test_a_column_that_a_few_texts_among_numbers_made_text_is_named(spark_home, stream_file):
    """Once: when the table is created with it, or gets it."""
    spark_home.write("a.json", *({"id": at, "qty": "n/a" if at == 7 else at} for at in range(40)))
    spark_home.run(stream_file())
    (warning,) = spark_home.session.declaration.warnings
    assert "column 'qty' is STRING: 1 of 40 values is no number, e.g. 'n/a'" in warning
    assert types(spark_home) == {"id": "LONG", "qty": "STRING"}
    spark_home.write("b.json", *({"id": at, "qty": "n/a", "kg": "?" if at == 50 else 0.5} for at in range(40, 80)))
    (warning,) = spark_home.run(stream_file())["new"].warnings
    assert "column 'kg' is STRING: 1 of 40 values is no number, e.g. '?'" in warning and "'kg DOUBLE'" in warning
    assert spark_home.session.declaration.warnings == []
    hinted = stream_file("schemaHints='qty BIGINT, kg DOUBLE'").replace("events", "hinted")
    report = spark_home.run(hinted)["new"]
    assert (report.rows, report.rejected, report.warnings) == (39, 41, ())
    assert types(spark_home, "hinted") == {"id": "LONG", "qty": "LONG", "kg": "DOUBLE"}


def test_time_column_and_its_bucket(spark_home, stream_file):
    text = stream_file(table="table_properties={'hybrid.timeColumn': 'at', 'hybrid.bufferTimePeriod': '1d'}")
    spark_home.write("1.json", {"id": 1, "at": "2024-03-01T10:00:00Z"}, {"id": 2, "at": "2024-03-02T10:00:00+02:00"})
    spark_home.write("2.json", {"id": 3}, {"id": 4, "at": "soon"})
    report = spark_home.run(text)["new"]
    assert (report.rows, report.rejected) == (2, 2)
    reasons = sorted(reason for reason, _ in rejected(spark_home))
    assert reasons[0].startswith("column 'at': soon is not a TIMESTAMP")
    assert reasons[1] == "the time column 'at' is null"
    assert rejected(spark_home)[0][1].startswith('{"')
    assert types(spark_home)["at"] == "TIMESTAMP"
    moved = spark_home.api.table("events").move(max_buckets=None)
    assert moved.segments == (
        "events_2024-03-01-10-00-00-00-00_2024-03-01-10-00-00-00-00_0",
        "events_2024-03-02-08-00-00-00-00_2024-03-02-08-00-00-00-00_0",
    )
    assert ids(spark_home) == [1, 2]
    with pytest.raises(SpecError, match="was created with time column 'at'"):
        raise_failed(spark_home, text.replace("'at'", "'id'"))


def test_a_forgotten_header_changes_no_table(spark_home, workbench):
    folder = spark_home.folder / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("id,at\n1,2024-03-01T10:00:00Z\n")
    for schema in ("", ", schema='id BIGINT, at TIMESTAMP'"):
        text = f"""
import dlt
dlt.create_streaming_table("events"{schema})
@dlt.append_flow(target="events")
def new():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").load("{folder}")
"""
        report = spark_home.run(text)["new"]
        assert report.state == "FAILED" and "whether the first line of these CSV files names" in report.sentence
    assert types(spark_home) == {"id": "LONG", "at": "TIMESTAMP"} and rejected(spark_home) == []


def raise_failed(home, text):
    report = home.run(text)["new"]
    assert report.state == "FAILED"
    raise SpecError(report.sentence)


def test_csv_by_names_and_parquet(spark_home, workbench):
    folder = spark_home.folder / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("id;name;day\n1;a;2024-01-01\n2;b;2024-01-02\n")
    text = f"""
import dlt
dlt.create_streaming_table("events")
@dlt.append_flow(target="events", name="new")
def new():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").option("header", "true")
        .option("sep", ";").option("cloudFiles.inferColumnTypes", "true").load("{folder}"))
@dlt.append_flow(target="events", name="old", once=True)
def old():
    return spark.read.parquet("{spark_home.folder}/old")
"""
    workbench.spark.sql("select 7 as id, 'z' as name, date'2020-01-01' as day, array(1, 2) as n").write.parquet(
        str(spark_home.folder / "old")
    )
    reports = spark_home.run(text)
    assert [reports[name].rows for name in ("new", "old")] == [2, 1]
    (folder / "2.csv").write_text("name;id;day\nc;3;2024-01-03\nd;x;2024-01-04\ne;5\n")
    report = spark_home.run(text)["new"]
    assert (report.rows, report.rejected) == (1, 2), "a column is known by its name; a short line is no row"
    rows = spark_home.rows("select id, name, day from events order by id")
    assert rows == [(1, "a", "2024-01-01"), (2, "b", "2024-01-02"), (3, "c", "2024-01-03"), (7, "z", "2020-01-01")]
    assert all("in " + str(folder / "2.csv") in reason for reason, _ in rejected(spark_home))


def test_cloud_files_reads_texts_unless_it_is_told_to_infer(spark_home):
    spark_home.write("1.json", {"id": 1, "o": {"a": [1]}})
    text = f"""
import dlt
@dlt.table
def events():
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load("{spark_home.root}")
"""
    assert spark_home.run(text)["events"].rows == 1
    assert types(spark_home) == {"id": "STRING", "o": "STRING"}
    assert spark_home.rows("select id, o from events") == [("1", '{"a": [1]}')]


def test_partition_folders_are_columns_where_the_base_is_read(spark_home, stream_file):
    spark_home.write("year=2024/month=3/1.json", {"id": 1})
    assert spark_home.run(stream_file())["new"].rows == 1
    assert types(spark_home) == {"id": "LONG", "year": "INT", "month": "INT"}
    globbed = stream_file().replace("/in", "/in/*/*").replace("events", "plain")
    assert spark_home.run(globbed)["new"].rows == 1
    assert types(spark_home, "plain") == {"id": "LONG"}
    named = stream_file("partitionColumns='year'").replace("/in", "/in/*/*").replace("events", "named")
    assert spark_home.run(named)["new"].rows == 1
    assert types(spark_home, "named") == {"id": "LONG", "year": "INT"}


def test_empty_files(spark_home, stream_file):
    for number, rows in enumerate(([], [" "], [{"id": 1}], [])):
        os.utime(spark_home.write(f"{number}.json", *rows), (number, number))
    report = spark_home.run(stream_file("maxFilesPerTrigger=1"))["new"]
    assert (report.rows, report.rejected, report.files) == (1, 0, 4)
    os.utime(spark_home.write("a/1.json"), (1, 1))
    alone = stream_file().replace("/in", "/in/a").replace("events", "others")
    assert "no line can be read as json, so there are no columns" in spark_home.run(alone)["new"].sentence


def test_hints_and_a_schema(spark_home, stream_file):
    spark_home.write("1.json", {"id": "1", "price": 2})
    assert spark_home.run(stream_file("schemaHints='price DECIMAL(10,2), later DATE'"))["new"].rows == 1
    assert types(spark_home) == {"id": "STRING", "price": "BIG_DECIMAL", "later": "STRING"}
    schema = stream_file("schema='id INT'").replace("events", "given")
    report = spark_home.run(schema)["new"]
    assert types(spark_home, "given") == {"id": "INT"} and "price" in report.warnings[0]
    bad = spark_home.run(stream_file("schema='id ONE TWO'").replace("events", "bad"))["new"]
    assert bad.state == "FAILED" and "is no list of columns" in bad.sentence


MISTAKES = {
    "none": ("return None", "returns nothing, not a DataFrame"),
    "text": ("return 'x'", "returns a str"),
    "batch": ("return flows.read_files('{root}', format='json').load()", "is not once and reads no stream"),
    "twice": (
        "a = flows.read_files_stream('{root}', format='json').load()\n"
        "    return a.union(flows.read_files_stream('{root}/x', format='json').load())",
        "reads two streams",
    ),
    "counted": (
        "return flows.read_files_stream('{root}', format='json').load().groupBy('id').count()",
        "computes an aggregate (groupBy, count, sum) over a stream",
    ),
    "misspelt": (
        "return flows.read_files_stream('{root}', format='json').load().where('idd > 1')",
        "line 6: [UNRESOLVED",
    ),
    "nowhere": ("return flows.read_files_stream('{root}/no/*', format='json').load()", "there is no folder"),
    "kafka": ("return flows.spark.readStream.format('kafka').load()", "streams of flows are files"),
    "raised": ("raise ValueError('mine')", "line 6: ValueError: mine"),
}


def test_mistakes_are_told_and_stop_no_other_flow(spark_home):
    spark_home.write("1.json", {"id": 1})
    good = "return flows.read_files_stream('{root}', format='json').load()"
    for body, message in MISTAKES.values():
        text = "from hybrid import flows\nflows.create_streaming_table('events')\n" + "".join(
            f"@flows.append_flow(target='events', name='{name}')\ndef {name}():\n"
            + f"    {flow.format(root=spark_home.root)}\n"
            for name, flow in (("bad", body), ("good", good))
        ).replace("def bad():\n", "def bad():\n\n")
        reports = spark_home.run(text)
        assert reports["bad"].state == "FAILED" and message in reports["bad"].sentence
        assert reports["good"].state in ("DONE", "NOTHING")
    assert ids(spark_home) == [1]
    listed = {one.flow: one.state for one in spark_home.api.flows()}
    assert listed == {"bad": "FAILED", "good": "COMPLETED"}


def test_what_to_do_about_a_failure_stands_below_it(spark_home, capsys):
    spark_home.write("1.json", {"id": 1})
    body = f"return flows.read_files('{spark_home.root}', format='json').load()"
    text = "from hybrid import flows\nflows.create_streaming_table('events')\n\n" + (
        f"@flows.append_flow(target='events', name='bad')\ndef bad():\n    {body}\n"
    )
    assert main.run(["--home", str(spark_home.folder / "home"), "flow", "run", str(spark_home.file(text))]) == 1
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error.startswith("error: bad: Flow 'bad' is not once and reads no stream")
    assert hint.startswith("hint: Use read_files_stream (")


def test_targets(spark_home, stream_file):
    spark_home.write("1.json", {"id": 1})
    nobody = stream_file().replace('target="events"', 'target="evnts"')
    report = spark_home.run(nobody)["new"]
    assert report.state == "FAILED" and "which nobody creates. Did you mean 'events'?" in report.sentence
    assert "table 'events' has no flow" in spark_home.session.declaration.warnings[0]
    os.unlink(spark_home.folder / "in" / "1.json")
    assert "its columns" not in (early := spark_home.run(stream_file())["new"]).sentence
    assert early.state == "NOTHING" and "the columns of 'events' are not known" in early.sentence
    once = stream_file().replace('name="new"', 'name="new", once=True')
    assert "is once and reads a stream" in spark_home.run(once)["new"].sentence
    empty = once.replace("read_files_stream", "read_files")
    assert "there is no file at" in spark_home.run(empty)["new"].sentence
    with pytest.raises(NotFoundError):
        spark_home.api.table("events")
    declared = spark_home.run(stream_file(table="schema='id INT, name STRING'"))["new"]
    assert declared.state == "NOTHING" and types(spark_home) == {"id": "INT", "name": "STRING"}
    spark_home.write("1.json", {"id": 1, "name": "a"}, {"id": 99999999999, "name": "b"})
    report = spark_home.run(stream_file(table="schema='id INT, name STRING'"))["new"]
    assert (report.rows, report.rejected) == (1, 1)
    assert "column 'id': 99999999999 is not an INT" in rejected(spark_home)[0][0]
    twin = stream_file().replace('name="new"', 'name="new", once=True').replace("read_files_stream", "read_files")
    assert "has run as an incremental flow, and is declared as a once-flow now" in spark_home.run(twin)["new"].sentence


def test_a_corrected_segment_and_a_refresh(spark_home):
    """A correction over rows of one flow goes with its refresh; one over rows of two flows refuses it."""
    spark_home.write("a/1.json", {"id": 1}, {"id": 2})
    spark_home.write("b/1.json", {"id": 3})
    text = "from hybrid import flows\nflows.create_streaming_table('events')\n" + "".join(
        f"@flows.append_flow(target='events', name='{name}'{once})\ndef {name}():\n"
        f"    return flows.{reader}('{spark_home.root}/{name}', format='json').load()\n"
        for name, once, reader in (("a", ", once=True", "read_files"), ("b", "", "read_files_stream"))
    )
    spark_home.run(text)
    table = spark_home.api.table("events")
    table.move(max_buckets=None)
    (mine, moved) = sorted(one.name for one in table.segments() if one.half == "OFFLINE")
    replace_rows(spark_home, mine, [{"id": 11}, {"id": 12}])
    assert ids(spark_home) == [3, 11, 12]
    spark_home.run(text, refresh="a")
    assert f"Segment '{mine}' of 'events' held a correction" in spark_home.session.declaration.warnings[0]
    assert ids(spark_home) == [1, 2, 3]
    replace_rows(spark_home, moved, [{"id": 33}])
    assert ids(spark_home) == [1, 2, 33]
    reports = spark_home.run(text, refresh=None)
    assert ids(spark_home) == [1, 2, 3], [one.sentence for one in reports.values()]
    assert all(one.refreshes > 0 for one in spark_home.api.flows())


def test_the_same_flow_in_two_runs_at_once(spark_home, stream_file):
    for number in range(3):
        spark_home.write(f"{number}.json", {"id": number})
    text = stream_file("maxFilesPerTrigger=1") + (
        "\n@flows.append_flow(target='events', name='old', once=True)\ndef old():\n"
        f"    return flows.read_files('{spark_home.root}', format='json').load()\n"
    )
    sessions = [spark_home.load(text, f"flows{number}.py") for number in range(2)]
    with ThreadPoolExecutor() as pool:
        found = [report for reports in pool.map(spark_home.api.run_flows, sessions) for report in reports]
    assert not [report for report in found if report.state == "FAILED"], found
    assert ids(spark_home) == [number for number in range(3) for _ in range(2)]
    assert sum(report.rows for report in found) == 6


@pytest.fixture
def served(spark_home):
    yield spark_home
    if spark_home.api._queries._cached is not None:
        spark_home.api._queries._cached._cache.close()


def test_a_server_follows(served, stream_file):
    """The cache sees new columns, refreshes and moves."""
    served.write("1.json", {"id": 1})
    served.run(stream_file())
    served.api.serve_from_memory(100_000_000)
    assert answered(served, "select * from events") == [(1,)]
    served.write("2.json", {"id": 2, "b": "x"})
    served.run(stream_file())
    assert answered(served, "select id, b from events order by id") == [(1, None), (2, "x")]
    served.api.table("events").move(max_buckets=None)
    assert answered(served, "select id, b from events order by id") == [(1, None), (2, "x")]
    os.unlink(served.folder / "in" / "1.json")
    served.run(stream_file(), refresh=None)
    assert answered(served, "select id, b from events") == [(2, "x")]


def answered(home, sql):
    """What the cache answers, once it has followed; the files say the same."""
    from hybrid.query.engine import QueryOptions, run

    plain = [tuple(row) for row in run(sql, _Source(home.api.context), QueryOptions()).rows]
    for _ in range(100):
        found = home.rows(sql)
        if found == plain:
            break
        time.sleep(0.05)
    assert found == plain
    return found


def test_a_definition_that_is_lost_comes_back_with_its_new_columns(spark_home, stream_file):
    spark_home.write("1.json", {"id": 1})
    spark_home.run(stream_file())
    spark_home.write("2.json", {"id": 2, "b": "x"})
    spark_home.run(stream_file())
    os.unlink(spark_home.api.settings.warehouse / "events" / "definition.json")
    assert main.run(["--home", str(spark_home.folder / "home"), "doctor", "--repair"]) in (0, 3)
    assert spark_home.rows("select id, b from events order by id") == [(1, None), (2, "x")]


def replace_rows(home, segment, rows):
    from hybrid.config.job_spec import JobSpec

    folder = home.folder / f"corrected-{rows[0]['id']}"
    folder.mkdir()
    (folder / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = JobSpec(
        source="job-spec.yml", job_type="SegmentCreationAndTarPush", input_dir=folder, table_name="events",
        data_format="json", segment_name_type="fixed", segment_name=segment,
    )  # fmt: skip
    home.api.table("events").replace(replace(job))


def test_a_flow_of_another_kind_is_refused_before_a_refresh_takes_anything(spark_home, stream_file):
    spark_home.write("1.json", {"id": 1})
    spark_home.run(stream_file())
    spark_home.api.table("events").move(max_buckets=None)
    twin = stream_file().replace('name="new"', 'name="new", once=True').replace("read_files_stream", "read_files")
    report = spark_home.run(twin, refresh=None)["new"]
    assert report.state == "FAILED" and "is declared as a once-flow now" in report.sentence
    assert ids(spark_home) == [1]


def test_names_with_characters_of_patterns(spark_home, stream_file):
    """A listed file is read as it is named, and only once, though Spark sees patterns in names that match others."""
    names = ("part1.json", "part[1].json", "{a,b}.json", "w?.json", "w1.json", "back\\slash*.json")
    for number, name in enumerate(names):
        spark_home.write(name, {"id": number})
    assert spark_home.run(stream_file())["new"].rows == len(names)
    assert ids(spark_home) == list(range(len(names)))


def test_a_home_in_a_folder_with_characters_of_patterns(spark_home, stream_file, workbench):
    spark_home.write("1.json", {"id": 1}, "no object")
    (spark_home.folder / "of [1] {a}").mkdir()
    home = type(spark_home)(spark_home.folder / "of [1] {a}", workbench)
    assert home.run(stream_file())["new"].rows == 1
    assert ids(home) == [1] and len(rejected(home)) == 1
    home.api.table("events").move(max_buckets=None)
    assert ids(home) == [1]


def test_rows_that_a_refresh_has_brought_stay_though_it_is_cleared_later(spark_home, stream_file):
    """The process that began a refresh dies; another one reads, a move comes, then the next run clears what was."""
    spark_home.write("1.json", {"id": 1})
    spark_home.run(stream_file())
    table = spark_home.api.table("events")
    table.move(max_buckets=None)
    begin_refresh(TableContext(spark_home.api.context.bench, table.spec, table.layout), {"new": "incremental"})
    spark_home.write("2.json", {"id": 2})
    assert spark_home.run(stream_file())["new"].rows == 2
    table.move(max_buckets=None)
    assert ids(spark_home) == [1, 2]
    spark_home.run(stream_file())
    assert ids(spark_home) == [1, 2]


def test_a_move_that_is_planned_anew_knows_columns_that_came_meanwhile(spark_home, stream_file):
    spark_home.write("1.json", {"id": 1})
    spark_home.run(stream_file())
    table, told = spark_home.api.table("events"), []

    class Meanwhile(Silent):
        def say(self, message):
            if message.startswith("Merging") and not told:
                told.append(message)
                spark_home.write("2.json", {"id": 2, "more": "x"})
                spark_home.run(stream_file())

    bench = spark_home.api.context.bench
    vars(spark_home.api.context)["bench"] = CommitContext(
        lambda: bench.spark, spark_home.api.context.now_ms, Meanwhile()
    )
    assert table.move(max_buckets=None).rows_read == 2 and told
    assert sorted(spark_home.rows("select id, more from events_OFFLINE"), key=str) == [(1, None), (2, "x")]
