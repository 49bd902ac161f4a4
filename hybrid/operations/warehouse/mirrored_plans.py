"""The plans of a mirror's tables as the store lists them: brought with their files, and cleared of what nobody names.

Of a plan its document comes last, as it does on the store: a pull that is killed shows no plan in part.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.store_refresh import has_same_bytes
from hybrid.operations.warehouse.home_mirror import require_mirror
from hybrid.runtime import durable
from hybrid.store.mirror import Mirror, for_all
from hybrid.store.plan_files import (
    CLAIMS,
    CLOSED_FILE,
    PLAN_FILE,
    PLANS_FOLDER,
    PUSH_FILE,
    PUSH_KEY,
    PUSHES,
    REPLACEMENT_FILE,
    ROWS,
    WANTED_FILE,
)
from hybrid.store.published_definition import PublishedTable, published_plans, published_table
from hybrid.store.published_plans import PlanState, merged, plans_here, plans_key
from hybrid.store.store_client import ListedObject

if TYPE_CHECKING:
    from hybrid.home.home import Home

_DOCUMENTS = {PLAN_FILE: WANTED_FILE, REPLACEMENT_FILE: CLOSED_FILE}


def bring_plans(mirror: Mirror, table: PublishedTable, *, keeps_plans: bool = False) -> list[ListedObject]:
    """Bring the plans that the store lists, and remove others; what was downloaded.

    `keeps_plans`: in the home that writes, which lists its own later than it has them. There only plans are brought
    that it has lost. DataError when the list is missing or damaged.
    """
    plans = published_plans(mirror, table)
    folder = mirror.folder / table.name / PLANS_FOLDER
    if not keeps_plans:
        for path in folder.glob("[!.]*"):
            if path.is_dir() and path.name not in plans:
                _remove(path)
    here = plans_here(folder.parent).keys() if keeps_plans else set()
    wanted = {plan_id: plan for plan_id, plan in plans.items() if plan_id not in here}
    if not wanted:
        return []
    prefix = f"{plans_key(table.name, table.halves['OFFLINE'])}/"
    files: dict[str, dict[str, ListedObject]] = {plan_id: {} for plan_id in wanted}
    for item in mirror.client.list_below(prefix.rstrip("/")):
        plan_id, _, name = item.key.removeprefix(prefix).partition("/")
        if plan_id in files:
            files[plan_id][name] = item
    brought = list[ListedObject]()
    for plan_id, plan in wanted.items():
        document = next((name for name in _DOCUMENTS if name in files[plan_id]), None)
        if document is None:
            logging.getLogger(__name__).error("%s has no files of '%s', a plan that it lists.", mirror.url, plan_id)
            continue
        brought += _PulledPlan(mirror, folder / plan_id, plan, files[plan_id]).bring(document)
    return brought


class _PulledPlan:
    """A plan that is brought to a folder of this home; `files` are its objects by their paths below the plan."""

    def __init__(self, mirror: Mirror, folder: Path, plan: PlanState, files: Mapping[str, ListedObject]) -> None:
        self._mirror, self._folder, self._plan, self._files = mirror, folder, plan, files
        self._fetched = list[ListedObject]()

    def bring(self, document: str) -> list[ListedObject]:
        """Bring what is lacking; it."""
        durable.make_folder(self._folder)
        self._clear()
        parts = (CLAIMS,) if self._plan.is_over else (CLAIMS, ROWS)
        self._fetch({name: self._folder / name for name in self._files if name.partition("/")[0] in parts})
        if document == PLAN_FILE and not self._plan.is_over:
            durable.make_folder(self._folder / ROWS)  # a plan without rows has it, too
        for number, push in self._plan.pushes.items():
            self._bring_push(self._folder / PUSHES / number, push)
        self._write_state(self._folder / _DOCUMENTS[document])
        self._fetch({document: self._folder / document})
        return self._fetched

    def _clear(self) -> None:
        """Remove what the plan on the store has not: rows that it needs no more, pushes of others, parts of files.

        Spark reads a segment's folder as it is, so a killed pull must leave no part of a file there.
        """
        for path in self._folder.rglob("*.part"):
            path.unlink(missing_ok=True)
        if self._plan.is_over:
            shutil.rmtree(self._folder / ROWS, ignore_errors=True)
        for path in (self._folder / PUSHES).glob("*"):
            key = path / PUSH_KEY
            if not key.exists() or key.read_text(encoding="utf-8") != self._plan.pushes.get(path.name):
                _remove(path)

    def _bring_push(self, folder: Path, push: str) -> None:
        names = {name: name.removeprefix(f"{push}/") for name in self._files if name.startswith(f"{push}/")}
        durable.make_folder(folder)
        durable.write_text(folder / PUSH_KEY, push)
        self._fetch({name: folder / below for name, below in names.items() if below != PUSH_FILE})
        self._fetch({name: folder / below for name, below in names.items() if below == PUSH_FILE})

    def _write_state(self, path: Path) -> None:
        if self._plan.state is None:
            path.unlink(missing_ok=True)
            return
        text = json.dumps(self._plan.state)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            durable.write_text(path, text)

    def _fetch(self, paths: Mapping[str, Path]) -> None:
        items = [(self._files[name], path) for name, path in paths.items()]
        lacking = [(item, path) for item, path in items if not _is_there(path, item)]
        for_all(lambda task: self._mirror.fetch(task[0].key, task[1]), lacking)
        self._fetched += [item for item, _ in lacking]


def plans_apart(home: Home, table: str) -> list[str]:
    """The ids of a table's plans that the store does not list as this home has them, or that this home lacks."""
    mirror = require_mirror(home)
    published = published_table(mirror, table)
    listed = published_plans(mirror, published) if published is not None else {}
    here = plans_here(home.layout(table).root)
    wanted = merged(listed, here)
    return sorted(plan_id for plan_id in wanted if plan_id not in here or wanted[plan_id] != listed.get(plan_id))


def _remove(folder: Path) -> None:
    """Remove a plan's folder, or a push's. Its document goes first: it is never seen in part."""
    for name in (*_DOCUMENTS, PUSH_FILE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _is_there(path: Path, item: ListedObject) -> bool:
    """Whether a file is there as it is on the store. Rows never change under their name; a purge changes documents."""
    if path.suffix == ".json":
        return has_same_bytes(path, item)
    return path.is_file() and path.stat().st_size == item.size
