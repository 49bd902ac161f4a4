"""Files with rows that a warehouse's store has of a table, and its folder here lacks: no reading sees them.

The folder is that of a table, or of a dropped copy of it. What the store has is given as keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hybrid.store.mirror import half_keys
from hybrid.store.plan_files import CLAIMS, PLANS_FOLDER, PUSH_KEY, PUSHES
from hybrid.store.published_plans import plans_folder

_ROWS, _LOG = ".parquet", "_delta_log"


def lacking_of_halves(table: str, folder: Path, keys: Iterable[str]) -> Iterator[str]:
    """The keys of data files of halves that the folder lacks."""
    halves = {f"{table}/{key}/": folder / half for half, key in half_keys(folder).items()}
    for key in keys:
        for prefix, half in halves.items():
            name = key.removeprefix(prefix)
            if name != key and _has_rows(name, _LOG) and not (half / name).exists():
                yield key


def lacking_of_plans(table: str, folder: Path, keys: Iterable[str], busy: Sequence[str]) -> Iterator[str]:
    """The keys of staged rows of plans and pushes that the folder lacks, but for those of running operations (`busy`).

    Look which operations run before: what is ready goes from their folders to the plan's. Claims of rejected rows hold
    only coordinates.
    """
    prefix, plans = staged_prefix(table, folder), folder / PLANS_FOLDER
    if prefix is None:
        return
    pushes = dict[tuple[str, str], Path]()
    for path in plans.glob(f"*/{PUSHES}/*/{PUSH_KEY}"):
        pushes[path.parents[2].name, path.read_text(encoding="utf-8")] = path.parent
    for key in keys:
        name = key.removeprefix(f"{prefix}/")
        plan_id, _, below = name.partition("/")
        part, _, rest = below.partition("/")
        if name == key or not _has_rows(below, CLAIMS) or is_staged_by(busy, plan_id, part):
            continue
        push = pushes.get((plan_id, part))
        if not (plans / name if push is None else push / rest).exists():
            yield key


def staged_prefix(table: str, folder: Path) -> str | None:
    """The key of the folder of a table's plans, and of what operations stage; None where no half has a folder."""
    return plans_folder(table, half_keys(folder))


def is_staged_by(busy: Sequence[str], plan_id: str, part: str) -> bool:
    """Whether a running operation has staged a file; `part` is the first part of its path below the plan."""
    return plan_id in busy or any(part.startswith(f"{name}.") for name in busy)


def _has_rows(name: str, without: str) -> bool:
    """Whether a name is one of a Parquet file that does not lie in the folder `without`."""
    return name.endswith(_ROWS) and name.partition("/")[0] != without
