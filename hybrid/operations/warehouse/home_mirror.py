"""The mirror of a home whose warehouse is on an object store, and its tables with their halves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.settings import SERVE_LOCK
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, SpecError
from hybrid.lake.lock import half_lock
from hybrid.runtime.file_lock import is_locked
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.store.mirror import Mirror, mirror_at

if TYPE_CHECKING:
    from hybrid.home.home import Home


@shown_as_sentence
@dataclass(frozen=True)
class WarehouseReport:
    """What a command did with a warehouse. `tables` are those it concerned."""

    tables: tuple[str, ...]
    files: int
    bytes: int
    sentence: str
    did_something: bool = True

    def to_json(self) -> dict[str, object]:
        """The report as a JSON value."""
        return {**vars(self), "tables": list(self.tables)}


def require_mirror(home: Home) -> Mirror:
    """The mirror of a home. SpecError when its setting `warehouse` names no store."""
    mirror = mirror_at(home.settings.warehouse)
    if mirror is None:
        raise SpecError(
            f"The tables of {home.folder} are in its folder alone: the setting 'warehouse' names no store.",
            hint='Set warehouse = "s3://bucket/prefix" in hybrid.toml, or HYBRID_WAREHOUSE.',
        )
    return mirror


def refuse_running(home: Home, command: str) -> None:
    """ConflictError while a server of the home runs."""
    if is_locked(home.folder / SERVE_LOCK):
        raise ConflictError(
            f"A server of {home.folder} is running. Nothing was done.", hint=f"Stop it, then: {command}"
        )


def halves_of(table: Path) -> list[Path]:
    """The folders of a table's halves that are there: OFFLINE, then REALTIME."""
    return [
        table / half.value for half in (Half.OFFLINE, Half.REALTIME) if (table / half.value / "_delta_log").is_dir()
    ]


@contextmanager
def locked(home: Home, halves: list[Path]) -> Iterator[None]:
    """Hold the locks of halves. ConflictError when one is busy for longer than the home's timeout."""
    with ExitStack() as locks:
        for half in sorted(halves):
            path, timeout_s = half.with_name(f"{half.name}.lock"), home.settings.lock_timeout_s
            locks.enter_context(half_lock(path, jvm_pid=None, timeout_s=timeout_s, waiting=home.progress.say))
        yield
