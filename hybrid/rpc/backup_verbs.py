"""The verbs of backups; `hybrid.rpc.verbs` names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hybrid.runtime.json_values import json_document

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

Json = Any


def backup_create(home: Hybrid, *, directory: str, tables: Sequence[str] | None = None) -> Json:
    """Backs up all tables, or the named ones, into a directory."""
    return json_document(home.backups.create(directory, tables).to_json())


def backup_list(home: Hybrid, *, directory: str) -> Json:
    """The backups in a directory, newest first."""
    return [json_document(found.to_json()) for found in home.backups.list(directory)]


def backup_verify(home: Hybrid, *, directory: str, backup: str | None = None) -> Json:
    """Compares every byte of a backup, or of all, with its checksum."""
    return json_document(home.backups.verify(directory, backup).to_json())


def backup_delete(home: Hybrid, *, directory: str, backup: str) -> Json:
    """Deletes a backup, and the files that no other backup needs."""
    return json_document(vars(home.backups.delete(directory, backup)))
