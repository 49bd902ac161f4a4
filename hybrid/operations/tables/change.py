"""Changes an existing table: adds a half or columns, widens types, changes settings.

Refused is what would lose rows or values, or change their meaning; for columns `hybrid.config.evolution` decides.
Primary key, time column, topic and upsert cannot be changed. The boundary's mode is fixed once the table has both
halves.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hybrid.catalog.definitions import Definition
from hybrid.config.broker_list import plain_brokers
from hybrid.config.connectors import Connector, FileInput
from hybrid.config.evolution import column_change, with_kept_defaults
from hybrid.config.table_config import Half, Partial, TableSpec, UpsertConfig
from hybrid.config.table_halves import raw_table_name
from hybrid.errors import SpecError
from hybrid.lake.evolve import evolve_half, is_behind
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.operations.tables.create import check_stream, create_halves, settle_boundary_mode
from hybrid.operations.tables.creation import Creation
from hybrid.operations.tables.creation_lock import creation_lock
from hybrid.operations.tables.retention_preview import retention_words
from hybrid.schema.secrets import Keys, hides_among, keys_below, value_without_secrets
from hybrid.table.rollup_rules import refuse_rolled_otherwise

if TYPE_CHECKING:
    from hybrid.home.home import Home

BROKERS_CHANGE = "broker address: "  # prefix of a change of brokers in `Creation.changes`
_DOCUMENTS = {"schema": "schema_doc", "REALTIME": "realtime_doc", "OFFLINE": "offline_doc"}


def apply_change(
    home: Home, known: Definition, wanted: TableSpec, *, dry_run: bool = False, kafka: str | None = None
) -> Creation:
    """Changes the table `known` to match `wanted`. A document that `wanted` lacks stays as it is.

    `kafka` are explicitly named brokers, also for a table whose REALTIME config is not given.
    SpecError for a refused change, StreamError when new brokers do not answer; nothing is changed then. New columns
    and wider types need Spark.
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
    effects = "".join(f" {words}" for words in retention_words(home, before, after))
    if dry_run:
        sentence = f"Would change table '{known.name}': {count}. Nothing was changed.{effects}"
        return Creation(known.name, changes, {}, wanted.warnings, sentence)
    if before.stream is not None and after.stream != before.stream:
        check_stream(after)
    evolve_halves(home, after, behind)
    added = after.halves - before.halves
    if added == {Half.REALTIME}:
        settle_boundary_mode(home.layout(known.name), after, home.now_ms())
    # The definition is replaced last, so that every half it names exists.
    starts = create_halves(home.layout(known.name), after, home.now_ms(), added) if added else {}
    home.definitions.replace(definition)
    return Creation(known.name, changes, starts, wanted.warnings, f"Changed table '{known.name}': {count}.{effects}")


def evolve_halves(home: Home, spec: TableSpec, halves: Collection[Half] = tuple(Half)) -> None:
    """Evolves the halves to the columns of `spec`, before its definition is stored. Needs the creation lock."""
    for half in (Half.OFFLINE, Half.REALTIME):
        if half in halves:
            evolve_half(TableContext(home.bench, spec, home.layout(spec.name)), half)


def _behind(home: Home, spec: TableSpec, halves: Collection[Half]) -> list[Half]:
    """The halves that lack columns or wider types of a definition, also after a change that crashed."""
    return [half for half in Half if half in halves and is_behind(spec, home.layout(spec.name), half)]


