"""Changes a table that exists: adds a half or columns, widens types, takes over other settings.

What would lose rows or values, or give them another meaning, is refused: `hybrid.config.evolution` says it of columns.
Primary key, time column, topic and upsert cannot be changed; and the boundary's mode is fixed from the moment that the
table has both halves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hybrid.catalog.definitions import Definition
from hybrid.config.broker_list import plain_brokers
from hybrid.config.connectors import Connector, FileInput
from hybrid.config.evolution import column_change, with_kept_defaults
from hybrid.config.table_config import Half, Partial, TableSpec, UpsertConfig
from hybrid.config.table_json import raw_table_name
from hybrid.errors import SpecError
from hybrid.lake.evolve import evolve_half, is_behind
from hybrid.lake.log import open_half
from hybrid.operations.tables.create import check_stream, create_halves, creation_lock, settle_boundary_mode
from hybrid.operations.tables.creation import Creation
from hybrid.schema.secrets import hides, opens_options, value_without_secrets
from hybrid.table.rollup_rules import refuse_rolled_otherwise

if TYPE_CHECKING:
    from hybrid.home.home import Home

BROKERS_CHANGE = "broker address: "  # how a change of brokers begins in `Creation.changes`
_DOCUMENTS = {"schema": "schema_doc", "REALTIME": "realtime_doc", "OFFLINE": "offline_doc"}


def apply_change(
    home: Home, known: Definition, wanted: TableSpec, *, dry_run: bool = False, kafka: str | None = None
) -> Creation:
    """Brings the table `known` to what `wanted` says. A document that `wanted` does not give stays as it is.

    `kafka` are brokers that were named, also for a table whose REALTIME config is not given.
    SpecError for what is refused, StreamError when other brokers do not answer; nothing was changed then. New columns
    and wider types take Spark.
    """
    with creation_lock(home.layout(known.name), home.settings.lock_timeout_s, home.progress):
        return _applied(home, home.definitions.find(known.name) or known, wanted, dry_run, kafka)


def _applied(home: Home, known: Definition, wanted: TableSpec, dry_run: bool, kafka: str | None) -> Creation:
    before = home.spec_of(known)
    definition = _changed(known, wanted, before)
    if kafka is not None and definition.realtime_doc is not None:
        stream = wanted.stream or before.stream
        protocol = stream.security.protocol if stream is not None else None
        definition = replace(definition, brokers=plain_brokers(kafka, "--kafka", protocol))
    changes = [
        change
        for noun, name in _DOCUMENTS.items()
        for change in _difference(noun, getattr(known, name), getattr(definition, name))
    ]
    if definition.brokers != known.brokers:
        changes.append(f"{BROKERS_CHANGE}{known.brokers} -> {definition.brokers}")
    after = home.spec_of(definition)
    _check_kept(before, after)
    _check_rolled(home, before, after)
    behind = _behind(home, after, before.halves)
    changes = changes or [f"columns of {half}: an earlier change of them did not end" for half in behind]
    if not changes:
        return Creation(known.name, (), {}, wanted.warnings, f"Nothing to change: table '{known.name}' is as given.")
    _check_boundary_mode(home, before, after)
    count = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
    if dry_run:
        sentence = f"Would change table '{known.name}': {count}. Nothing was changed."
        return Creation(known.name, changes, {}, wanted.warnings, sentence)
    if before.stream is not None and after.stream != before.stream:
        check_stream(after)
    evolve_halves(home, after, behind)
    added = after.halves - before.halves
    if added == {Half.REALTIME}:
        settle_boundary_mode(home.layout(known.name), after, home.now_ms())
    # The definition comes last: a half that it names is there.
    starts = create_halves(home.layout(known.name), after, home.now_ms(), added) if added else {}
    home.definitions.replace(definition)
    return Creation(known.name, changes, starts, wanted.warnings, f"Changed table '{known.name}': {count}.")


def evolve_halves(home: Home, spec: TableSpec, halves: Collection[Half] = tuple(Half)) -> None:
    """Brings the columns of the halves to those of `spec`, whose definition is to follow. Under the creation lock."""
    for half in (Half.OFFLINE, Half.REALTIME):
        if half in halves:
            evolve_half(home.bench, spec, home.layout(spec.name), half)


def _behind(home: Home, spec: TableSpec, halves: Collection[Half]) -> list[Half]:
    """The halves that have not all columns of a definition, each as wide; also one that a death has left so."""
    return [half for half in Half if half in halves and is_behind(spec, home.layout(spec.name), half)]


def check_change(home: Home, known: Definition, wanted: TableSpec) -> bool:
    """Whether `wanted` changes columns of the halves. SpecError when it would change what the table's rows stand on."""
    before = home.spec_of(known)
    after = home.spec_of(_changed(known, wanted, before))
    _check_kept(before, after)
    _check_rolled(home, before, after)
    return bool(_behind(home, after, before.halves))


