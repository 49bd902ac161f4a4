"""Names of segments, as Pinot's name generators make them. The cases of Pinot's own tests stand among them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from hybrid.config.job_spec import JobSpec, parse_job_spec
from hybrid.config.table_config import TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.lake.files import LaidFile, path_in_half
from hybrid.replace.naming import naming_warnings, segment_names
from hybrid.replace.stage import StagedFile
from hybrid.table.names import another_name, offline_segment, segment_folder, why_no_segment_name

DAY_MS = 86_400_000


def _spec(fmt: str | None = "1:DAYS:EPOCH", kind: str = "INT", **batch: str) -> TableSpec:
    """A table with a time column of that format, if any."""
    times = [{"name": "day", "dataType": kind, "format": fmt, "granularity": "1:DAYS"}] if fmt else []
    schema = {
        "schemaName": "myTable",
        "dimensionFieldSpecs": [{"name": "id", "dataType": "INT"}],
        "dateTimeFieldSpecs": times,
    }
    config: dict[str, object] = {
        "tableName": "myTable",
        "tableType": "OFFLINE",
        "segmentsConfig": {"timeColumnName": "day"} if fmt else {},
        "ingestionConfig": {"batchIngestionConfig": batch},
    }
    return parse_table(schema, "schema.json", [(config, "table.json")])


def _job(names: str) -> JobSpec:
    doc: dict[str, Any] = {
        "jobType": "SegmentCreation",
        "inputDirURI": "/in",
        "recordReaderSpec": {"dataFormat": "csv"},
        "tableSpec": {"tableName": "myTable"},
        "segmentNameGeneratorSpec": yaml.safe_load(names),
    }
    return parse_job_spec(doc, "job.yml", Path("/"), {})


def _file(
    path: str = "/in/a.csv", low: int | None = DAY_MS, high: int | None = 3 * DAY_MS, rows: int = 1
) -> StagedFile:
    return StagedFile(Path(path), rows, 0, low, high, sha256=path)


def _names(spec: TableSpec, names: str, *files: StagedFile) -> list[str]:
    return list(segment_names(spec, _job(names), files or (_file(),)).values())


@pytest.mark.parametrize(
    ("configs", "name"),
    [
        ("{}", "myTable_1_3_0"),
        ("{segment.name.postfix: x}", "myTable_1_3_x_0"),
        ("{segment.name.prefix: x}", "myTable_1_3_0"),  # as in Pinot: normalizedDate reads it
        ("{exclude.time.in.segment.name: true}", "myTable_0"),
        ("{omit.timestamps.in.segment.name: true, segment.name.postfix: x}", "myTable_x_0"),
    ],
)
def test_simple(configs: str, name: str) -> None:
    assert _names(_spec(), f"{{type: simple, configs: {configs}}}") == [name]


@pytest.mark.parametrize(
    ("batch", "configs", "name"),
    [
        ({}, "{}", "myTable_1970-01-02_1970-01-04_0"),
        ({}, "{segment.name.prefix: myTable_daily}", "myTable_daily_1970-01-02_1970-01-04_0"),
        ({}, "{segment.name.prefix: p, segment.name.postfix: q}", "p_1970-01-02_1970-01-04_q_0"),
        ({}, "{segment.name.prefix: p, exclude.sequence.id: true}", "p_1970-01-02_1970-01-04"),
        ({"segmentIngestionFrequency": "hourly"}, "{}", "myTable_1970-01-02-00_1970-01-04-00_0"),
        ({"segmentIngestionType": "REFRESH"}, "{}", "myTable_0"),
        ({"segmentIngestionType": "REFRESH"}, "{segment.name.prefix: p, segment.name.postfix: q}", "p_q_0"),
        ({"segmentIngestionType": "REFRESH"}, "{exclude.sequence.id: 'true'}", "myTable"),
    ],
)
def test_normalized_date(batch: dict[str, str], configs: str, name: str) -> None:
    assert _names(_spec(**batch), f"{{type: normalizedDate, configs: {configs}}}") == [name]


@pytest.mark.parametrize(
    ("fmt", "kind"),
    [
        ("1:HOURS:EPOCH", "INT"),
        ("TIMESTAMP", "TIMESTAMP"),
        ("SIMPLE_DATE_FORMAT|yyyyMMdd", "LONG"),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd", "STRING"),
        ("SIMPLE_DATE_FORMAT|yyyy/MM/dd", "STRING"),
    ],
)
def test_normalized_dates_of_every_time_format(fmt: str, kind: str) -> None:
    assert _names(_spec(fmt, kind), "{type: normalizedDate}") == ["myTable_1970-01-02_1970-01-04_0"]


def test_the_type_is_inferred_from_the_time_column() -> None:
    assert _names(_spec(), "{}") == ["myTable_1_3_0"]
    dates = _spec("SIMPLE_DATE_FORMAT|yyyy/MM/dd", "STRING")
    assert _names(dates, "{configs: {segment.name.prefix: p}}") == ["p_1970-01-02_1970-01-04_0"]
    assert _names(_spec("SIMPLE_DATE_FORMAT|yyyyMMdd", "INT"), "{}") == ["myTable_19700102_19700104_0"]


def test_without_a_time_column() -> None:
    timeless = _file(low=None, high=None)
    assert _names(_spec(None), "{type: simple}", timeless) == ["myTable_0"]
    with pytest.raises(SpecError, match="'normalizedDate' names segments by dates, and 'myTable' has no time column"):
        _names(_spec(None), "{type: normalizedDate}", timeless)
    assert _names(_spec(None, segmentIngestionType="REFRESH"), "{type: normalizedDate}", timeless) == ["myTable_0"]


@pytest.mark.parametrize(
    ("pattern", "path", "name"),
    [
        (r".+/(.+)\.csv", "/my/path/to/segmentname.csv", "segmentname"),
        (r".+/(.+)\.csv", "/my/path/to/segmentname.tsv", "my_path_to_segmentname_tsv"),
        (r".+/(\w+)(\.csv)?", "/my/path/to/segmentname", "segmentname"),
        (r".+/(?<file>.+)\.gz", "/in/orders.csv.gz", "orders.csv"),
    ],
)
def test_input_file(pattern: str, path: str, name: str) -> None:
    template = r"segment.name.template: '${filePathPattern:\1}'"
    names = f"{{type: inputFile, configs: {{file.path.pattern: '{pattern}', {template}}}}}"
    assert _names(_spec(), names, _file(path)) == [name]
    warnings = list(naming_warnings(_job(names), [_file(path)]))
    assert bool(warnings) == name.startswith("my_path")


@pytest.mark.parametrize(("name", "expected"), [("a.csv", "day-a"), ("a.tsv", "in_day_a_tsv")])
def test_an_object_is_named_by_its_address(name: str, expected: str) -> None:
    """Not by the folder into which it was fetched, which is another one each time."""
    names = r"""
