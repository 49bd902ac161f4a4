"""Checks for leftovers of dead processes: staged rows, half-written files, a JVM that outlived its command."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.doctor.findings import Checkup, Severity
from hybrid.lake.lock import last_holder
from hybrid.lake.staging import abandoned, sweep

# Writers rename a file within moments, so an older part is abandoned.
_PART_AGE_S = 60.0


def check_leftovers(checkup: Checkup, name: str) -> None:
    """Checks the folder of one table for leftovers."""
    layout = checkup.home.context.layout(name)
    with checkup.surviving("staging", name):
        _check_staging(checkup, name, layout.root / "staging")
    with checkup.surviving("part", name):
        check_parts(checkup, layout.root.glob("*.part"), name)
    with checkup.surviving("lock", name):
        for half in Half:
            _check_holder(checkup, name, half)


def check_parts(checkup: Checkup, parts: Iterable[Path], table: str | None = None) -> None:
    """Reports files that were not written to their end."""
    for part in sorted(parts):
        if time.time() - part.stat().st_mtime > _PART_AGE_S:
            message = f"{part} was not written to its end: its process died."
            checkup.found(Severity.WARNING, "part", message, table=table, mend=partial(_removed, part))


def _check_staging(checkup: Checkup, name: str, folder: Path) -> None:
    abandoned_folders = abandoned(folder)
    if abandoned_folders:
        count = "1 folder" if len(abandoned_folders) == 1 else f"{len(abandoned_folders)} folders"
        message = f"Killed operations left {count} of staged rows, e.g. {abandoned_folders[0]}. They are in no half."
        checkup.found(Severity.WARNING, "staging", message, table=name, mend=partial(_swept, folder))


def _check_holder(checkup: Checkup, name: str, half: Half) -> None:
    """Reports a JVM whose Python process died during an operation: it may still commit."""
    holder = last_holder(checkup.home.context.layout(name).lock(half))
    python, jvm = holder.get("python"), holder.get("jvm")
    if jvm is not None and jvm.is_alive() and not (python is not None and python.is_alive()):
        message = f"A JVM (pid {jvm.pid}) outlived the process that acted on {half}, and may commit yet."
        hint = "The next operation waits some seconds for its end, then ends it."
        checkup.found(Severity.WARNING, "lock", message, table=name, hint=hint)


def _removed(part: Path) -> str:
    part.unlink(missing_ok=True)
    return f"Removed {part.name}."


def _swept(folder: Path) -> str:
    removed = sweep(folder)
    return f"Removed {', '.join(path.name for path in removed)}."
