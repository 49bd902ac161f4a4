"""Creates a table: its halves with their first state, then its definition.

The steps, and what a crash after each leaves:

1. Resolve the start offsets (nothing).
2. Create REALTIME, then OFFLINE as empty Delta tables whose commit 0 holds the start. A crash leaves folders without
   rows, which the next `table create` replaces.
3. Add the definition (done).

So the start offsets are committed before anything is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.catalog.definitions import Definition
from hybrid.clock import wall_clock_ms
from hybrid.config.connectors import KafkaInput, StartKind, live_connector
from hybrid.config.offset_place import place_time_ms
from hybrid.config.overrides import apply_sets
from hybrid.config.table_config import CONFIGURED, Half, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import ConflictError, MachineError, NotFoundError
from hybrid.ingest.plan import check_partitions, leader_epochs_at, start_offsets
from hybrid.kafka.streams import StreamView, absent_words, offsets_at, view_stream, words_of
from hybrid.lake.commit import commit_state
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.create import create_half
from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import half_lock
from hybrid.lake.log import open_half
from hybrid.operations.tables.brokers import brokers_for
from hybrid.operations.tables.creation import Creation
from hybrid.operations.tables.creation_lock import creation_lock
from hybrid.runtime.json_values import stamp
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey, place_of, place_text
from hybrid.table.state import Act, HalfState, OfflineState, RealtimeState, next_act

if TYPE_CHECKING:
    from hybrid.config.table_documents import TableDocuments
    from hybrid.home.home import Home

_LOCK_TIMEOUT_S = 10.0


def validate_documents(home: Home, given: TableDocuments) -> TableSpec:
    """Check the documents of a table. Nothing is written, and Kafka is not asked.

    SpecError also for a relative path of a connector that no file made absolute, unless the table has it already.
    """
    (schema, source), configs = given.schema, apply_sets(list(given.configs), list(given.overrides))
    spec = parse_table(schema, source, configs, brokers_for(home, given, configs))
    if spec.connectors:
        from hybrid.config.connector_paths import refuse_relative_paths

        definition = home.definitions.find(spec.name)
        refuse_relative_paths(configs, definition.realtime_doc if definition is not None else None)
    if spec.expectations:
        from hybrid.sql.expectation_sql import refuse_wrong_conditions

        refuse_wrong_conditions(spec.expectations, spec)
    return spec


def create_table(home: Home, given: TableDocuments) -> Creation:
    """Create a table: resolve its start offsets in Kafka, write its empty halves, store its definition.

    ConflictError when the name is taken; StreamError when Kafka does not answer. Nothing is created then.
    """
    spec = validate_documents(home, given)
    layout = home.layout(spec.name)
    with creation_lock(layout, home.settings.lock_timeout_s, home.progress):
        if home.definitions.find(spec.name) is not None:
            raise ConflictError(
                f"Table '{spec.name}' exists already. Nothing was changed.",
                hint="hybrid table apply ... (to change it or add a half)",
            )
        check_free(layout, spec)
        if spec.connectors:
            home.catalog.connectors.forget(spec.name)  # records of an earlier table of this name
        starts = create_halves(layout, spec, home.now_ms())
        home.definitions.add(_definition(spec))
        with suppress(MachineError, *CATALOG_ERRORS):  # the table is there, though its name may be paused still
            home.catalog.serving.forget(spec.name)
    halves = " and ".join(spec.half_names)
    sentence = f"Created table '{spec.name}' ({halves}){start_words(spec, starts)}."
    return Creation(spec.name, (), starts, spec.warnings, sentence)


def _definition(spec: TableSpec) -> Definition:
    return Definition(
        name=spec.name,
        schema_doc=spec.schema_doc or {},
        realtime_doc=spec.realtime_doc,
        offline_doc=spec.offline_doc,
        brokers=spec.stream.brokers if spec.stream else None,
        created_at=stamp(wall_clock_ms()),
    )


def check_free(layout: TableLayout, spec: TableSpec) -> None:
    """ConflictError when the warehouse holds data under the table's name without a definition."""
    for half in sorted(spec.halves):
        _refuse_acted(layout.half(half), spec)


def _refuse_acted(half: Path, spec: TableSpec) -> None:
    """ConflictError when a half has commits after its creation."""
    try:
        acts = open_half(half).state.act.number
    except NotFoundError:  # no log entry, not even from a creation that died
        return
    if acts > 0:
        raise ConflictError(
            f"{half} holds data of an earlier table '{spec.name}'. Nothing was created.",
            hint=f"Move {half.parent} away, or choose another table name.",
        )


def create_halves(
    layout: TableLayout, spec: TableSpec, now_ms: int, halves: Collection[Half] | None = None
) -> Mapping[str, int]:
    """Creates the halves of a new table (or only some). Returns the start offsets by partition (empty: no topic yet).

    StreamError when Kafka does not answer, because `largest` cannot be resolved. ConflictError when a half holds data
    already.
    """
    halves = spec.halves if halves is None else halves
    view = _view(spec) if Half.REALTIME in halves else None
    starts = _starts(spec, view, now_ms)
    makers: dict[Half, Callable[[], HalfState]] = {
        Half.REALTIME: lambda: first_realtime_state(spec, view, starts, now_ms),
        Half.OFFLINE: lambda: first_offline_state(spec, now_ms),
    }
    for half in (Half.REALTIME, Half.OFFLINE):
        if half in halves:
            # Checked again under the lock: only a half without rows, of a creation that died, is removed.
            with half_lock(layout.lock(half), jvm_pid=None, timeout_s=_LOCK_TIMEOUT_S, waiting=lambda _: None):
                _refuse_acted(layout.half(half), spec)
                shutil.rmtree(layout.half(half), ignore_errors=True)
                create_half(layout.half(half), spec, half, makers[half]())
    topics = spec.stream.topics if spec.stream is not None else ()
    return {place_text(topics, key.place): offset for key, offset in starts.items()}


