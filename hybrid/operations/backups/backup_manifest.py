"""The manifest of a backup: its tables, and each file with size and SHA-256. Its text is JSON.

{"backup": {...}, "sha256": "<SHA-256 of the text of `backup`>"}
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybrid.errors import DataError

FORMAT = 2  # 1: without `home_id` and `host`


@dataclass(frozen=True)
class BackupFile:
    """A file of a backup. `path` is relative to the home; `modified_ns` is its time there.

    `inode` and `changed_ns` (the time of its last change, which nobody can set) tell a later backup that the file is
    still this one. They are 0 for a file that is always read.
    """

    path: str
    size: int
    sha256: str
    modified_ns: int
    inode: int = 0
    changed_ns: int = 0

    def is_still(self, status: os.stat_result) -> bool:
        """Whether a file with this status has these bytes."""
        now = status.st_size, status.st_ino, status.st_ctime_ns
        return self.changed_ns != 0 and now == (self.size, self.inode, self.changed_ns)


@dataclass(frozen=True)
class BackupTable:
    """A table of a backup at one revision: the versions of its halves, and what followed from them.

    `ids` are the ids of the Delta tables by half. `boundary` None: the table has one half. `offsets` are the next
    offsets by partition, `rows` the stored rows by half. `pinned_at` is when the versions were pinned (ISO 8601).
    """

    name: str
    pinned_at: str
    versions: Mapping[str, int]
    ids: Mapping[str, str]
    revision: str
    boundary: Mapping[str, Any] | None
    offsets: Mapping[str, int]
    rows: Mapping[str, int]


@dataclass(frozen=True)
class BackupManifest:
    """A backup. `whole`: it holds all tables of the home, not only named ones.

    `created_at` is when its first table was pinned; `id` begins with that time.
    `act` is the id of the run that made it; `home` and `product` are the folder and the version of the original.
    `home_id` and `host` tell homes with the same folder on different machines apart. Backups of older versions have
    neither.
    `left_out` are sentences on what is not in it.
    """

    id: str
    act: str
    created_at: str
    product: str
    home: str
    whole: bool
    tables: tuple[BackupTable, ...]
    files: tuple[BackupFile, ...]
    left_out: tuple[str, ...]
    home_id: str = ""
    host: str = ""

    def is_of(self, home: str, home_id: str) -> bool:
        """Whether it is a backup of the home in this folder with this id, as far as the backup says it."""
        return self.home == home and self.home_id in ("", home_id)

    def is_of_same_home(self, other: BackupManifest) -> bool:
        """Whether `other` is of the same home, as far as both say it; a restored home on its machine has another id."""
        return self.is_of(other.home, other.home_id) or (self.home == other.home and self.host == other.host)

    @property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(file.size for file in self.files)

    def table(self, name: str) -> BackupTable | None:
        """The table of that name, if the backup has it."""
        return next((table for table in self.tables if table.name == name), None)

    def to_text(self) -> str:
        """The manifest as it is stored."""
        document = {
            "format": FORMAT,
            **vars(self),
            "tables": [vars(table) for table in self.tables],
            "files": [list(vars(file).values()) for file in self.files],
        }
        return _sealed(json.dumps(document, sort_keys=True, separators=(",", ":")))

    @classmethod
    def from_text(cls, text: str, source: str) -> BackupManifest:
        """The inverse of `to_text`; DataError, which names `source`, for any other text."""
        body = text[len(_HEAD) : -len(_tail(""))]
        if text != _sealed(body):
            raise DataError(f"{source} is damaged: its content does not have its checksum.")
        try:
            fields = dict(json.loads(body))
            found = fields.pop("format")
            if isinstance(found, int) and found > FORMAT:
                raise DataError(
                    f"{source} has format {found}; this version reads {FORMAT}.", hint="Use a newer version of hybrid."
                )
            tables = tuple(BackupTable(**table) for table in fields.pop("tables"))
            files = tuple(BackupFile(*file) for file in fields.pop("files"))
            return cls(**{**fields, "left_out": tuple(fields["left_out"]), "tables": tables, "files": files})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{source} is no manifest of a backup: {error!r}.") from error


_HEAD = '{"backup":'


def _sealed(body: str) -> str:
    """The text of a manifest around its body: every changed byte makes another text of it."""
    return f"{_HEAD}{body}{_tail(hashlib.sha256(body.encode()).hexdigest())}"


def _tail(digest: str) -> str:
    return f',"sha256":"{digest:64}"}}\n'
