"""What one version of a Delta table did to its rows: which came and which went.

After the reader's part of Delta's protocol (PROTOCOL.md, "Change Data Files"): where a commit holds change data, that
is all it did. Else the rows of the files that it took away went and those of the files that it added came; what is in
both is where it was. Commits whose `dataChange` is false (OPTIMIZE) did nothing to rows.
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

# The column of change data that says what its row is.
TOLD = "_change_type"
_GONE = ("delete", "update_preimage")
_CAME, _COUNT, _TOP, _NUMBER = f"{PREFIX}came", f"{PREFIX}count", f"{PREFIX}top", f"{PREFIX}number"
# Places count from the number of a task: with so many they stay within what a piece's number leaves.
_TASKS_MAX = 64
# What went stands before what came, so that of one key the row that came is newer.
GONE_PIECE, CAME_PIECE = 0, 1


@dataclass(frozen=True)
class Actions:
    """What a commit says of data files, by path: those of change data, and those that changed rows."""

    told: Mapping[str, DeltaFile]
    added: Mapping[str, DeltaFile]
    removed: frozenset[str]
    pieces: tuple[SourcePiece, ...]  # the added files
    told_bytes: int
    masked: bool  # whether deletion vectors say which rows of the added files there are
    reshapes: bool  # whether it says anew which columns the table has

    @property
    def only_adds(self) -> bool:
        """Whether all that it did is to add files, whose rows are all new: change data says the same of them then."""
        return not self.removed and not self.masked and (bool(self.added) or not self.told)


@dataclass(frozen=True)
class TableChanges:
    """The files whose rows came and went; of those that are `told` each row says what became of it."""

    came: tuple[DeltaFile, ...] = ()
    gone: tuple[DeltaFile, ...] = ()
    told: tuple[DeltaFile, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether no row came or went."""
        return not (self.came or self.gone or self.told)


def actions_of(log_entry: str, reads_told: bool = True, stored: Mapping[str, str] | None = None) -> Actions:
    """What a log entry says; without its change data where that is not to be read. `stored` is of `stored_names`."""
    lines = [json.loads(line) for line in log_entry.split("\n") if line]
    told = [line["cdc"] for line in lines if "cdc" in line and reads_told]
    added = [line["add"] for line in lines if "add" in line and line["add"].get("dataChange", True)]
    removed = [line["remove"] for line in lines if "remove" in line and line["remove"].get("dataChange", True)]
    added.sort(key=lambda one: str(one["path"]))
    named = {physical: name for name, physical in (stored or {}).items()}
    return Actions(
        told={file.path: file for file in (_file(one, named) for one in told)},
        added={file.path: file for file in (_file(one, named) for one in added)},
        removed=frozenset(unquote(str(one["path"])) for one in removed),
        pieces=tuple(map(_piece, added)),
        told_bytes=sum(int(one.get("size") or 0) for one in told),
        masked=any(one.get("deletionVector") for one in added),
        reshapes=any("metaData" in line for line in lines),
    )


def changes_of(actions: Actions, before: Mapping[str, DeltaFile], after: Mapping[str, DeltaFile]) -> TableChanges:
    """What they did; `before` and `after` are the files of the version before and of this one, by path."""
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
    """The rows that came and went, without those that did both, with PIECE and PLACE; `names` are their columns.

    Of one `key`, where there is one, a row that came stands for those that went too. DataError for columns of which
    nobody can tell whether two values are equal.
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
    """The rows of a file that it has and `other`, the same file, has not."""
    if other.kept is None:
        return []
    size = max(len(other.kept), len(file.kept or ()))
    mine = file.keeps(0, size) if file.kept is not None else [True] * size
    kept = tuple(one and not two for one, two in zip(mine, other.keeps(0, size), strict=True))
    return [replace(file, kept=kept, beyond=False)] if any(kept) else []


def _file(action: Mapping[str, Any], named: Mapping[str, str]) -> DeltaFile:
    """A file as the log has it; `named` is how the table calls columns that have other names in there."""
    values = (action.get("partitionValues") or {}).items()
    # The log writes a null as an empty text.
    partition = {named.get(name, name): value if value != "" else None for name, value in values}
    return DeltaFile(unquote(str(action["path"])), partition)


def _piece(action: Mapping[str, Any]) -> SourcePiece:
    rows = json.loads(action.get("stats") or "{}").get("numRecords")
    return SourcePiece(unquote(str(action["path"])), rows, int(action.get("size") or 0))
