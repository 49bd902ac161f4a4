"""The plans of a table on its warehouse's store: backfills, and replacements in several requests.

<table>/OFFLINE-<8 hex digits>.plans/<32 hex digits>.list     the table's plans with their states
<table>/OFFLINE-<8 hex digits>.plans/<id>/...                 the files of a plan, by their paths in the home
<table>/OFFLINE-<8 hex digits>.plans/<id>/<name of a push>/   the files of a push to a replacement

None of them ever changes. The table's definition names the list that counts, and is replaced on the condition that
nobody else has replaced it: whoever has lost the warehouse can add files that nobody names, and nothing else. The
home's folder comes first, and what it has is listed after its files: a list never names what the store lacks.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.errors import DataError
from hybrid.runtime import durable
from hybrid.store.mirror import Mirror, for_all, half_keys
from hybrid.store.plan_files import (
    CLAIMS,
    CLOSED_FILE,
    DOCUMENTS,
    PLAN_FILE,
    PLANS_FOLDER,
    PUSH_FILE,
    PUSH_KEY,
    PUSHES,
    REPLACEMENT_FILE,
    ROWS,
    WANTED_FILE,
)

HALVES, PLANS = "halves", "plans"  # in a definition on the store: the folders of halves, the name of the list
LIST_ENDING = ".list"
_HALF = "OFFLINE"
_ENDS = {"cancel", "ended"}

# The lists that this process has read or written last, by URL and table. None ever changes.
_LISTS: dict[tuple[str, str], tuple[str, Mapping[str, PlanState]]] = {}


@dataclass(frozen=True)
class PlanState:
    """The state of a plan: the document of its state file, if it has one, and the names of its pushes by number."""

    state: Mapping[str, Any] | None = None
    pushes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether it needs its staged rows no more, for good."""
        return self.state is not None and ("state" in self.state or self.state.get("wish") in _ENDS)


def put_list(mirror: Mirror, table: Path, document: Mapping[str, Any]) -> str | None:
    """The name of a list with the plans of a table as they are here, which the store has with their files.

    `document` is the table's definition on the store. A plan that only its list has stays listed, and one that ended
    there stays so. None when there are no plans.
    """
    half_key = half_keys(table).get(_HALF)
    if half_key is None:
        return None
    is_same_half = document.get(HALVES, {}).get(_HALF) == half_key
    on_store = listed_plans(mirror, table.name, document) if is_same_half else {}
    listed, here = on_store or {}, plans_here(table)
    plans = merged(listed, here)
    if plans == on_store:
        return document.get(PLANS) if is_same_half else None
    folder = plans_key(table.name, half_key)
    for plan_id, plan in here.items():
        place, known = table / PLANS_FOLDER / plan_id, listed.get(plan_id)
        if known is None:
            put_files(mirror, f"{folder}/{plan_id}", place, with_rows=not plan.is_over)
        for number, name in plan.pushes.items():
            if known is None or known.pushes.get(number) != name:
                put_files(mirror, f"{folder}/{plan_id}/{name}", place / PUSHES / number)
    name = uuid.uuid4().hex
    text = json.dumps({plan_id: vars(plan) for plan_id, plan in sorted(plans.items())}, indent=1)
    mirror.client.upload(f"{folder}/{name}{LIST_ENDING}", text.encode())
    _LISTS[mirror.url, table.name] = name, plans
    return name


def remove_list(mirror: Mirror, table: str, document: Mapping[str, Any]) -> None:
    """Remove the list that a definition has named, and that no definition names any more."""
    name, half_key = document.get(PLANS), document.get(HALVES, {}).get(_HALF)
    if name is not None and half_key is not None:
        mirror.client.delete(f"{plans_key(table, half_key)}/{name}{LIST_ENDING}")


def merged(listed: Mapping[str, PlanState], here: Mapping[str, PlanState]) -> dict[str, PlanState]:
    """The plans of a list and of this home. What ended stays so, and the home's folder decides otherwise."""
    plans = {**listed, **here}
    for plan_id in listed.keys() & here.keys():
        ours, theirs = here[plan_id], listed[plan_id]
        if theirs.is_over and not ours.is_over:
            plans[plan_id] = theirs
        elif not ours.is_over:
            plans[plan_id] = PlanState(ours.state, {**theirs.pushes, **ours.pushes})
    return plans