def start_words(spec: TableSpec, starts: Mapping[str, int]) -> str:
    """The part of a new table's sentence that names its sources; `starts` as `create_halves` returns them."""
    topics = spec.stream.topics if spec.stream is not None else ()
    existing_topics = {place_of(topics, partition).topic for partition in starts}
    absent = absent_words(spec.stream, existing_topics) if spec.stream is not None else None
    later = f"; {absent} and will be read from offset 0" if absent else ""
    if spec.connectors:
        names = ", ".join(connector.name for connector in spec.connectors)
        run = f"; its connectors ({names}) run by `hybrid serve` or `hybrid ingest {spec.name}`"
        return run + (later if _starts_at_once(spec) else "")
    if spec.stream is None:
        return ""
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in starts.items())
    read = f"; it reads {words_of(spec.stream, existing_topics)} from offset (by partition) {offsets}" if starts else ""
    return f"{read}{later}"


def check_stream(spec: TableSpec) -> None:
    """Check that Kafka has what a table reads, as its creation does. StreamError when it does not answer or has not."""
    view = _view(spec)
    if spec.stream is not None and view is not None:
        check_partitions(spec.name, spec.stream, view)


def settle_boundary_mode(layout: TableLayout, spec: TableSpec, now_ms: int) -> None:
    """Sets the boundary mode of an OFFLINE half that gets its REALTIME half; until now it had no boundary.

    Runs before the REALTIME half is created. After a crash in between the next attempt sets the mode again.
    """
    path = layout.half(Half.OFFLINE)
    with half_lock(layout.lock(Half.OFFLINE), jvm_pid=None, timeout_s=_LOCK_TIMEOUT_S, waiting=lambda _: None):
        half, mode = open_half(path), spec.first_boundary_mode
        state = half.offline
        if state.boundary.mode is mode:
            return
        act = next_act(state, new_act_id("boundary"), "boundary", _iso(now_ms), {"mode": mode.value})
        boundary = replace(state.boundary, mode=mode)
        commit_state(path, replace(state, act=act, boundary=boundary), planned=half.version)


def _starts(spec: TableSpec, view: StreamView | None, now_ms: int) -> Mapping[PartitionKey, int]:
    """The start offsets of the table."""
    stream = spec.stream
    if stream is None or view is None:
        return {}
    check_partitions(spec.name, stream, view)
    time_ms = place_time_ms(stream.offset_reset, now_ms)
    at_time = offsets_at(stream, view.ends, time_ms) if time_ms is not None and view.ends else None
    return start_offsets(stream, view, at_time)


def first_realtime_state(
    spec: TableSpec, view: StreamView | None, starts: Mapping[PartitionKey, int], now_ms: int
) -> RealtimeState:
    """The state of commit 0 of a REALTIME half: the start offset of each partition, and the topic's id."""
    act, stream = _act_zero(spec, now_ms), spec.stream
    if stream is None:
        return RealtimeState(act)
    started = {stream.connector: {"started_at": act.at}} if _starts_at_once(spec) else {}
    topic_ids = RealtimeState(act).with_ids(stream, view.topic_ids if view is not None else {})
    epochs = leader_epochs_at(view, starts) if view is not None else {}
    return RealtimeState(act, offsets=starts, topic_ids=topic_ids, progress=started, leader_epochs=epochs)


def _starts_at_once(spec: TableSpec) -> bool:
    """Whether a connector starts at Kafka's end as of the creation: a later start would skip messages since then."""
    live = live_connector(spec.connectors)
    if live is None or not isinstance(live.transport, KafkaInput):
        return False
    return live.transport.start.kind is StartKind.LATEST and not live.start_after and not live.paused


def first_offline_state(spec: TableSpec, now_ms: int) -> OfflineState:
    """The state of commit 0 of an OFFLINE half: a boundary that covers nothing, in the table's permanent mode."""
    boundary = Boundary(None if spec.time_column else INFINITE, mode=spec.first_boundary_mode)
    return OfflineState(_act_zero(spec, now_ms), boundary=boundary)


def _view(spec: TableSpec) -> StreamView | None:
    """The topics that are read from the creation on; None for connectors that look up their topics when they start."""
    if spec.stream is None or not (spec.stream.connector == CONFIGURED or _starts_at_once(spec)):
        return None
    return view_stream(spec.stream)


def _act_zero(spec: TableSpec, now_ms: int) -> Act:
    # The documents are stored with the data, so that a lost catalog can be rebuilt from the tables.
    documents: dict[str, Any] = {
        "schema": spec.schema_doc,
        "realtime": spec.realtime_doc,
        "offline": spec.offline_doc,
        "brokers": spec.stream.brokers if spec.stream else None,
    }
    return Act(new_act_id("create"), 0, "create", _iso(now_ms), documents)


def _iso(now_ms: int) -> str:
    return stamp(now_ms)