type: inputFile
configs:
  file.path.pattern: '/in/(.+)/(.+)\.csv'
  segment.name.template: '${filePathPattern:\1}-${filePathPattern:\2}'
"""
    for folder in ("/staging/fetch-1", "/staging/fetch-2"):
        job = replace(_job(names), input_dir=Path(folder), fetched_from="s3://bucket/in")
        file = _file(f"{folder}/day/{name}")
        assert segment_names(_spec(), job, [file]) == {0: expected}
        warnings = list(naming_warnings(job, [file]))
        assert bool(warnings) == name.endswith("tsv") and all("e.g. /in/day/a.tsv" in one for one in warnings)


def test_rows_that_are_left_out_do_not_change_what_is_known_of_the_file() -> None:
    """The UUID of a name is made from its content; which row was the first or last one is not known any more."""
    file = replace(_file("/in/a"), low_at="line 1", high_at="line 9", low_stored=5, high_stored=9, filtered=2)
    left = file.left_with(3, 1, file.low, 2 * DAY_MS)
    assert (left.sha256, left.filtered, left.rows, left.deletes, left.high) == ("/in/a", 2, 3, 1, 2 * DAY_MS)
    assert (left.low_at, left.low_stored, left.high_at, left.high_stored) == ("", None, "", None)
    assert file.left_with(1, 0, file.low, file.high) == file
    with_uuid = "{type: simple, configs: {append.uuid.to.segment.name: true}}"
    other = replace(left, sha256="/in/b")
    assert _names(_spec(), with_uuid, left) != _names(_spec(), with_uuid, other)


def test_input_file_takes_several_groups() -> None:
    names = r"""
type: inputFile
configs:
  file.path.pattern: '.+/(\d+)/(.+)\.csv'
  segment.name.template: 'x_${filePathPattern:\2}_${filePathPattern:\1}'
