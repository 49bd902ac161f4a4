"""Objects of a table's plans on its warehouse's store that nobody needs: what a crash has left there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid.lake.lacking_rows import is_staged_by
from hybrid.lake.staging import owned_names
from hybrid.store.mirror import Mirror, for_all
from hybrid.store.plan_files import ROWS
from hybrid.store.published_definition import PublishedTable, published_plans, published_table, rewrite_definition
from hybrid.store.published_plans import LIST_ENDING, PlanState, needed_when_over, plans_folder, plans_here


def remove_unneeded(mirror: Mirror, table: PublishedTable) -> int:
    """Remove objects of a table's plans on the store that nobody needs; their number. Only in the home that writes.

    A crash leaves them: files of a plan that was never listed, rows of one that is over, what an operation has staged,
    lists that another replaced.
    """
    place, folder = plans_folder(table.name, table.halves), mirror.folder / table.name
    keys = [item.key for item in mirror.client.list_below(place)] if place is not None else []
    if not keys:
        return 0
    prefix = f"{place}/"
    # Both behind the list of objects: it may have plans of a home that has taken over since the look before.
    mirror.ownership.require(is_recent_enough=False)
    table = published_table(mirror, table.name) or table
    busy = owned_names(folder / "staging")  # before the look at the folders: what is ready goes from here to there
    here, listed = plans_here(folder), published_plans(mirror, table)
    names = [key.removeprefix(prefix) for key in keys]
    unneeded = [name for name in names if "/" in name and _is_unneeded(name, here, listed, busy)]
    lists = [name for name in names if name.endswith(LIST_ENDING)]
    if "OFFLINE" in table.halves and lists != [f"{table.plans}{LIST_ENDING}"]:
        rewrite_definition(mirror, table.name)  # so that a list which is about to be named cannot be any more
        newer = published_table(mirror, table.name)
        unneeded += [name for name in lists if newer is not None and name != f"{newer.plans}{LIST_ENDING}"]
    for_all(lambda name: mirror.client.delete(f"{prefix}{name}"), unneeded)
    return len(unneeded)


def _is_unneeded(
    name: str, here: Mapping[str, PlanState], listed: Mapping[str, PlanState], busy: Sequence[str]
) -> bool:
    """Whether nobody needs a file of a plan; `name` is its path below the table's plans."""
    plan_id, _, below = name.partition("/")
    part = below.partition("/")[0]
    if is_staged_by(busy, plan_id, part):
        return False
    plans = [plans[plan_id] for plans in (here, listed) if plan_id in plans]
    if not plans:
        return True
    if needed_when_over(below):
        return False
    is_over = plan_id in listed and listed[plan_id].is_over
    return is_over or (part != ROWS and not any(part in plan.pushes.values() for plan in plans))
