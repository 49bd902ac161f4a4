"""Options of file sources: every spelling gives the same, and nothing that loses rows is taken."""

import pytest

from hybrid.errors import SpecError
from hybrid.flow.declared.options import READER, REFUSED, TUNING, Evolution, parse_source


def source(streaming=True, schema=None, **options):
    return parse_source("/data/*", {"format": "json", **options}, "f.py", streaming=streaming, schema=schema)


def refused(**options):
    with pytest.raises(SpecError) as caught:
        source(**options)
    return str(caught.value)


def test_all_spellings_are_one():
    plain = source(maxFilesPerTrigger=5, modifiedAfter="2025-01-01")
    clouds = {"cloudFiles.maxFilesPerTrigger": "5", "modifiedafter": "2025-01-01T00:00:00Z"}
    assert plain == source(**clouds)
    assert (plain.files_max, plain.modified_after_ms, plain.evolution) == (5, 1735689600000, Evolution.ADD)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("2024-12-31T23:59:59.999+00:00", 1735689599999),
        ("2025-01-01 00:00:00.000000 UTC+0", 1735689600000),
        ("2025-01-01T01:00:00+01:00", 1735689600000),
        ("2025-01-01 00:00:00 UTC", 1735689600000),
    ],
)
def test_times(text, millis):
    assert source(modifiedBefore=text).modified_before_ms == millis


@pytest.mark.parametrize(("text", "size"), [("100", 100), ("10k", 10240), ("2mb", 2 << 20), ("10G", 10 << 30)])
def test_sizes(text, size):
    assert source(maxBytesPerTrigger=text).bytes_max == size


def test_tuning_of_other_engines_is_accepted_quietly():
    assert source(**dict.fromkeys(TUNING, "x")) == source()


@pytest.mark.parametrize("name", REFUSED)
def test_what_loses_rows_is_refused_with_its_reason(name):
    values, reason = REFUSED[name]
    form = "csv" if name == "skipRows" else "json"
    assert reason in refused(**{name: (values or ("x",))[0], "format": form})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxFilesPerTriger": 1}, "Did you mean 'maxFilesPerTrigger'?"),
        ({"delimiter": ";"}, "is not known for format json. It is one of csv."),
        ({"maxFilesPerTrigger": 0}, "'0' is not a whole number from 1 on"),
        ({"maxBytesPerTrigger": "ten"}, "is no size"),
        ({"modifiedAfter": "yesterday"}, "is no time"),
        ({"recursiveFileLookup": "yes"}, "neither true nor false"),
        ({"schemaEvolutionMode": "add"}, "is none of addNewColumns, rescue, failOnNewColumns, none"),
        ({"schemaEvolutionMode": "addNewColumns", "schema": "id INT"}, "does not go with a schema"),
        ({"rescuedDataColumn": "r"}, "does not go with addNewColumns"),
        ({"format": "avro"}, "'avro' is not read here. There are json, csv, parquet."),
        ({"maxFilesPerTrigger": 1, "cloudFiles.maxFilesPerTrigger": 2}, "is given twice"),
    ],
)
def test_mistakes_are_errors_with_what_would_do(options, message):
    assert message in refused(**options)


def test_modes_and_their_defaults():
    assert source(schema="id INT").evolution is Evolution.NONE
    rescue = source(schemaEvolutionMode="rescue")
    assert (rescue.evolution, rescue.rescued) == (Evolution.RESCUE, "_rescued_data")
    assert source(schema="id INT", rescuedDataColumn="left").rescued == "left"


def test_readers_options_go_to_the_reader_under_their_right_names():
    assert source(MULTILINE=True).reader == {"multiLine": "true"}
    assert all("multiLine" in READER[form] for form in ("json", "csv"))


def test_stream_options_on_a_batch_are_told():
    assert "has no effect on a batch" in source(streaming=False, maxFilesPerTrigger=3).warnings[0]


def test_only_folders_of_this_machine():
    with pytest.raises(SpecError, match="'s3:' is not built yet"):
        parse_source("s3://bucket/x", {"format": "json"}, "f", streaming=True)
    assert parse_source("file:///a/b", {"format": "json"}, "f", streaming=True).path == "/a/b"