def listed_plans(mirror: Mirror, table: str, document: Mapping[str, Any]) -> Mapping[str, PlanState] | None:
    """The plans in the list that a definition on the store names; None when that list is not there.

    DataError for a damaged list.
    """
    name, half_key = document.get(PLANS), document.get(HALVES, {}).get(_HALF)
    if name is None:
        return {}
    known = _LISTS.get((mirror.url, table))
    if known is not None and known[0] == name:
        return known[1]
    key = f"{plans_key(table, str(half_key))}/{name}{LIST_ENDING}"
    content = mirror.client.get(key)
    if content is None:
        return None
    try:
        plans = {plan_id: PlanState(**plan) for plan_id, plan in json.loads(content.data).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{mirror.url}/{key} is damaged: {error}",
            hint="Delete that object; the home that writes the warehouse puts it again: hybrid warehouse sync",
        ) from error
    _LISTS[mirror.url, table] = name, plans
    return plans


def plans_here(table: Path) -> dict[str, PlanState]:
    """The plans in a table's folder with their states, by id. A push without a name gets one."""
    plans = dict[str, PlanState]()
    for document, state_file in ((PLAN_FILE, WANTED_FILE), (REPLACEMENT_FILE, CLOSED_FILE)):
        for path in (table / PLANS_FOLDER).glob(f"*/{document}"):
            state = PlanState(_read(path.with_name(state_file)))
            if document == REPLACEMENT_FILE and not state.is_over:
                pushes = sorted((path.parent / PUSHES).glob(f"*/{PUSH_FILE}"))
                state = PlanState(state.state, {push.parent.name: push_name(push.parent) for push in pushes})
            plans[path.parent.name] = state
    return plans


def push_name(push: Path, prefix: str = "push") -> str:
    """The name of a push on the store, by the folder of the push. It gets one if it has none: see `PUSH_KEY`."""
    path = push / PUSH_KEY
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8")
    name = f"{prefix}.{uuid.uuid4().hex}"
    with suppress(FileNotFoundError):  # the replacement has ended just now
        durable.write_text(path, name)
    return name


def put_files(mirror: Mirror, key: str, folder: Path, *, with_rows: bool = True) -> None:
    """Upload the files of a plan, or of a push, that the store lacks below a key; its document last."""
    there = {item.key: item.size for item in mirror.client.list_below(key)}
    parts = (CLAIMS, ROWS) if with_rows else (CLAIMS,)

    def put(path: Path) -> None:
        name = f"{key}/{path.relative_to(folder)}"
        with suppress(FileNotFoundError):  # the plan has ended just now
            if there.get(name) != path.stat().st_size:
                mirror.client.upload_file(name, path)

    for_all(put, [path for part in parts for path in sorted((folder / part).rglob("*.parquet"))])
    for_all(put, list(_documents(folder)))


def needed_when_over(name: str) -> bool:
    """Whether a plan that is over still needs a file of it on the store; `name` is its path below the plan."""
    return "/" not in name or name.startswith(f"{CLAIMS}/")


def half_of_plans(halves: Collection[str]) -> str:
    """Beside which of a table's halves its plans and staged rows are: REALTIME, with staged rows alone, as its only."""
    return _HALF if _HALF in halves else "REALTIME"


def plans_folder(table: str, halves: Mapping[str, str]) -> str | None:
    """The key of the folder of a table's plans and staged rows, by its halves' folders; None where it has none."""
    half_key = halves.get(half_of_plans(halves))
    return None if half_key is None else plans_key(table, half_key)


def plans_key(table: str, half_key: str) -> str:
    """The key of the folder of a table's plans; `half_key` is the name of OFFLINE's folder on the store."""
    return f"{table}/{half_key}.plans"


def _documents(folder: Path) -> Iterator[Path]:
    return (folder / name for name in DOCUMENTS if (folder / name).is_file())


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document
    except FileNotFoundError:
        return None
