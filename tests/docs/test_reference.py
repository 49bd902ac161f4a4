"""docs/reference and the code say the same: commands, options, settings, hidden columns, functions, keys."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hybrid import errors
from hybrid.cli.command import global_options
from hybrid.cli.main import hybrid
from hybrid.config import (
    bucket_json,
    expectations,
    job_names,
    job_reader,
    job_spec,
    schema_json,
    stream_json,
    table_keys,
)
from hybrid.config.setting_keys import KEYS
from hybrid.expression import functions as transform_functions
from hybrid.flow.declared import model, options
from hybrid.lake.failpoints import ACT_KINDS
from hybrid.schema.datepattern import _FIELDS as LETTERS
from hybrid.schema.timeformat import UNITS_NS
from hybrid.schema.types import DataType
from hybrid.sql import aggregates, arithmetic, functions, times
from hybrid.sql.row_functions import FUNCTIONS as ROW_FUNCTIONS
from hybrid.sql.tokens import VIRTUAL
from hybrid.table.boundary import Boundary
from hybrid.table.columns import HIDDEN, REJECTED_ONLY
from hybrid.table.state import Act, OfflineState, RealtimeState, to_user_metadata
from tests.docs.pages import ERRORS, REFERENCE, REFERENCE_PAGES, ROOT, prose, reference, spans, table, tables


def text_of(*nouns: str) -> str:
    """The text of the pages of some nouns, outside of fences."""
    return "\n".join(line for noun in nouns for line in prose(reference(noun)))


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that can be run, with the words that name it."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command
            for verb, found in getattr(command, "verbs", {}).items():
                yield (*path, name, verb), found


def own_options(command: click.Command) -> set[str]:
    shared = {word for option in global_options() for word in option.opts}
    return {word for param in command.params if isinstance(param, click.Option) for word in param.opts} - shared


CODE = dict(commands(hybrid))
DOCUMENTED = {
    span: row for page in REFERENCE_PAGES for found in tables(page) if found.names[:2] == ("command", "options")
    for row in found.rows for span in spans(row[0])
}  # fmt: skip


def name_of(documented: str) -> tuple[str, ...]:
    """`hybrid kafka topic create NAME` -> (kafka, topic, create)."""
    words = documented.split()[1:]
    return next((name for size in range(len(words), 0, -1) if (name := tuple(words[:size])) in CODE), tuple(words))


def test_every_command_is_documented_and_exists() -> None:
    assert {name_of(text) for text in DOCUMENTED} == set(CODE)
    assert all(isinstance(hybrid.get_command(click.Context(hybrid), noun), click.Command) for noun, *_ in CODE)


@pytest.mark.parametrize("text", DOCUMENTED)
def test_options_of_a_command(text: str) -> None:
    command = CODE[name_of(text)]
    documented = {span.split()[0] for span in spans(DOCUMENTED[text][1])}
    in_code = own_options(command)
    aliases = {word for param in command.params for word in param.opts if len(param.opts) > 1}
    assert documented <= in_code
    assert in_code - documented <= aliases - documented
    assert all(documented & set(param.opts) for param in command.params if set(param.opts) & in_code)


@pytest.mark.parametrize("text", DOCUMENTED)
def test_arguments_of_a_command(text: str) -> None:
    arguments = [param for param in CODE[name_of(text)].params if isinstance(param, click.Argument)]
    documented = text.split()[1 + len(name_of(text)) :]
    assert [word.startswith("[") for word in documented] == [not argument.required for argument in arguments]


def test_global_options() -> None:
    documented = {
        span.split()[0] for cell in table(reference("cli"), "Global options").column("option") for span in spans(cell)
    }
    assert documented - {"-h"} == {word for option in global_options() for word in option.opts if word != "verbose"}


def test_every_setting_is_documented() -> None:
    documented = table(reference("settings"), "Settings")
    assert documented.column("setting") == [f"`{key.name}`" for key in KEYS]
    assert documented.column("variable") == [f"`{key.variable}`" for key in KEYS]
    for key, written in zip(KEYS, documented.column("default"), strict=True):
        default = "none" if key.default is None else str(key.default)
        assert written.strip("`") == default.removesuffix(".0")


def test_hidden_columns() -> None:
    documented = table(reference("files-on-disk"), "Hidden columns")
    pairs = [(f"`{name}`", f"`{kind}`") for name, kind in (*HIDDEN, *REJECTED_ONLY)]
    assert list(zip(documented.column("column"), documented.column("type"), strict=True)) == pairs


def test_virtual_columns() -> None:
    found = next(one for one in tables(reference("query")) if one.names[0] == "virtual column")
    assert found.column("virtual column") == [f"`{name}`" for name in VIRTUAL]


def test_data_types_and_their_nulls() -> None:
    documented = table(reference("schema"), "Data types")
    assert documented.column("type") == list(DataType)
    assert documented.column("stored in Delta as") == [f"`{one.spark_type}`" for one in DataType]
    for name in ("INT", "LONG"):
        row = next(row for row in documented.rows if row[0] == name)
        assert row[3] == str(schema_json.default_null(DataType(name), schema_json.FieldKind.DIMENSION))


def test_units_and_letters_of_time_formats() -> None:
    text = text_of("schema").partition("## Time formats")[2].partition("## Changes")[0]
    units = re.search(r"Units: ([A-Z, ]+)\.", text)
    assert units is not None and units[1].split(", ") == list(UNITS_NS)
    letters = {
        word for span in spans(" ".join(text.partition("Letters of patterns:")[2].split())) for word in span.split()
    }
    assert set(LETTERS) <= letters


def test_functions() -> None:
    listed = {
        span.partition("(")[0]
        for cell in table(reference("function"), "Functions").column("functions")
        for span in spans(cell)
    }
    known = {*aggregates.RULES, *times.RULES, *functions.SCALARS, *arithmetic.NAMES}
    written = {functions.canonical(name) for name in listed}
    assert {name for name in written if name not in known and not aggregates.is_percentile(name)} == set()
    assert known - written == set()
    assert all(
        name.upper() in text_of("query", "function", "transform", "expectation").replace("_", "")
        for name in functions._ABSENT
    )


def test_functions_of_row_expressions() -> None:
    found = next(one for one in tables(reference("expectation")) if one.names[0] == "family of row functions")
    assert {functions.canonical(name) for cell in found.column("names") for name in spans(cell)} == set(ROW_FUNCTIONS)


def test_keys_of_expectations() -> None:
    kinds, further, _ = (one for one in tables(reference("expectation")) if one.headings[-1] == "Expectation")
    documented = {
        spans(kind)[0]: tuple(spans(keys)) for kind, keys in zip(*map(kinds.column, kinds.names[:2]), strict=True)
    }
    assert documented == expectations._KEYS
    assert further.column("further key") == ["`name`", "`on_failure`"]
    assert all(f"`{word}`" in further.rows[1][2] for word in expectations.OnFailure)


def test_functions_of_transforms() -> None:
    documented = table(reference("transform"), "Functions of transforms")
    found = {row[0]: spans(row[1]) for row in documented.rows}
    assert found == {family: list(rules) for family, rules in transform_functions.FAMILIES.items()}


def test_keys_of_schemas() -> None:
    section = text_of("schema").partition("## Data types")[0]
    keys = {span for span in spans(section) if re.fullmatch(r"[a-zA-Z.]+", span)}
    assert schema_json._SCHEMA_KEYS | schema_json._FIELD_KEYS | schema_json._REFUSED.keys() <= keys


def test_keys_of_table_configs() -> None:
    section = text_of("table-config", "kafka", "message", "move", "task", "upsert", "dedup", "connector")
    keys = {part for span in spans(section) for part in (span, span.split(".")[-1].strip('"'))}
    assert keys >= stream_json._USED
    assert {key for reasons in table_keys.REFUSED.values() for key in reasons} <= keys
    assert set(table_keys.TASKS) <= keys
    assert {"mode", "comparisonColumn", "comparisonColumns", "deleteRecordColumn"} <= keys
    assert {key for key in bucket_json._MOVE_KEYS if "Period" in key or "Name" in key or key == "mergeType"} <= keys
    top = {key for key in table_keys.KEYS[""] if not key.endswith("Config")} - {"segmentsConfig", "connectors"}
    assert {key for key in top if key not in keys} <= {"task", "metadata"}


def test_keys_of_job_specs() -> None:
    section = text_of("job")
    keys = {part for span in spans(section) for part in (span, span.split(".")[-1])}
    keys |= {".".join(span.split(".")[-2:]) for span in spans(section)} | {
        ".".join(span.split(".")[-3:]) for span in spans(section)
    }
    used = {f"{path}.{key}".strip(".") for path, names in job_spec._USED.items() for key in names}
    documented = set(spans(section))
    containers = set(filter(None, job_spec._USED))
    assert used - documented - containers == set()
    reader_keys = [*job_reader.READER_KEYS.values(), *job_reader.QUIET_READER_KEYS.values()]
    assert set().union(*reader_keys, job_reader.DATA_FORMATS) <= keys
    assert keys >= job_spec._QUIET_TOP and set(job_spec.JOB_TYPES) <= keys
    assert {name for names in job_names.NAME_KEYS.values() for name in names} <= keys


def test_state_in_the_log() -> None:
    act = Act("create-1", 0, "create", "2021-11-21T00:00:00.000+00:00")
    realtime, offline = (
        json.loads(to_user_metadata(state)) for state in (RealtimeState(act), OfflineState(act, Boundary()))
    )
    keys, kinds = (found for found in tables(reference("files-on-disk")) if found.headings[-1] == "State in the log")
    by_half = {
        half: [spans(row[0])[0] for row in keys.rows if row[1] in {"both", half}] for half in ("REALTIME", "OFFLINE")
    }
    assert by_half == {"REALTIME": list(realtime), "OFFLINE": list(offline)}
    assert {span for cell in kinds.column("`act.kind`") for span in spans(cell)} == set(ACT_KINDS)


def test_errors_and_exit_codes() -> None:
    found = next(one for one in tables(ERRORS) if one.names[0] == "error")
    documented = {spans(row[0])[0]: int(row[1]) for row in found.rows}
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.HybridError)]
    assert documented == {one.__name__: one.exit_code for one in classes if one is not errors.HybridError}


def test_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(dependency.split("==") for dependency in project["dependencies"] if "==" in dependency)
    documented = {row[0]: row[1] for row in table(reference("versions"), "Versions that fit together").rows}
    assert {name: documented[name] for name in pinned} == pinned
    jars = (ROOT / "hybrid/jvm/jars.lock").read_text(encoding="utf-8")
    assert f"spark-sql-kafka-0-10_2.13:{documented['`spark-sql-kafka-0-10_2.13`']}" in jars
    assert f"kafka_2.13:{documented['Kafka (the local broker)']}" in jars and "delta-spark_4.2_2.13:4.4.0" in jars


def test_options_and_properties_of_flows() -> None:
    section = text_of("flow")
    named = set(spans(section))
    assert set(model.TABLE_PROPERTIES) <= named
    assert set(options.OWN) - {"format"} <= named
    assert set(options.REFUSED) - {"columnNameOfCorruptRecord", "skipRows"} <= named
    assert set(options.Evolution) <= named


def test_the_index_lists_every_page() -> None:
    linked = re.findall(r"\]\(([a-z-]+\.md)\)", (REFERENCE / "README.md").read_text(encoding="utf-8"))
    assert sorted(linked) == [page.name for page in REFERENCE_PAGES]


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: str(page.stem))
def test_lines_fit_a_screen(page: Path) -> None:
    assert [line for line in page.read_text(encoding="utf-8").splitlines() if len(line) > 120] == []
