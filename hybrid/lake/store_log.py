"""Log entries of a warehouse on an object store: what the store has, decides (docs/adr/0064).

The order of a commit, under the half's lock, and what a crash after each step leaves:
  write the entry to <HALF>.entry            the next holder of the lock asks the store, and removes it
  upload the files that the entry adds       files that nobody names; vacuum removes them
  put the entry, if its version is free      committed; the mirror lacks it until the next holder of the lock
  link the entry into the mirror's log       done
  remove <HALF>.entry
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from hybrid.errors import ConflictError, DataError, HybridError, MachineError, StoreError
from hybrid.lake.checkpoint import HINT, hinted_version
from hybrid.lake.entry_file import Put, is_same_commit, link_entry, not_written, replace_entry
from hybrid.lake.failpoints import step
from hybrid.lake.half_head import forget_head
from hybrid.lake.log_entries import entry_path, newest_entry
from hybrid.runtime import durable
from hybrid.store.conditional_put import PutOutcome
from hybrid.store.mirror import ENTRY_ENDING, Mirror, for_all
from hybrid.store.published_definition import publish_definition

_ENTRY_LENGTH = len(f"{0:020d}.json")
_FOREIGN = ".foreign"
_PULL = "Pull the warehouse into an empty home: hybrid warehouse pull --home DIR"
# The newest version of each half, by folder and key, that this process knows to be the same in mirror and store.
_SAME: dict[tuple[Path, str], int] = {}


class AddedFile(NamedTuple):
    """A file that an entry adds: its path below the half, decoded, and its bytes."""

    name: str
    size: int


def put_through(mirror: Mirror, half: Path, version: int, text: str, *, while_pulling: bool = False) -> Put:
    """Give an entry its version on the store, its files before it, then in the mirror. Call it under the half's lock.

    `EXISTS`: another entry has the version; the mirror has caught up with the store. ConflictError when another home
    writes the warehouse, StoreError when the store refuses, DataError for a full disk: nothing was committed then.
    MachineError when the entry was committed, but the mirror cannot take it: the next holder of the lock brings it.
    `while_pulling`: the mirror may still lack tables.
    """
    staged = staged_entry(half)
    try:
        durable.write_text(staged, text)  # before the put: a disk that is full then must not be full afterwards
    except OSError as error:
        raise not_written(half, version, error) from error
    step("store.staged")
    try:
        if while_pulling:
            mirror.ownership.require()
        else:
            mirror.require_writable()
            publish_definition(mirror, half.parent)
        put = _put(mirror, half, version, text)
    except HybridError:
        staged.unlink(missing_ok=True)
        raise
    if put is Put.MADE:
        step("store.put")
        _confirm(mirror, half, version)
        _link(half, version, staged)
        step("store.linked")
    if put is not Put.UNKNOWN:
        staged.unlink(missing_ok=True)
    return put


def settle(mirror: Mirror, half: Path) -> None:
    """Bring what a killed holder of the half's lock may have put on the store. Call it when the lock was just taken.

    ConflictError when another home writes the warehouse, StoreError when the store does not answer.
    """
    mirror.require_writable()
    staged = staged_entry(half)
    if staged.exists():
        catch_up(mirror, half)
        staged.unlink(missing_ok=True)


def staged_entry(half: Path) -> Path:
    """The file with the entry that is being put; left by a holder of the lock that was killed, or got no answer."""
    return half.with_name(f"{half.name}{ENTRY_ENDING}")


def _put(mirror: Mirror, half: Path, version: int, text: str) -> Put:
    if version > 0:
        level(mirror, half, version - 1)
    upload_added(mirror, half, text)
    step("store.uploaded")
    match mirror.client.create(_entry_key(mirror, half, version), text.encode()).outcome:
        case PutOutcome.MADE:
            return Put.MADE
        case PutOutcome.UNKNOWN:
            return Put.UNKNOWN
    catch_up(mirror, half)
    return Put.EXISTS


def _confirm(mirror: Mirror, half: Path, version: int) -> None:
    """MachineError when a version was free on the store because its log was cleaned beyond it.

    A home that was stopped for longer than the log is kept, and comes back, would write below what readers read.
    Entries are removed oldest first, so then the one before is gone too.
    """
    try:
        is_behind = version > 0 and mirror.client.size_of(_entry_key(mirror, half, version - 1)) is None
    except StoreError as error:
        raise _committed(half, version, error) from error
    if is_behind:
        mirror.client.delete(_entry_key(mirror, half, version))  # readers begin above it, so it is nobody's
        raise _gone_on(mirror, half, version - 1)
    _SAME[half, mirror.key_of(half)] = version


def _gone_on(mirror: Mirror, half: Path, version: int) -> MachineError:
    return MachineError(
        f"{half}: {mirror.url} has gone on without this home for so long that it no longer has version {version}. "
        "Nothing was committed.",
        hint=_PULL,
    )


def _link(half: Path, version: int, staged: Path) -> None:
    """Link an entry that the store has into the mirror's log. What another program wrote there is set aside."""
    try:
        try:
            os.link(staged, entry_path(half, version))
        except FileExistsError:
            set_aside(half, version)
            os.link(staged, entry_path(half, version))
    except OSError as error:
        raise _committed(half, version, error) from error