def check_change(home: Home, known: Definition, wanted: TableSpec) -> bool:
    """Whether `wanted` changes columns of the halves. SpecError for a change that stored rows do not allow."""
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
    checks = {
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
    for what, is_kept in checks.items():
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
    """The upsert settings that stored rows depend on.

    Partial upsert strategies are applied by queries, and how long delete markers stay may change.
    """
    upsert = spec.upsert
    if upsert is None:
        return None
    return replace(upsert, deleted_keys_ttl=0, partial=None if upsert.partial is None else Partial())


def _keeps_connectors(before: TableSpec, after: TableSpec) -> bool:
    """Whether all connectors remain, with their kinds and message formats. New connectors may be added."""
    kinds = {connector.name: _kind(connector) for connector in after.connectors}
    same_kinds = all(kinds.get(connector.name) == _kind(connector) for connector in before.connectors)
    old, new = before.stream, after.stream
    # Deletes from a source's history stay in the table, and rows from before the first delete were not merged.
    deletes = [not spec.primary_key and any(each.says_deletes for each in spec.connectors) for spec in (before, after)]
    same_stream = old is None or new is None or (old.connector, old.message) == (new.connector, new.message)
    return same_kinds and same_stream and deletes[0] == deletes[1]


def _kind(one: Connector) -> tuple[type[object], bool]:
    """The kind of a connector: its transport, and whether it follows files. Each kind has its own progress format."""
    return type(one.transport), isinstance(one.transport, FileInput) and one.transport.follow


def _check_boundary_mode(home: Home, before: TableSpec, after: TableSpec) -> None:
    """SpecError when a config names another boundary mode than the table was created with."""
    if len(before.halves) < len(Half) or after.boundary_mode is None:
        return
    mode = open_half(home.layout(before.name).half(Half.OFFLINE)).offline.boundary.mode
    if after.boundary_mode is not mode:
        raise SpecError(
            f"Table '{before.name}' was created with boundary mode '{mode}', and the mode is fixed: it cannot become "
            f"'{after.boundary_mode}'. Nothing was changed.",
            hint=f'Leave "hybrid.boundary" out, or write "{mode}".',
        )


def _difference(path: str, before: Any, after: Any, keys: Keys = Keys.NAMED) -> Iterator[str]:
    """`path: before -> after` for every leaf that differs. Lists of named objects are compared by name."""
    if _is_named(before) and _is_named(after):
        before, after = ({entry["name"]: entry for entry in entries} for entries in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _difference_at(f"{path}/{key}", key, before.get(key), after.get(key), keys)
    elif isinstance(before, list) and isinstance(after, list) and keys is Keys.OPTIONS and len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                yield from _difference(f"{path}[{position}]", old, new, keys)
    elif before != after:
        key = path.rpartition("/")[2]
        yield _line(path, key, before, after, keys)


def _difference_at(path: str, key: str, before: Any, after: Any, keys: Keys) -> Iterator[str]:
    """The differences of the values of one key."""
    if before == after or (key == "tableName" and raw_table_name(str(before)) == raw_table_name(str(after))):
        return
    nested = isinstance(before, (dict, list)) and isinstance(after, (dict, list))
    below = keys_below(key)
    if hides_among(key, keys) and below is Keys.NAMED and (keys is not Keys.NAMED or not nested):
        yield f"{path}: changed"
    elif nested:  # the keys below a public option are not options themselves
        yield from _difference(path, before, after, keys if keys is Keys.FREE and below is Keys.NAMED else below)
    else:
        yield _line(path, key, before, after, keys)


def _line(path: str, key: str, before: Any, after: Any, keys: Keys) -> str:
    """The line of a leaf; without values that differ in what is hidden of them only."""
    shown_before, shown_after = (_shown(key, value, keys) for value in (before, after))
    return f"{path}: {shown_before} -> {shown_after}" if shown_before != shown_after else f"{path}: changed"


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) and "name" in entry for entry in value)


def _shown(key: object, value: Any, keys: Keys) -> str:
    """A value as a difference shows it, whole: a plain text as it is, all else as JSON."""
    if value is None:
        return "(none)"
    public = value_without_secrets(key, value, keys)
    return public if isinstance(public, str) and _is_plain(public) else json.dumps(public, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    """Whether a text without quotes is taken for nothing else: no number, no `true`, no `(none)`."""
    if text.strip() != text or text in ("", "(none)"):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
