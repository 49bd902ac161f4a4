"""Masks the constants of an erasure's conditions in what statements have left: logs, catalog, plans, lineage."""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.settings import SERVE_LOCK
from hybrid.config.table_config import Half
from hybrid.home.query_log import FLUSH_S, QUERIES, SLOW_QUERIES
from hybrid.lake.entry_file import remove_unfinished
from hybrid.lake.layout import TableLayout
from hybrid.lake.lineage_archive import ARCHIVE_ENDING, archive_file, kept_acts
from hybrid.lake.lock import half_lock
from hybrid.lake.plan_store import publish_plans, rewrite_document
from hybrid.logs import ROLES
from hybrid.operations.purge import purged_store
from hybrid.replace.purge.statements import kept_of, logged_states, mask_log, masked_act, masked_entry
from hybrid.runtime import durable
from hybrid.runtime.file_lock import is_locked
from hybrid.runtime.rotated_file import rotation_paused
from hybrid.sql.redaction import Redaction
from hybrid.store.mirror import DEFINITION_FILE, mirror_at

if TYPE_CHECKING:
    from hybrid.home.home import Home

_MASK = b"*"
_ROTATED = frozenset((*(f"{role}.log" for role in ROLES), QUERIES, SLOW_QUERIES))
_JSON_COLUMNS = frozenset({"arguments", "report", "error"})
# Documents under the name that they have until they are whole.
_UNFINISHED, _UNFINISHED_S = "*.part", 3600
# Documents beside the halves, below a table's folder.
_PLAN_DOCUMENTS = ("plans/*/*.json", "plans/*/pushes/*/push.json")
_RECORDS = "purges/*.json"


def mask_texts(home: Home, tables: Iterable[str], redaction: Redaction) -> int:
    """Masks the constants in logs, in the catalog, and in records of these tables. Returns how many places had some.

    The catalog's journal still holds what was masked, until it is emptied.
    """
    count = home.catalog.mask(lambda column, text: _masked_column(redaction, column, text))
    count += _mask_logs(home, redaction)
    for name in tables:
        layout = home.layout(name)
        _remove_unfinished(layout)
        count += _mask_plans(layout, redaction)
        count += sum(_mask_documents(path, redaction) for path in layout.root.glob(_RECORDS))
        for half in (half for half in Half if half in home.spec(name).halves):
            timeout_s = home.settings.lock_timeout_s  # no JVM commits here
            with half_lock(layout.lock(half), jvm_pid=None, timeout_s=timeout_s, waiting=home.progress.say):
                remove_unfinished(layout.half(half))
                count += mask_log(layout.half(half), redaction)
                count += _mask_acts(layout.half(half), redaction)
        store = purged_store(home, name)
        if store is not None:
            count += store.mask_rest(
                lambda text: masked_entry(text, redaction), lambda text: _masked_json(redaction, text)
            )
    return count


def kept_texts(home: Home, tables: Iterable[str], redaction: Redaction) -> Iterator[tuple[Path, str]]:
    """(place, what) of the texts of these tables that have constants and stay: the product needs them as they are."""
    for name in tables:
        layout = home.layout(name)
        definition = layout.root / DEFINITION_FILE
        if _has(definition, redaction):
            yield definition, "the table's definition: a default, a filter, an expectation"
        for path in layout.root.rglob(_UNFINISHED):
            if _holds(path, redaction):
                yield path, "a document that is being written, or whose writer was killed within the hour"
        for half in (half for half in Half if half in home.spec(name).halves):
            folder = layout.half(half)
            documents = [*logged_states(folder), *({"act": vars(act)} for _, act in kept_acts(folder))]
            if any(redaction.is_in(kept_of(document)) for document in documents):
                yield folder, "progress of connectors and flows, or earlier definitions, in the log and its archive"


def _holds(path: Path, redaction: Redaction) -> bool:
    try:
        return bool(redaction.spans(path.read_bytes()))
    except FileNotFoundError:
        return False