def _committed(half: Path, version: int, error: Exception) -> MachineError:
    return MachineError(
        f"{half}: version {version} was committed, but this mirror of the store does not have it yet: {error}",
        hint="It has it after the next operation on this half, or: hybrid warehouse sync. Do not run this again.",
    )


def set_aside(half: Path, version: int) -> None:
    """Rename what the mirror's log has from a version on, which is not what the store has."""
    log = half / "_delta_log"
    for path in sorted(log.glob("[0-9]*")):
        if path.name[:20].isdecimal() and int(path.name[:20]) >= version:
            target = path.with_name(f".{path.name}.{time.time_ns()}{_FOREIGN}")
            durable.rename(path, target)
            message = "%s is not on the store, which decides; it is %s now."
            logging.getLogger(__name__).warning(message, path, target.name)
    if (hinted_version(half) or 0) >= version:
        (log / HINT).unlink(missing_ok=True)
    forget_head(half)


def set_aside_entries(half: Path) -> list[Path]:
    """What `set_aside` has renamed in a half's log: no reader looks at it."""
    return sorted((half / "_delta_log").glob(f".*{_FOREIGN}"))


def upload_added(mirror: Mirror, half: Path, text: str) -> None:
    """Upload the files that an entry adds."""
    added = list(added_by(half, text))
    mirror.upload_new(half, [file.name for file in added], [file.size for file in added])


def level(mirror: Mirror, half: Path, version: int) -> None:
    """Make sure that the store has this version of the mirror and what precedes it. Call it under the half's lock.

    Versions that the store lacks were committed by another program to the mirror; they are put now. Where the two have
    different entries, the store's stays: ConflictError after the mirror has it.
    """
    if _SAME.get((half, mirror.key_of(half))) == version:
        return
    lacking, differing = list[int](), list[int]()
    for older in range(version, -1, -1):
        content = mirror.client.get(_entry_key(mirror, half, older))
        if content is None and not differing:
            lacking.append(older)
        elif content is None or not _take_rewritten(half, older, content.data):
            differing.append(older)
        else:
            break
    if differing:
        set_aside(half, differing[-1])
        catch_up(mirror, half)
        raise ConflictError(
            f"{half}: another program had written version {differing[-1]} of the log to this mirror, which the store "
            "has otherwise. The mirror is as the store again. Nothing was committed.",
            hint="Run it again. Other programs must write neither to the mirror nor to the store.",
        )
    if lacking and versions_after(mirror, half, version):
        raise _gone_on(mirror, half, version)
    for older in reversed(lacking):
        text = _read(half, older)
        upload_added(mirror, half, text)
        if mirror.client.create(_entry_key(mirror, half, older), text.encode()).outcome is not PutOutcome.MADE:
            message = f"{half}: version {older} of the log was not written to {mirror.url}."
            raise MachineError(message, hint="Run it again.")
    _SAME[half, mirror.key_of(half)] = version


def _take_rewritten(half: Path, version: int, data: bytes) -> bool:
    """Whether the mirror has the store's commit of a version. Where a purge has written it again, it takes the text."""
    text, here = data.decode("utf-8", "replace"), _read(half, version)
    if text != here and is_same_commit(text, here):
        replace_entry(entry_path(half, version), text)
        return True
    return text == here


def align(mirror: Mirror, half: Path) -> int:
    """Let mirror and store have the same log; the number of entries that the mirror lacked. Call it under the lock."""
    count = catch_up(mirror, half)
    level(mirror, half, newest_entry(half))
    return count