"""
    assert _names(_spec(), names, _file("/in/2020/a.csv")) == ["x_a_2020"]


FILES = [_file("/in/1/a.csv"), _file("/in/1/b.csv", rows=0), _file("/in/1/c.csv"), _file("/in/2/a.csv")]


@pytest.mark.parametrize(
    ("configs", "sequences"),
    [
        ("{}", "020"),
        ("{use.global.directory.sequence.id: true}", "023"),
        ("{local.directory.sequence.id: false}", "023"),
        ("{local.directory.sequence.id: false, use.global.directory.sequence.id: false}", "020"),
    ],
)
def test_sequences_count_in_each_folder_or_over_all(configs: str, sequences: str) -> None:
    found = _names(_spec(), f"{{type: simple, configs: {configs}}}", *FILES)
    assert found == [f"myTable_1_3_{sequence}" for sequence in sequences]


def test_uuids_come_from_the_content() -> None:
    names = "{type: simple, configs: {append.uuid.to.segment.name: true, exclude.time.in.segment.name: true}}"
    (first,) = _names(_spec(), names)
    assert first.startswith("myTable_0_") and len(first) == len("myTable_0_") + 36
    assert _names(_spec(), names) == [first], "the same job gives the same name again"
    assert _names(_spec(), names, replace(_file(), sha256="another")) != [first]


def test_keys_that_a_generator_does_not_read_are_warned_of() -> None:
    warnings = _job("{type: simple, configs: {segment.name.prefix: p, exclude.sequence.id: true}}").warnings
    assert [warning.split(": ")[1].removeprefix("segmentNameGeneratorSpec.configs.") for warning in warnings] == [
        "segment.name.prefix",
        "exclude.sequence.id",
    ]


@pytest.mark.parametrize("name", ["or#ders 1", "größe", "a%20b", "注文", "a'b", "[x]{y}", "..a", "é" * 80])
def test_names_may_hold_what_pinots_may(name: str) -> None:
    assert why_no_segment_name(name) is None
    folder = segment_folder(name)
    assert "/" not in folder and folder.isprintable() and len(folder.encode()) <= 255


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a/b", "'/'"), ("a:b", "':'"), ("a\\b", "'\\\\\\\\'"), ('a"b', "'\"'"), ("a<b", "'<'"),
        ("a|b", "'.'"), ("a*", "'\\*'"),
        ("a\nb", "'\\\\n'"), ("a\u202eb", "u202e"), ("a\udcffb", "udcff"), ("", "empty"), ("..", "empty"),
        (" a", "blanks at an end"), ("a" * 201, "too long"), ("注" * 100, "too long"),
        ("__HIVE_DEFAULT_PARTITION__", "stands for no value"),
    ],
)  # fmt: skip
def test_names_that_are_refused(name: str, why: str) -> None:
    assert re.search(why, str(why_no_segment_name(name)))


def test_log_entries_name_folders_as_uris() -> None:
    entry: Any = LaidFile("part-0.parquet", 1, 1, 1, "{}").entry("a#b %é")
    assert entry["add"]["path"] == "_hy_segment=a%2523b%20%2525%C3%A9/part-0.parquet"
    assert (
        unquote(entry["add"]["path"])
        == path_in_half("a#b %é", "part-0.parquet")
        == "_hy_segment=a%23b %25é/part-0.parquet"
    )


def test_simple_names_have_the_values_of_a_column_that_counts_finer() -> None:
    low, high = 1_700_000_000_123_456_789, 1_700_000_000_124_000_001
    file = replace(_file(low=low // 10**6, high=high // 10**6), low_stored=low, high_stored=high)
    assert _names(_spec("1:NANOSECONDS:EPOCH", "LONG"), "{type: simple}", file) == [f"myTable_{low}_{high}_0"]
    unknown = replace(file, low_stored=None, high_stored=None)
    assert _names(_spec("1:NANOSECONDS:EPOCH", "LONG"), "{type: simple}", unknown) == [
        "myTable_1700000000123000000_1700000000124000000_0"
    ]


def test_another_name_has_the_same_times() -> None:
    low, high, taken = 1_700_000_000_123_456_789, "2021/09/24", set[str]()
    for sequence in range(12):
        name = offline_segment("my_table", low, high, taken, "v_2")
        assert name == f"my_table_{low}_2021-09-24_v_2_{sequence}"
        assert name == another_name(f"my_table_{low}_2021-09-24_v_2_7", taken)
        taken.add(name)