def _has(path: Path, redaction: Redaction) -> bool:
    """Whether a JSON document exists and has a constant anywhere."""
    return path.exists() and redaction.is_in(json.loads(path.read_text(encoding="utf-8")))


def _mask_logs(home: Home, redaction: Redaction) -> int:
    home.query_log.flush()
    if is_locked(home.folder / SERVE_LOCK):
        time.sleep(2 * FLUSH_S)  # its statements that have ended are in the file then
    with ExitStack() as paused:
        for path in _logs(home):
            if path.name in _ROTATED:
                paused.enter_context(rotation_paused(path))
        return sum(mask_file(path, redaction) for path in _logs(home))


def mask_file(path: Path, redaction: Redaction) -> int:
    """Overwrites the constants in a log file in place, because its writers go on appending to it. 1 if it had some."""
    try:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
            status = os.fstat(file.fileno())
            spans = redaction.log_spans(content)
            for start, end in spans:
                content[start:end] = _MASK * (end - start)
            content.flush()
            if spans:
                os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))  # the age of a log stays
    except (FileNotFoundError, ValueError):  # rotated away, or empty
        return 0
    if spans:
        durable.sync(path)
    return int(bool(spans))


def _remove_unfinished(layout: TableLayout) -> None:
    """Removes documents that killed processes have not finished: none takes an hour to write."""
    for path in layout.root.rglob(_UNFINISHED):
        with suppress(FileNotFoundError):  # its writer has finished it just now
            if time.time() - path.stat().st_mtime > _UNFINISHED_S:
                path.unlink()


def _logs(home: Home) -> Iterator[Path]:
    folder = home.settings.logs
    return (path for path in sorted(folder.rglob("*")) if path.is_file()) if folder.is_dir() else iter(())


def _mask_documents(path: Path, redaction: Redaction) -> int:
    """Masks the free texts of a JSON document. 1 if it had some."""
    return _rewritten(path, lambda text: _masked_json(redaction, text))


def _mask_plans(layout: TableLayout, redaction: Redaction) -> int:
    """Masks the free texts of plans and of their states, which their list on a store has, too. How many had some."""
    paths = [path for pattern in _PLAN_DOCUMENTS for path in sorted(layout.root.glob(pattern))]
    count = sum(rewrite_document(path, lambda text: _masked_json(redaction, text)) for path in paths)
    if count:
        publish_plans(layout)
    return count


def _mask_acts(half: Path, redaction: Redaction) -> int:
    """Masks the free texts of an archive, which has an act in each line. 1 if it had some. On a store, too."""

    def masked(text: str) -> str:
        return "\n".join(_masked_entry(redaction, line) for line in text.split("\n"))

    mirror = mirror_at(half)
    if mirror is not None:
        mirror.rewrite_text(f"{mirror.key_of(half)}{ARCHIVE_ENDING}", masked)
    return _rewritten(archive_file(half), masked)


def _rewritten(path: Path, change: Callable[[str], str]) -> int:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return 0
    masked = change(text)
    if masked == text:
        return 0
    durable.write_text(path, masked)
    return 1


def _masked_entry(redaction: Redaction, line: str) -> str:
    entry = json.loads(line) if line else None
    if entry is None:
        return line
    masked = {**entry, "act": masked_act(entry["act"], redaction)}
    return line if masked == entry else json.dumps(masked, separators=(",", ":"))


def _masked_json(redaction: Redaction, text: str) -> str:
    """A JSON text with its free texts masked; as it is where nothing changes."""
    try:
        document = json.loads(text)
    except ValueError:  # the error of a connector is a sentence
        return redaction.of(text)
    masked = redaction.document(document)
    return text if masked == document else json.dumps(masked, separators=(",", ":"))


def _masked_column(redaction: Redaction, column: str, text: str) -> str:
    """The text of a column of the catalog: a JSON document, or a sentence."""
    return _masked_json(redaction, text) if column in _JSON_COLUMNS else redaction.of(text)
