"""Reads Pinot's schema and table configs (REALTIME, OFFLINE or both) as one logical table.

A key that is not implemented gives one warning. A key is an error where ignoring it would store other data than the
file asks for. Keys of hosts, tenants, replicas and indexes are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from hybrid.config.batch_ingestion import BatchIngestion, parse_batch_ingestion
from hybrid.config.bucket_json import TableRows, parse_move
from hybrid.config.column_roles import ddl_columns, index_columns, sort_columns, time_column_of, time_warnings
from hybrid.config.compaction_json import parse_compaction
from hybrid.config.dedup_json import DEDUP, parse_dedup, refuse_not_first
from hybrid.config.ingestion_json import flattening_warnings, parse_ingestion
from hybrid.config.kept_rows import check_all_kept, check_arrivals_kept
from hybrid.config.merge_json import parse_merge_schedule, parse_merges
from hybrid.config.partition_json import parse_partitions, partition_warnings
from hybrid.config.retention_json import (
    parse_retention,
    parse_retention_schedule,
)
from hybrid.config.schema_json import parse_schema
from hybrid.config.stream_json import find_streams, parse_stream
from hybrid.config.table_config import (
    BoundaryMode,
    Half,
    StreamConfig,
    TableSpec,
    UpsertConfig,
)
from hybrid.config.table_halves import Halves, halves_of, refuse_hidden, refuse_swapped, table_name
from hybrid.config.table_keys import BOUNDARY, DDL, EXPECTATIONS, FLOWS, REVERT_WINDOW, must_be_empty
from hybrid.config.table_warnings import table_warnings
from hybrid.config.task_schedules import (
    OPTIMIZE_DEFAULT,
    OPTIMIZE_SCHEDULE,
    VACUUM_DEFAULT,
    VACUUM_SCHEDULE,
    parse_upkeep_schedule,
)
from hybrid.config.upsert_json import MOVE_TASK, parse_upsert, refuse_other_upsert, tasks_of
from hybrid.errors import Gathered, SpecError
from hybrid.schema.document import Section
from hybrid.schema.ingestion import IngestionConfig
from hybrid.schema.period import parse_period
from hybrid.schema.schema import Schema

if TYPE_CHECKING:
    from hybrid.config.connectors import Connector
    from hybrid.config.expectations import Expectation

_REVERT_WINDOW_MS, _HOUR_MS = 30 * 86_400_000, 3_600_000
_LAG_HOURLY_MS, _LAG_DAILY_MS = 3_600_000, 86_400_000  # of mode `pinot`, by ingestion frequency


def parse_table(
    schema_doc: dict[str, object],
    schema_source: str,
    configs: list[tuple[dict[str, object], str]],
    brokers: str | None = None,
) -> TableSpec:
    """The table that a schema and its configs (document, source file) describe; `brokers` replaces the broker list.

    SpecError names file, place and value of each mistake. `warnings` of the result name the keys without effect.
    """
    refuse_swapped((schema_doc, schema_source), configs)
    try:
        return _parse_table(schema_doc, schema_source, configs, brokers)
    except SpecError as error:
        errors = Gathered()
        errors.add(error)
        _find_errors(errors, schema_doc, schema_source, configs, brokers)
        errors.raise_all()
        raise


def _find_errors(
    errors: Gathered,
    schema_doc: dict[str, object],
    schema_source: str,
    configs: list[tuple[dict[str, object], str]],
    brokers: str | None,
) -> None:
    """Adds the further errors of a table's documents: of each part whose own parts are in order."""
    schema, halves = None, dict[Half, Section]()
    with errors:
        schema = parse_schema(schema_doc, schema_source)
    with errors:
        halves = halves_of(configs)
    if not halves:
        return
    realtime, offline = halves.get(Half.REALTIME), halves.get(Half.OFFLINE)
    readers: list[Callable[[], object]] = [partial(must_be_empty, top) for top in halves.values()]
    readers += [
        partial(table_name, halves),
        partial(_boundary_mode, halves),
        partial(_revert_window_ms, halves),
        partial(parse_upkeep_schedule, halves, VACUUM_SCHEDULE, VACUUM_DEFAULT),
        partial(parse_merge_schedule, offline),
    ]
    if realtime:
        readers.append(partial(_connectors, realtime, brokers))
        readers.append(partial(parse_upkeep_schedule, halves, OPTIMIZE_SCHEDULE, OPTIMIZE_DEFAULT))
    readers += [partial(parse_batch_ingestion, offline)] if offline else []
    if schema is not None:
        readers += _readers_of_columns(schema, halves, brokers)
    errors.read_further(readers)


