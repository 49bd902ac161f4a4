"""Checks that a table's definition can be read, and repairs it from the documents in the halves' logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.catalog.definitions import Definition
from hybrid.config.table_config import Half, TableSpec
from hybrid.doctor.findings import Checkup, Severity, now_words
from hybrid.errors import ConflictError, DataError, HybridError, NotFoundError
from hybrid.lake.layout import TableLayout
from hybrid.lake.lineage_archive import kept_acts
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import own_states, state_at
from hybrid.operations.tables.creation_lock import creation_lock
from hybrid.progress import Silent
from hybrid.store.mirror import DEFINITION_FILE
from hybrid.table.state import Act

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid


def check_definition(checkup: Checkup, name: str) -> TableSpec | None:
    """The spec of the table in the folder `name`; None when no definition can be read."""
    home, layout = checkup.home, checkup.home.context.layout(name)
    try:
        return home.spec(name)
    except NotFoundError:
        damage = None
    except OSError as error:  # it may be whole, so nothing is put in its place
        _found_unreadable(checkup, name, error)
        return None
    except Exception as error:  # damaged documents may make their readers raise anything
        damage = str(error) if isinstance(error, HybridError) else repr(error)
    if damage is None and not _is_lost(checkup, name):
        return None
    message = (
        f"The definition of table '{name}' is missing, and its data is there."
        if damage is None
        else f"The definition of table '{name}' cannot be read: {damage}"
    )
    act = _newest_creation(layout)
    if act is None:
        hint = f"Restore {layout.root / DEFINITION_FILE} from a backup."
        checkup.found(Severity.ERROR, "definition", message, table=name, hint=hint)
        return None
    repaired = checkup.found(
        Severity.ERROR, "definition", message, table=name, mend=lambda: _write_anew(home, name, act)
    )
    return home.spec(name) if repaired else None


def _found_unreadable(checkup: Checkup, name: str, error: OSError) -> None:
    path = checkup.home.context.layout(name).root / DEFINITION_FILE
    message = f"The definition of table '{name}' cannot be read now: {path}: {error.strerror or error}."
    hint = f"Look at owner and mode: ls -l {path}. Run hybrid as the user whose home it is."
    checkup.found(Severity.ERROR, "definition", message, table=name, hint=hint)


def _is_lost(checkup: Checkup, name: str) -> bool:
    """Whether a folder without a definition holds a table's data. If not, reports what it holds."""
    layout = checkup.home.context.layout(name)
    halves = [half for half in Half if layout.half(half).is_dir()]
    acts = {half: _acts(layout, half) for half in halves}
    if any(count is None or count > 0 for count in acts.values()):
        return True
    if _is_being_created(layout):
        return False
    if halves:
        message = f"{layout.root} holds what a creation of table '{name}' left when it died: no rows."
        hint = f"hybrid table create (creates it again), or remove {layout.root}"
        checkup.found(Severity.WARNING, "leftover", message, table=name, hint=hint)
    else:
        checkup.found(Severity.NOTE, "leftover", f"{layout.root} holds no table.", table=name)
    return False


def _acts(layout: TableLayout, half: Half) -> int | None:
    """The number of acts after a half's creation; None when its log cannot be read."""
    try:
        return open_half(layout.half(half)).state.act.number
    except NotFoundError:
        return 0
    except DataError:
        return None


def _is_being_created(layout: TableLayout) -> bool:
    try:
        with creation_lock(layout, 0.0, Silent()):
            return False
    except ConflictError:
        return True


def _newest_creation(layout: TableLayout) -> Act | None:
    """The newest act that holds the documents: act 0 of a half (`table apply` may add one), or one with new columns."""
    acts = [act for half in Half for act in _acts_with_documents(layout.half(half))]
    return max(acts, key=lambda act: act.at, default=None)


def _acts_with_documents(half: Path) -> Iterator[Act]:
    first = state_at(half, 0)
    try:
        newest = open_half(half).version
    except HybridError:  # act 0 may be readable although a later commit is damaged
        newest = 0
    logged = [*(state for _, state in own_states(half, newest)), *([first] if first is not None else [])]
    for act in (*(state.act for state in logged), *(act for _, act in kept_acts(half))):
        if isinstance(act.detail.get("schema"), dict):
            yield act
            return


def _write_anew(home: Hybrid, name: str, act: Act) -> str:
    documents: dict[str, Any] = dict(act.detail)
    definition = Definition(
        name, documents["schema"], documents.get("realtime"), documents.get("offline"), documents.get("brokers"), act.at
    )
    home.context.spec_of(definition)  # raises, so that a definition that cannot be read is never stored
    with creation_lock(home.context.layout(name), home.settings.lock_timeout_s, home.context.progress):
        definition = home.context.definitions.published(name) or definition
        aside = home.context.definitions.set_aside(name, now_words())
        home.context.definitions.add(definition)
    backup_note = f" The damaged one is kept as {aside.name}." if aside is not None else ""
    changes = "What `hybrid table apply` changed since is not in it."
    return f"Wrote the definition again, as of {act.at}. {changes}{backup_note}"
