"""The relation of a table reference for Spark: the files that the plan chose and the tail's rows, as one SELECT.

It gives the rows of `query.scan.relation_sql`: boundary, order of upserts and partial upsert are the same functions.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hybrid.config.table_config import Half
from hybrid.errors import VALIDATION, QueryError
from hybrid.lake.file_frames import FrameFile, file_rows
from hybrid.lake.log_entries import DataFile
from hybrid.lake.spark_paths import literal_paths
from hybrid.query import partial_upsert as fold
from hybrid.query.plan import QueryPlan, RefPlan
from hybrid.query.scan import Scan, shown_default
from hybrid.query.spark.dialect import FOLDING, identifier
from hybrid.query.tailrows import arrow_schema
from hybrid.schema.schema import FieldSpec
from hybrid.sql.spark_functions import INSTEAD
from hybrid.sql.spark_text import quoted
from hybrid.table.columns import ARRIVAL, HIDDEN, OFFSET, OP, OP_DELETE, PARTITION, SEGMENT
from hybrid.table.coverage_sql import below_sql, visible_offline_sql, visible_realtime_sql
from hybrid.table.upsert_order import winners_first_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hybrid.lake.commit_context import CommitContext

_FOOTER_THREADS = 8
_PLACE, _DELETES = "_hy_place", "_hy_deletes"
_HIDDEN = tuple(name for name, _ in HIDDEN)
_NOT_DELETED = f"NOT ({OP} <=> '{OP_DELETE}')"


@dataclass(frozen=True)
class Part:
    """The rows of a relation from one place: a view of files or of the tail, and the conditions on its rows."""

    view: str
    conditions: Sequence[str]
    files: Sequence[DataFile] = ()
    tail: str | None = None


@dataclass(frozen=True)
class SparkRelation:
    """A table reference for Spark: its parts, and the SELECT over their views."""

    name: str
    scan: Scan
    parts: Sequence[Part]
    sql: str


def spark_relation(plan: RefPlan) -> SparkRelation:
    """The relation that replaces a table reference."""
    return _relation(plan.ref.relation, plan.scan)


def with_defaults(relation: SparkRelation) -> SparkRelation:
    """The relation, with defaults for the nulls of a table without null handling if a file lacks one of its columns.

    The log tells which columns were added by us. What another tool has added, only the footers tell: DuckDB fails at
    them, and reads by name then.
    """
    scan = relation.scan
    if scan.evolved or scan.spec.null_handling:
        return relation
    columns = frozenset(scan.spec.schema.column_names)
    paths = [file.path for file in (*scan.offline, *scan.realtime, *scan.later)]
    try:
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            is_whole = all(columns <= names for names in pool.map(_column_names, paths))
    except FileNotFoundError as error:
        raise QueryError(f"A file of table '{scan.spec.name}' was removed while it was read.") from error
    return relation if is_whole else _relation(relation.name, replace(scan, evolved=True))


def _column_names(path: str) -> frozenset[str]:
    import pyarrow.parquet as pq

    return frozenset(pq.read_schema(path).names)


def _relation(name: str, scan: Scan) -> SparkRelation:
    parts = list(_parts(name, scan))
    if scan.nets and "$docId" in scan.virtual:
        raise QueryError(
            "Spark does not run $docId of a table without a key whose stream deletes: equal rows have no number there.",
            pinot_code=VALIDATION,
            hint=INSTEAD,
        )
    if SEGMENT in map(_behind, scan.virtual):
        _require_plain_segments(scan)
    return SparkRelation(name, scan, parts, _relation_sql(scan, parts))


def create_views(
    bench: CommitContext, session: SparkSession, plan: QueryPlan, relations: Iterable[SparkRelation]
) -> None:
    """Create the temporary views of a plan's relations in a session of the statement's own."""
    tails = {pinned.tail_name: pinned for pinned in plan.tables if pinned.tail_rows is not None}
    for relation in relations:
        for part in relation.parts:
            if part.tail is None:
                frame = _files(bench, session, relation.scan, part.files)
            else:
                pinned = tails[part.tail]
                assert pinned.tail_rows is not None
                frame = session.createDataFrame(pinned.tail_rows.arrow(arrow_schema(relation.scan.spec)))
            frame.createOrReplaceTempView(part.view)
        session.sql(relation.sql).createOrReplaceTempView(relation.name)


def _files(bench: CommitContext, session: SparkSession, scan: Scan, files: Sequence[DataFile]) -> DataFrame:
    columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in _stored(scan))
    if not bench.has_shared_files:
        own = replace(bench, start_spark=lambda: session)
        return file_rows(own, columns, [FrameFile(file.path, file.segment) for file in files])
    roots: dict[str, list[str]] = {}
    for file in files:
        roots.setdefault(_root(file), []).append(file.path)
    frames = [
        session.read.schema(columns).option("basePath", root).parquet(*literal_paths(paths)).select(
            *(identifier(name) for name, _ in _stored(scan))
        )
        for root, paths in roots.items()
    ]  # fmt: skip
    first, *others = frames
    for other in others:
        first = first.unionAll(other)
    return first


def _root(file: DataFile) -> str:
    """The folder whose folders are segments: a half, or the staged rows of a plan."""
    return file.path.rpartition(f"/{SEGMENT}=")[0]


def _stored(scan: Scan) -> list[tuple[str, str]]:
    return [*((field.name, field.spark_type) for field in scan.spec.schema.fields), *HIDDEN]


def _require_plain_segments(scan: Scan) -> None:
    """QueryError for segments whose names Spark reads from folders otherwise than they are."""
    for file in (*scan.offline, *scan.realtime, *scan.later):
        folder = file.path.rpartition(f"/{SEGMENT}=")[2].partition("/")[0]
        if unquote(folder, encoding="latin-1") != file.segment:
            raise QueryError(
                f"Spark does not run $segmentName and $docId of segment '{file.segment}': it reads its name otherwise.",
                pinot_code=VALIDATION,
                hint=INSTEAD,
            )


def _behind(name: str) -> str:
    """The hidden column that a virtual column shows or numbers by."""
    return {"$segmentName": SEGMENT, "$docId": SEGMENT, "$partition": PARTITION, "$offset": OFFSET}.get(name, "")


def _parts(name: str, scan: Scan) -> Iterable[Part]:
    boundary = scan.boundary
    shown = [visible_realtime_sql(boundary)] if boundary is not None else []
    if scan.offline:
        limit = [visible_offline_sql(boundary)] if boundary and boundary.restricts_offline else []
        yield Part(f"{name}_offline", limit, scan.offline)
    if scan.realtime:
        yield Part(f"{name}_realtime", shown, scan.realtime)
    if scan.later:
        yield Part(f"{name}_later", [*shown, below_sql(scan.ends)], scan.later)
    if scan.tail is not None:
        yield Part(f"{name}_tail", shown, tail=scan.tail)


def _relation_sql(scan: Scan, parts: Sequence[Part]) -> str:
    spec = scan.spec
    columns = [_shown(scan, field) for field in spec.schema.fields]
    stored = " UNION ALL ".join(_part_sql(part, columns) for part in parts)
    rows = f"({stored or _nothing(scan)}) AS stored"
    names = ", ".join(identifier(name) for name in sorted(spec.schema.column_names))
    virtual = "".join(f", {_virtual_sql(name)} AS {identifier(name)}" for name in sorted(scan.virtual))
    extra = "".join(f", {identifier(name)}" for name in sorted(scan.virtual))
    if scan.nets:
        deleted = f"sum(CASE WHEN {OP} <=> '{OP_DELETE}' THEN 1 ELSE 0 END) OVER (PARTITION BY {names})"
        place = f"row_number() OVER (PARTITION BY {names}, {OP} ORDER BY {', '.join(ARRIVAL)})"
        ranked = f"SELECT *{virtual}, {place} AS {_PLACE}, {deleted} AS {_DELETES} FROM {rows}"
        return f"SELECT {names}{extra} FROM ({ranked}) AS ranked WHERE {_NOT_DELETED} AND {_PLACE} > {_DELETES}"
    if spec.upsert is None:
        return f"SELECT {names}{virtual} FROM {rows}"
    if scan.half is Half.OFFLINE:
        return f"SELECT {names}{virtual} FROM {rows} WHERE {_NOT_DELETED}"
    if spec.folds:
        last = [identifier(name) for name in sorted(scan.virtual)]
        folded = fold.folded_sql(spec, f"(SELECT *{virtual} FROM {rows})", FOLDING, last=last)
        return f"SELECT {names}{extra} FROM ({folded}) AS folded"
    key = ", ".join(identifier(name) for name in spec.primary_key)
    place = f"row_number() OVER (PARTITION BY {key} ORDER BY {winners_first_sql(spec, identifier)}) AS {_PLACE}"
    ranked = f"SELECT *{virtual}, {place} FROM {rows}"
    return f"SELECT {names}{extra} FROM ({ranked}) AS ranked WHERE {_PLACE} = 1 AND {_NOT_DELETED}"


def _part_sql(part: Part, columns: Sequence[str]) -> str:
    where = f" WHERE {' AND '.join(part.conditions)}" if part.conditions else ""
    return f"SELECT {', '.join([*columns, *_HIDDEN])} FROM {identifier(part.view)}{where}"


def _shown(scan: Scan, field: FieldSpec) -> str:
    """A stored column; a null of a column that was added later is its default where the table keeps no nulls."""
    name = identifier(field.name)
    if not scan.evolved or scan.spec.null_handling or not (scan.added is None or field.name in scan.added):
        return name
    element = _default_sql(replace(field, single_value=True))
    return f"coalesce({name}, {element if field.single_value else f'array({element})'}) AS {name}"


def _default_sql(field: FieldSpec) -> str:
    if isinstance(field.default_null, bytes):
        return f"X'{field.default_null.hex()}'"
    return f"CAST({quoted(shown_default(field))} AS {field.spark_type})"


def _nothing(scan: Scan) -> str:
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in _stored(scan))
    return f"SELECT {nulls} WHERE FALSE"


def _virtual_sql(name: str) -> str:
    virtual: Mapping[str, str] = {
        "$segmentName": SEGMENT,
        "$partition": PARTITION,
        "$offset": OFFSET,
        "$docId": f"CAST(row_number() OVER (PARTITION BY {SEGMENT} ORDER BY {OFFSET}) - 1 AS int)",
        "$hostName": quoted(socket.gethostname()),
    }
    return virtual[name]