def _readers_of_columns(schema: Schema, halves: Halves, brokers: str | None) -> list[Callable[[], object]]:
    """Readers of the parts of configs that name columns."""
    readers: list[Callable[[], object]] = [
        partial(time_column_of, halves, schema),
        partial(_null_handling, halves, schema),
        partial(sort_columns, halves, schema),
        partial(_expectations, halves, schema),
        partial(parse_partitions, halves.get(Half.OFFLINE), schema),
        *(partial(parse_ingestion, top, schema, half) for half, top in halves.items()),
    ]
    realtime = halves.get(Half.REALTIME)
    if realtime is not None:
        readers.append(lambda: ddl_columns(_custom(realtime), schema))
    if realtime is not None and _has_stream_configs(realtime):
        readers.append(partial(_stream, realtime, schema, (), halves, brokers))
    try:
        time_column, null_handling = time_column_of(halves, schema), _null_handling(halves, schema)
    except SpecError:
        return readers

    def read_tasks() -> None:
        upsert = _upsert(halves, schema, time_column, null_handling)
        rows = TableRows(schema, time_column, upsert is not None and not upsert.folds)
        task = tasks_of(realtime) if realtime is not None else None
        move = parse_move(task.section(MOVE_TASK), rows) if task and MOVE_TASK in task.doc else None
        parse_merges(halves.get(Half.OFFLINE), rows, move)

    return [*readers, read_tasks, partial(parse_retention, halves, time_column)]


def _parse_table(
    schema_doc: dict[str, object],
    schema_source: str,
    configs: list[tuple[dict[str, object], str]],
    brokers: str | None,
) -> TableSpec:
    refuse_hidden(configs)
    schema = parse_schema(schema_doc, schema_source)
    halves = halves_of(configs)
    _check_honoured(halves)
    time_column = time_column_of(halves, schema)
    null_handling = _null_handling(halves, schema)
    upsert = _upsert(halves, schema, time_column, null_handling)
    realtime, offline = halves.get(Half.REALTIME), halves.get(Half.OFFLINE)
    connectors = _connectors(realtime, brokers) if realtime else ()
    if offline and offline.has("connectors"):
        offline.fail("connectors", "stand in the REALTIME config, those that bring history too.")
    task = tasks_of(realtime) if realtime else None
    rows = TableRows(schema, time_column, upsert is not None and not upsert.folds)
    move = parse_move(task.section(MOVE_TASK), rows) if task and MOVE_TASK in task.doc else None
    stream = _stream(realtime, schema, connectors, halves, brokers) if realtime else None
    batch = parse_batch_ingestion(offline) if offline else BatchIngestion()
    retention = parse_retention(halves, time_column)
    ingestion = {half: parse_ingestion(top, schema, half) for half, top in halves.items()}
    spec = TableSpec(
        name=table_name(halves),
        schema=schema,
        halves=frozenset(halves),
        time_column=time_column,
        stream=stream,
        move=move,
        upsert=upsert,
        sort_columns=sort_columns(halves, schema),
        index_columns=index_columns(halves, schema),
        null_handling=null_handling,
        ingestion=ingestion,
        boundary_mode=_boundary_mode(halves),
        revert_window_ms=_revert_window_ms(halves),
        retention=retention,
        retention_schedule=parse_retention_schedule(halves, retention),
        merge_levels=parse_merges(offline, rows, move),
        merge_schedule=parse_merge_schedule(offline),
        partitions=parse_partitions(offline, schema),
        compaction=parse_compaction({half: tasks_of(top) for half, top in halves.items()}, upsert is not None),
        vacuum_schedule=parse_upkeep_schedule(halves, VACUUM_SCHEDULE, VACUUM_DEFAULT),
        optimize_schedule=parse_upkeep_schedule(halves, OPTIMIZE_SCHEDULE, OPTIMIZE_DEFAULT) if realtime else None,
        boundary_lag_ms=_LAG_HOURLY_MS if batch.hourly else _LAG_DAILY_MS,
        batch=batch,
        by_flows=realtime is not None and _by_flows(realtime),
        connectors=connectors,
        ignores_case=realtime is not None and _custom(realtime).boolean(DDL),
        ddl_columns=ddl_columns(_custom(realtime), schema) if realtime else (),
        expectations=_expectations(halves, schema),
        schema_doc=schema_doc,
        realtime_doc=realtime.doc if realtime else None,
        offline_doc=offline.doc if offline else None,
        warnings=tuple(_warnings(halves, schema, time_column, ingestion)),
    )
    check_all_kept(spec, halves)
    check_arrivals_kept(spec, halves)
    if upsert is not None and upsert.first_wins:
        top = next(top for top in halves.values() if top.has(DEDUP))
        refuse_not_first(top.section(DEDUP), stream, connectors, by_flows=spec.by_flows)
    if realtime and connectors:
        _check_datagens(realtime, spec)
    return spec


def _upsert(halves: Halves, schema: Schema, time_column: str | None, null_handling: bool) -> UpsertConfig | None:
    configs: list[tuple[Section, UpsertConfig | None]] = []
    for half in (Half.REALTIME, Half.OFFLINE):
        if half in halves and halves[half].has("upsertConfig"):
            section = halves[half].section("upsertConfig")
            configs.append((section, parse_upsert(section, schema, time_column, null_handling)))
    if len(configs) == 2 and configs[0][1] != configs[1][1]:
        refuse_other_upsert(configs[0][0], configs[1][0])
    dedup = _dedup(halves, schema)
    if dedup is None:
        return configs[0][1] if configs else None
    for section, upsert in configs:
        if upsert is not None:
            section.fail("mode", f"{DEDUP} is enabled too, and of a key either the first row is seen or the newest.")
    return dedup


