"""What becomes of a table's plans on the store of its warehouse; nothing in a warehouse of local folders.

The order, and what a crash after each step leaves:
  upload the files                     files that no list names: `hybrid warehouse sync` removes them
  rename the folder, write the state   nobody was told of it yet; the next one who writes a plan's state lists it
  list it (`publish_plans`)            done: another home that takes over finds it
  remove staged rows, once it is over  rows that nothing needs; `hybrid warehouse sync` removes them
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hybrid.lake.failpoints import step
from hybrid.lake.layout import TableLayout
from hybrid.runtime import durable
from hybrid.store.mirror import Mirror, for_all, mirror_at
from hybrid.store.plan_files import CLOSED_FILE, WANTED_FILE


def require_writable(layout: TableLayout) -> None:
    """ConflictError when another home writes the warehouse. Call it before the home's folder is changed."""
    mirror = mirror_at(layout.root)
    if mirror is not None:
        mirror.require_writable()


def upload_plan(layout: TableLayout, plan_id: str, staged: Path) -> None:
    """Upload the files of a plan that is still staged."""
    mirror = mirror_at(layout.root)
    if mirror is not None:
        from hybrid.store.published_plans import put_files

        put_files(mirror, _key(mirror, layout, plan_id), staged)
        step("plan.uploaded")


def upload_push(layout: TableLayout, entry_id: str, staged: Path) -> None:
    """Upload the staged rows of a push to a replacement, under a name that begins with the id of its job.

    `staged` lies in the staging folder of the job. No lock is held meanwhile: it may take long.
    """
    mirror = mirror_at(layout.root)
    if mirror is not None:
        from hybrid.store.published_plans import push_name, put_files

        put_files(mirror, f"{_key(mirror, layout, entry_id)}/{push_name(staged, prefix=staged.parent.name)}", staged)
        step("plan.uploaded")


def publish_plans(layout: TableLayout) -> None:
    """List the table's plans on the store as they are here, with files that it lacks.

    ConflictError when another home writes the warehouse, StoreError when the store does not answer.
    """
    mirror = mirror_at(layout.root)
    if mirror is not None:
        from hybrid.store.published_definition import publish_definition

        step("plan.written")
        publish_definition(mirror, layout.root, with_plans=True)
        step("plan.published")


def remove_staged(layout: TableLayout, plan_id: str) -> None:
    """Remove what a plan that is over needs no more. The store has its end first: nobody may go on with it."""
    mirror = mirror_at(layout.root)
    if mirror is not None:
        from hybrid.store.published_plans import needed_when_over

        publish_plans(layout)
        prefix = f"{_key(mirror, layout, plan_id)}/"
        keys = [item.key for item in mirror.client.list_below(prefix.rstrip("/"))]
        for_all(mirror.client.delete, [key for key in keys if not needed_when_over(key.removeprefix(prefix))])
        step("plan.removed")


def rewrite_document(path: Path, change: Callable[[str], str]) -> bool:
    """Give a document of a plan, or of a push, the text that `change` makes of its own: on the store, then here.

    Whether that is another one. States are no objects of their own: `publish_plans` lists them. Only purges and
    erasures change what else never changes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    changed = change(text)
    if changed == text:
        return False
    mirror = mirror_at(path)
    if mirror is not None and path.name not in (WANTED_FILE, CLOSED_FILE):
        from hybrid.lake.store_keys import store_key

        mirror.rewrite_text(store_key(mirror, path), change)
        step("purge.rewritten")
    durable.write_text(path, changed)
    return True


def _key(mirror: Mirror, layout: TableLayout, plan_id: str) -> str:
    from hybrid.lake.store_keys import store_key

    return store_key(mirror, layout.plan(plan_id))
