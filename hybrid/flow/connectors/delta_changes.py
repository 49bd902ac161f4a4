"""The changes of one version of a Delta table: rows that were added and rows that were removed.

After the reader's part of Delta's protocol (PROTOCOL.md, "Change Data Files"): where a commit holds change data, these
are all its changes. Else rows of removed files are removed and rows of added files are added; rows in both are
unchanged. Commits whose `dataChange` is false (OPTIMIZE) change no rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hybrid.errors import DataError
from hybrid.flow.connectors.delta_files import DeltaFile
from hybrid.flow.connectors.source import PIECE, PLACE, SourcePiece
from hybrid.lake.layout import quoted
from hybrid.table.columns import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

# The column of change data with the kind of change of a row.
TOLD = "_change_type"
_GONE = ("delete", "update_preimage")
_CAME, _COUNT, _TOP, _NUMBER = f"{PREFIX}came", f"{PREFIX}count", f"{PREFIX}top", f"{PREFIX}number"
# Places count from a task's number; with this many tasks they fit beside a piece's number.
_TASKS_MAX = 64
# Removed rows have the lower number, so that an added row of the same key is newer.
GONE_PIECE, CAME_PIECE = 0, 1


@dataclass(frozen=True)
class Actions:
    """The data files in a commit, by path: change data (`told`), added files and removed files."""

    told: Mapping[str, DeltaFile]
    added: Mapping[str, DeltaFile]
    removed: frozenset[str]
    pieces: tuple[SourcePiece, ...]  # the added files
    told_bytes: int
    masked: bool  # whether added files have deletion vectors
    reshapes: bool  # whether it changes the table's metadata, and so maybe its columns

    @property
    def only_adds(self) -> bool:
        """Whether the commit only adds files with new rows. Its change data then say the same."""
        return not self.removed and not self.masked and (bool(self.added) or not self.told)


@dataclass(frozen=True)
class TableChanges:
    """The files with added rows, with removed rows, and with change data (`told`)."""

    came: tuple[DeltaFile, ...] = ()
    gone: tuple[DeltaFile, ...] = ()
    told: tuple[DeltaFile, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether no row was added or removed."""
        return not (self.came or self.gone or self.told)


def actions_of(log_entry: str, reads_told: bool = True, stored: Mapping[str, str] | None = None) -> Actions:
    """The actions of a log entry, without its change data unless `reads_told`. `stored` is from `stored_names`."""
    lines = [json.loads(line) for line in log_entry.split("\n") if line]
    cdc = [line["cdc"] for line in lines if "cdc" in line and reads_told]
    added = [line["add"] for line in lines if "add" in line and line["add"].get("dataChange", True)]
    removed = [line["remove"] for line in lines if "remove" in line and line["remove"].get("dataChange", True)]
    added.sort(key=lambda action: str(action["path"]))
    named = {physical: name for name, physical in (stored or {}).items()}
    return Actions(
        told={file.path: file for file in (_file(action, named) for action in cdc)},
        added={file.path: file for file in (_file(action, named) for action in added)},
        removed=frozenset(unquote(str(action["path"])) for action in removed),
        pieces=tuple(map(_piece, added)),
        told_bytes=sum(int(action.get("size") or 0) for action in cdc),
        masked=any(action.get("deletionVector") for action in added),
        reshapes=any("metaData" in line for line in lines),
    )


def changes_of(actions: Actions, before: Mapping[str, DeltaFile], after: Mapping[str, DeltaFile]) -> TableChanges:
    """The changes of a commit. `before` and `after` are the files of the previous and of this version, by path."""
    if actions.told:
        return TableChanges(told=tuple(actions.told[path] for path in sorted(actions.told)))
    both = actions.removed & actions.added.keys()
    came = [after[path] for path in sorted(actions.added) if path not in both]
    gone = [before[path] for path in sorted(actions.removed) if path not in both]
    for path in sorted(both):  # the same file with another deletion vector
        came += _less(after[path], before[path])
        gone += _less(before[path], after[path])
    return TableChanges(tuple(came), tuple(gone))


def net_changes(
    came: DataFrame | None, gone: DataFrame | None, told: DataFrame | None, names: Sequence[str], key: Collection[str]
) -> DataFrame:
    """The added and removed rows that do not cancel out, with PIECE and PLACE; `names` are their columns.

    With a `key`, an added row replaces the removed rows of its key. DataError for columns whose values cannot be
    compared.
    """
    from pyspark.sql import functions as F

    columns = [quoted(name) for name in names]
    parts = []
    if told is not None:
        came_row = F.when(F.col(TOLD).isin(*_GONE), F.lit(-1)).otherwise(F.lit(1))
        parts.append(told.select(*columns, came_row.alias(_CAME)))
    for frame, sign in ((came, 1), (gone, -1)):
        if frame is not None:
            parts.append(frame.select(*columns, F.lit(sign).alias(_CAME)))
    every = parts[0]
    for part in parts[1:]:
        every = every.unionByName(part)
    _check_comparable(every)
    net = every.groupBy(*columns).agg(F.sum(_CAME).alias(_COUNT)).where(f"{_COUNT} <> 0")
    if key:
        from pyspark.sql import Window

        of_key = Window.partitionBy(*(quoted(name) for name in sorted(key)))
        net = net.withColumn(_TOP, F.max(_COUNT).over(of_key)).where(f"{_COUNT} > 0 OR {_TOP} < 0").drop(_TOP)
    each = net.withColumn(_NUMBER, F.explode(F.sequence(F.lit(1), F.abs(_COUNT)))).coalesce(_TASKS_MAX)
    piece = F.when(F.col(_COUNT) < 0, F.lit(GONE_PIECE)).otherwise(F.lit(CAME_PIECE)).cast("int")
    return each.select(*columns, piece.alias(PIECE), F.monotonically_increasing_id().alias(PLACE))


def _check_comparable(rows: DataFrame) -> None:
    for field in rows.schema.fields:
        if _holds_map(field.dataType):
            raise DataError(
                f"Column '{field.name}' of the Delta table is of the type {field.dataType.simpleString()}, of which "
                "nobody can tell whether two values are equal: what a version did to its rows is not known.",
                hint="Leave the column out of the table, or load what the source holds now: mode snapshot.",
            )


def _holds_map(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return _holds_map(kind.elementType) if isinstance(kind, ArrayType) else isinstance(kind, (MapType, VariantType))


def _less(file: DeltaFile, other: DeltaFile) -> list[DeltaFile]:
    """The rows of a file that `other`, the same file in another version, does not have."""
    if other.kept is None:
        return []
    size = max(len(other.kept), len(file.kept or ()))
    mine = file.keeps(0, size) if file.kept is not None else [True] * size
    rest = tuple(here and not there for here, there in zip(mine, other.keeps(0, size), strict=True))
    return [replace(file, kept=rest, beyond=False)] if any(rest) else []


def _file(action: Mapping[str, Any], named: Mapping[str, str]) -> DeltaFile:
    """A file of the log; `named` maps column names in files to the table's."""
    values = (action.get("partitionValues") or {}).items()
    # The log writes a null as an empty string.
    partition = {named.get(name, name): value if value != "" else None for name, value in values}
    return DeltaFile(unquote(str(action["path"])), partition)


def _piece(action: Mapping[str, Any]) -> SourcePiece:
    rows = json.loads(action.get("stats") or "{}").get("numRecords")
    return SourcePiece(unquote(str(action["path"])), rows, int(action.get("size") or 0))
