"""Plan preview: tables as a planned backfill would make them, staged files in place of the files it replaces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from hybrid.errors import EXECUTION, VALIDATION, QueryError, suggestion
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.plans import (
    DesiredState,
    corrected_spans,
    desired_state_of,
    find_plan,
    has_rows,
    plan_ids,
    staged_files,
    was_reverted,
)
from hybrid.table.plans import Plan

# A file name: no path, and not longer than file systems allow.
_PLAN_ID = re.compile(r"(?!\.{1,2}\Z)[^/\0]{1,100}")


class HasLayout(Protocol):
    """A table of a statement."""

    @property
    def layout(self) -> TableLayout:
        """The table's folders."""


def find_staged(plan_id: str | None, tables: Iterable[HasLayout]) -> Plan | None:
    """The plan that a statement names. QueryError when none of its tables has it."""
    if plan_id is None:
        return None
    layouts = [table.layout for table in tables]
    for layout in layouts:
        plan = find_plan(layout, plan_id) if _PLAN_ID.fullmatch(plan_id) else None
        if plan is not None:
            return plan
    names = " and ".join(f"'{layout.root.name}'" for layout in layouts) or "no table"
    existing_ids = [existing_id for layout in layouts for existing_id in plan_ids(layout)]
    raise QueryError(
        f"SET plan: there is no backfill plan '{plan_id[:100]}' of {names}.{suggestion(plan_id[:100], existing_ids)}",
        pinot_code=VALIDATION,
        hint="hybrid backfill list",
    )


def _refuse_ended(offline: HalfSnapshot, layout: TableLayout, plan: Plan, is_done: bool) -> None:
    """QueryError for a plan that has nothing more to show. An unchanged table would look like its result."""
    wish = desired_state_of(layout, plan.id).wish
    if wish is DesiredState.CANCEL:
        raise _ended(plan, "was cancelled, so nothing of it will be corrected any more")
    if was_reverted(offline, plan.id):
        raise _ended(plan, "was run and reverted: the table is without it")
    if plan.units and (is_done or wish is DesiredState.ENDED):
        raise _ended(plan, "has been run: the table itself shows what it corrected")


def _ended(plan: Plan, what: str) -> QueryError:
    return QueryError(
        f"Backfill plan '{plan.id}' of '{plan.table}' {what}.",
        pinot_code=EXECUTION,
        hint=f"Ask without SET plan. How it ended: hybrid backfill status {plan.id}",
    )


def as_planned(offline: HalfSnapshot, layout: TableLayout, plan: Plan) -> HalfSnapshot:
    """The half as it will be after the rest of the plan; unchanged for a plan that changes nothing.

    QueryError when the plan has ended, when the files it was planned on have changed, or when its staged rows are gone.
    """
    units = plan.left(corrected_spans(offline, plan.id))
    _refuse_ended(offline, layout, plan, is_done=not units)
    if not units:
        return offline
    if not has_rows(layout, plan.id):
        raise QueryError(f"The staged rows of backfill plan '{plan.id}' are gone.", pinot_code=EXECUTION)
    root = f"{offline.path}/"
    planned = {f"{root}{path}" for unit in units for files in unit.replaced.values() for path in files}
    missing = planned - {file.path for file in offline.files}
    if missing:
        raise QueryError(
            f"What backfill plan '{plan.id}' of '{plan.table}' was planned on has changed since: it cannot be shown.",
            pinot_code=EXECUTION,
            hint="Plan it again: hybrid backfill plan ...",
        )
    unchanged = [file for file in offline.files if file.path not in planned]
    return offline.with_files([*unchanged, *staged_files(layout, plan, units)])