def _changed(known: Definition, wanted: TableSpec, before: TableSpec) -> Definition:
    documents = {name: getattr(wanted, name) or getattr(known, name) for name in _DOCUMENTS.values()}
    documents["schema_doc"] = with_kept_defaults(documents["schema_doc"], before.schema)
    return replace(known, **documents, brokers=wanted.stream.brokers if wanted.stream else known.brokers)


def _check_kept(before: TableSpec, after: TableSpec) -> None:
    old, new = before.stream, after.stream
    column_change(before.name, before.schema, after.schema)
    kept = {
        "its way of keeping nulls": before.null_handling == after.null_handling,
        "its primary key": before.schema.primary_key == after.schema.primary_key,
        "its time column": before.time_column == after.time_column,
        "its upsert settings": _stored_under(before) == _stored_under(after),
        "its topics, in their order": old is None or (new is not None and old.topics == new.topics),
        "the partitions that it reads": old is None or (new is not None and set(old.partitions) == set(new.partitions)),
        "its connectors": _keeps_connectors(before, after),
        "its halves": before.halves <= after.halves,
        "its revert window": before.revert_window_ms == after.revert_window_ms or Half.OFFLINE not in before.halves,
    }
    for what, is_kept in kept.items():
        if not is_kept:
            raise SpecError(
                f"Table '{before.name}' holds rows under {what}, which cannot be changed. Nothing was changed.",
                hint="Create a table of another name.",
            )


def _check_rolled(home: Home, before: TableSpec, after: TableSpec) -> None:
    if Half.OFFLINE in before.halves:
        rolled = open_half(home.layout(before.name).half(Half.OFFLINE)).offline.rolled
        refuse_rolled_otherwise(before.name, rolled, (after.move, *after.merge_levels))


def _stored_under(spec: TableSpec) -> UpsertConfig | None:
    """The upsert settings that rows are stored under.

    Strategies fold rows when they are asked for, and how long delete markers stay may change.
    """
    upsert = spec.upsert
    if upsert is None:
        return None
    return replace(upsert, deleted_keys_ttl=0, partial=None if upsert.partial is None else Partial())


def _keeps_connectors(before: TableSpec, after: TableSpec) -> bool:
    """What a connector has brought is known by its name, and its messages by their form. New ones may come."""
    names = {one.name: _kind(one) for one in after.connectors}
    kept = all(names.get(one.name) == _kind(one) for one in before.connectors)
    old, new = before.stream, after.stream
    # Deletes that a source's history has brought stay; and no row was merged with others before the first came.
    said = [not spec.primary_key and any(one.says_deletes for one in spec.connectors) for spec in (before, after)]
    same = old is None or new is None or (old.connector, old.message) == (new.connector, new.message)
    return kept and same and said[0] == said[1]


def _kind(one: Connector) -> tuple[type[object], bool]:
    """What a connector is, as its progress tells it: that of files that are followed is another one."""
    return type(one.transport), isinstance(one.transport, FileInput) and one.transport.follow


def _check_boundary_mode(home: Home, before: TableSpec, after: TableSpec) -> None:
    """SpecError when a config asks for another mode than the table was created with; a task may come and go."""
    if len(before.halves) < len(Half) or after.boundary_mode is None:
        return
    mode = open_half(home.layout(before.name).half(Half.OFFLINE)).offline.boundary.mode
    if after.boundary_mode is not mode:
        raise SpecError(
            f"Table '{before.name}' was created with boundary mode '{mode}', and the mode is fixed: it cannot become "
            f"'{after.boundary_mode}'. Nothing was changed.",
            hint=f'Leave "hybrid.boundary" out, or write "{mode}".',
        )


def _difference(path: str, before: Any, after: Any, in_options: bool = False) -> Iterator[str]:
    """`path: before -> after` for every leaf that differs. Of lists of things with names, each by its name.

    `in_options`: the keys here are options of a client, of which only the public ones are shown.
    """
    if _is_named(before) and _is_named(after):
        before, after = ({one["name"]: one for one in several} for several in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            old, new, below = before.get(key), after.get(key), f"{path}/{key}"
            if old == new or (key == "tableName" and raw_table_name(str(old)) == raw_table_name(str(new))):
                continue
            nested = isinstance(old, (dict, list)) and isinstance(new, (dict, list))
            if hides(key, in_options=in_options) and not opens_options(key) and (in_options or not nested):
                yield f"{below}: changed"
            elif nested:  # the keys below a public option are not options themselves
                yield from _difference(below, old, new, opens_options(key))
            else:
                yield f"{below}: {_short(key, old, in_options)} -> {_short(key, new, in_options)}"
    elif isinstance(before, list) and isinstance(after, list) and in_options and len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                yield from _difference(f"{path}[{position}]", old, new, in_options)
    elif before != after:
        key = path.rpartition("/")[2]
        yield f"{path}: {_short(key, before, in_options)} -> {_short(key, after, in_options)}"


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "name" in one for one in value)


def _short(key: object, value: Any, in_options: bool) -> str:
    text = "(none)" if value is None else str(value_without_secrets(key, value, in_options=in_options))
    return text if len(text) <= 60 else text[:57] + "..."