def _dedup(halves: Halves, schema: Schema) -> UpsertConfig | None:
    sections = [halves[half].section(DEDUP) for half in Half if half in halves and halves[half].has(DEDUP)]
    configs = [parse_dedup(section, schema) for section in sections]
    if len(configs) == 2 and configs[0] != configs[1]:
        sections[1].fail("dedupEnabled", f"differs from {sections[0].source}: dedup holds over both halves alike.")
    return configs[0] if configs else None


def _null_handling(halves: Halves, schema: Schema) -> bool:
    key = "nullHandlingEnabled"
    sections = [top.section("tableIndexConfig") for top in halves.values()]
    by_value = {section.boolean(key): section for section in sections if section.doc.get(key) is not None}
    if len(by_value) == 2:
        by_value[False].fail(key, f"false is not true, as in {by_value[True].source}: both halves agree.")
    return schema.null_handling or True in by_value


def _connectors(realtime: Section, brokers: str | None) -> tuple[Connector, ...]:
    if realtime.doc.get("connectors") is None:
        return ()  # most tables have none, and each command reads its table's config
    from hybrid.config.connectors_json import parse_connectors

    return parse_connectors(realtime, brokers=brokers)


def _stream(
    realtime: Section, schema: Schema, connectors: tuple[Connector, ...], halves: Halves, brokers: str | None
) -> StreamConfig | None:
    """The stream of a REALTIME config; None for a table that flows fill, or a DDL without a Kafka connector."""
    if connectors:
        from hybrid.config.connector_stream import stream_of

        columns = ddl_columns(_custom(realtime), schema) or schema.column_names
        return stream_of(realtime, schema, columns, connectors, halves.keys())
    if _by_flows(realtime) or _custom(realtime).boolean(DDL):
        return None
    return parse_stream(find_streams(realtime), schema, brokers)


def _check_datagens(realtime: Section, spec: TableSpec) -> None:
    from hybrid.config.connector_datagen import check_datagen
    from hybrid.config.connectors import Datagen

    for section, connector in zip(realtime.sections("connectors"), spec.connectors, strict=True):
        if isinstance(connector.transport, Datagen):
            check_datagen(section.section("transport").section("config"), connector.transport, spec)


def _expectations(halves: Halves, schema: Schema) -> tuple[Expectation, ...]:
    """The expectations of both configs, which hold for the whole table."""
    if not any(EXPECTATIONS in _custom(top).doc for top in halves.values()):
        return ()
    from hybrid.config.expectations import named_apart, parse_expectations

    return named_apart(
        expectation for top in halves.values() for expectation in parse_expectations(_custom(top), schema)
    )


def _custom(top: Section) -> Section:
    return top.section("metadata").section("customConfigs")


def _by_flows(realtime: Section) -> bool:
    return _custom(realtime).boolean(FLOWS)


def _has_stream_configs(realtime: Section) -> bool:
    return not (realtime.has("connectors") or _by_flows(realtime) or _custom(realtime).boolean(DDL))


def _boundary_mode(halves: Halves) -> BoundaryMode | None:
    modes: dict[BoundaryMode, Section] = {}
    for top in halves.values():
        custom = top.section("metadata").section("customConfigs")
        if custom.has(BOUNDARY):
            modes[BoundaryMode(custom.choice(BOUNDARY, tuple(BoundaryMode)))] = custom
    if len(modes) > 1:
        first, other = modes
        message = f"'{other}' is not '{first}', as in {modes[first].source}: a table has one boundary."
        modes[other].fail(BOUNDARY, message)
    return next(iter(modes), None)


def _revert_window_ms(halves: Halves) -> int:
    """How long replaced data is kept, in milliseconds. The OFFLINE config sets it for both halves."""
    top = halves.get(Half.OFFLINE)
    custom = top.section("metadata").section("customConfigs") if top is not None else None
    if custom is None or not custom.has(REVERT_WINDOW):
        return _REVERT_WINDOW_MS
    window_ms = parse_period(custom.text(REVERT_WINDOW), custom.source, f"{custom.path}.{REVERT_WINDOW}")
    if window_ms < _HOUR_MS or window_ms % _HOUR_MS:
        custom.fail(REVERT_WINDOW, "is given in whole hours or days, at least one hour. Write it like '30d' or '12h'.")
    return window_ms


def _check_honoured(halves: Halves) -> None:
    for top in halves.values():
        must_be_empty(top)


def _warnings(
    halves: Halves, schema: Schema, time_column: str | None, ingestion: Mapping[Half, IngestionConfig]
) -> Iterator[str]:
    realtime = halves.get(Half.REALTIME)
    yield from schema.warnings
    yield from time_warnings(halves, schema, time_column)
    yield from table_warnings(halves, time_column, has_stream=realtime is not None and _has_stream_configs(realtime))
    for half, top in halves.items():
        yield from flattening_warnings(top, schema, ingestion[half])
    yield from partition_warnings(halves.get(Half.OFFLINE), schema)