def catch_up(mirror: Mirror, half: Path) -> int:
    """Bring the entries that the store has beyond the mirror's into the mirror, each after its files.

    Returns how many. Call it under the half's lock. ConflictError when another home writes the warehouse.
    """
    mirror.ownership.require(is_recent_enough=False)
    newest = newest_entry(half)
    versions = versions_after(mirror, half, newest)
    is_cleaned = versions and newest >= 0 and mirror.client.get(_entry_key(mirror, half, newest)) is None
    if is_cleaned or versions != list(range(newest + 1, newest + 1 + len(versions))):
        raise MachineError(
            f"{half}: {mirror.url} has version {versions[0]} and later ones, but this mirror ends with {newest}, and "
            "what lies between was cleaned.",
            hint=_PULL,
        )
    for version in versions:
        text = entry_of(mirror, half, version)
        if text is None:
            raise MachineError(f"{half}: version {version} of {mirror.url} was removed just now.", hint=_PULL)
        bring_entry(mirror, half, version, text)
    if versions:
        durable.sync(half / "_delta_log")
        _SAME[half, mirror.key_of(half)] = versions[-1]
    return len(versions)


def versions_after(mirror: Mirror, half: Path, version: int) -> Sequence[int]:
    """The versions of the store's log after one of the mirror, ascending; -1: all."""
    offset = _entry_key(mirror, half, version) if version >= 0 else None
    names = [item.key.rpartition("/")[2] for item in mirror.client.list_below(_log_key(mirror, half), offset=offset)]
    return sorted(int(name[:20]) for name in names if name.endswith(".json") and len(name) == _ENTRY_LENGTH)


def entry_of(mirror: Mirror, half: Path, version: int) -> str | None:
    """The text of a version on the store; None if it is not there."""
    content = mirror.client.get(_entry_key(mirror, half, version))
    try:
        return None if content is None else content.data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{mirror.url}: version {version} of {half.parent.name} is damaged: {error}") from error


def has_entry_on_store(mirror: Mirror, half: Path, version: int) -> bool:
    """Whether the store has this version of the log: it may have been cleaned beyond it."""
    return mirror.client.size_of(_entry_key(mirror, half, version)) is not None


def bring_entry(mirror: Mirror, half: Path, version: int, text: str) -> None:
    """Download the files that an entry of the store adds and the mirror lacks, then link the entry into its log."""
    fetch_added(mirror, half, text)
    link_brought(half, version, text)


def fetch_added(mirror: Mirror, half: Path, text: str) -> None:
    """Download the files that an entry of the store adds and the mirror lacks."""

    def fetch(file: AddedFile) -> None:
        if not mirror.fetch(mirror.key_of(half, file.name), half / file.name, file.size):
            # A later version has removed it, and vacuum after that.
            logging.getLogger(__name__).info("%s: %s is no longer at %s.", half, file.name, mirror.url)

    for_all(fetch, list(added_by(half, text)))


def link_brought(half: Path, version: int, text: str) -> None:
    """Link an entry of the store into the mirror's log, whose files are there."""
    (half / "_delta_log").mkdir(parents=True, exist_ok=True)
    if link_entry(half, version, text) is Put.UNKNOWN:
        raise MachineError(f"{half}: the disk did not say whether version {version} was written.", hint="Run it again.")


def added_by(half: Path, text: str) -> Iterator[AddedFile]:
    """The files that an entry adds. DataError for a damaged entry, and for files that a store cannot have."""
    for line in text.split("\n"):
        if not line.startswith('{"add"'):
            continue
        try:
            add = json.loads(line)["add"]
            name, size = unquote(add["path"]), int(add["size"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{half}: an entry of the log is damaged: {error}") from error
        if name.startswith("/") or "://" in name or ".." in name.split("/"):
            raise DataError(f"{half}: the log names a file elsewhere, {name}, which a store does not have.")
        if add.get("deletionVector"):
            raise DataError(f"{half}: {name} has a deletion vector, which a warehouse on a store cannot have.")
        yield AddedFile(name, size)


def _read(half: Path, version: int) -> str:
    try:
        return entry_path(half, version).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MachineError(
            f"{half}: neither this mirror nor the store has version {version} of the log.",
            hint=_PULL,
        ) from error


def _log_key(mirror: Mirror, half: Path) -> str:
    return mirror.key_of(half, "_delta_log")


def _entry_key(mirror: Mirror, half: Path, version: int) -> str:
    return mirror.key_of(half, f"_delta_log/{version:020d}.json")
