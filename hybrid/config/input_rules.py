"""The files and buckets that a request to a server may read, whether it is sent by HTTP or through the queue.

A path is judged by its target, after every symbolic link, and by the identity of the folders above it. So its
form does not matter: relative, percent-encoded, with `..`, through a bind mount or a link.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hybrid.config.job_store import ObjectStore
from hybrid.errors import RightError

# Folders of the kernel, with the environment and memory of processes, devices, and settings of the machine.
KERNEL_FOLDERS = ("/proc", "/dev", "/sys")
UPLOADS = "uploads"
_PRIVATE_FILES = ("server.json", "access.json", "hybrid.toml", "catalog.db")
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class StoreRules:
    """`buckets` may be read with the server's own identity (`*`: all); `endpoints` may be named, as `host[:port]`."""

    buckets: frozenset[str] = frozenset()
    endpoints: frozenset[str] = frozenset()


@dataclass(frozen=True)
class InputRules:
    """What a request may read. The home and the kernel's folders are never allowed.

    `folders` None: any other folder; else only these folders and their subfolders. `stores` None: any bucket.
    `is_upload`: only the file that the server received with the request.
    """

    home: Path
    folders: tuple[Path, ...] | None = None
    stores: StoreRules | None = None
    is_upload: bool = False

    def check(self, path: Path, shown: str | None = None) -> None:
        """RightError when the path may not be read; `shown` is the path as the caller wrote it."""
        reason = self.refusal(path)
        if reason is not None:
            text = shown if shown is not None else str(path)
            raise RightError(
                f"'{text[:200]}' may not be read by work that is sent to a server: {reason}.",
                hint="Upload the file (POST /ingestFromFile), or name its folder in the setting input_folders.",
            )

    def refusal(self, path: Path) -> str | None:
        """Why the path may not be read; None when it may."""
        real = real_path(path)
        if self.is_upload:
            return None if real_path(self.home / UPLOADS) in real.parents else "it is not the file that was uploaded"
        return self._folder_refusal(real) or self._file_refusal(real)

    def may_enter(self, folder: Path) -> bool:
        """Whether a folder may be listed. Only private folders may not, because each file below is checked as well."""
        return not self._is_private(real_path(folder))

    def check_store(self, store: ObjectStore) -> None:
        """RightError for a bucket, an endpoint, a region or a reference that the request may not name."""
        if store.has_references:
            raise _store_refused(store, "a reference would read a variable or a file of the server")
        if self.stores is None:
            return
        endpoint = store.options.get("endpoint", "")
        host = endpoint.rpartition("://")[2].rstrip("/").lower()
        if endpoint and host not in self.stores.endpoints:
            raise _store_refused(store, f"its endpoint '{host[:200]}' is not listed in the setting s3_endpoints")
        if not _REGION.fullmatch(store.options.get("region", "us-east-1")):
            raise _store_refused(store, "its region is not a name of letters, digits and hyphens")
        is_anonymous = store.options.get("anonymousCredentialsProvider", "").lower() == "true"
        has_keys = bool(store.options.get("accessKey")) and bool(store.options.get("secretKey"))
        if not is_anonymous and not has_keys and not self.stores.buckets & {"*", store.bucket}:
            raise _store_refused(
                store,
                "without accessKey and secretKey it is read as the server, "
                f"and bucket '{store.bucket}' is not listed in the setting s3_buckets",
            )

    def _folder_refusal(self, folder: Path) -> str | None:
        if self._is_private(folder):
            return "it belongs to the server or to the system"
        if self.folders is None:
            return None
        if any(place == folder or place in folder.parents for place in self._allowed):
            return None
        return "it is in no allowed folder" if self.folders else "no folder is allowed (setting input_folders)"

    def _file_refusal(self, real: Path) -> str | None:
        """Why a file may not be read: it is private, perhaps under the second name of a hard link. None when it may."""
        stamp = _identity(real)
        if stamp is not None and stamp in self._private_files():
            return "it belongs to the server or to the system"
        return None

    def _is_private(self, folder: Path) -> bool:
        above = (folder, *folder.parents)
        if any(place in above for place in self._private_places):
            return True
        return any(stamp in self._private_stamps for stamp in map(_identity, above) if stamp is not None)

    @cached_property
    def _allowed(self) -> tuple[Path, ...]:
        return tuple(map(real_path, self.folders or ()))

    @cached_property
    def _private_places(self) -> tuple[Path, ...]:
        return real_path(self.home), *map(Path, KERNEL_FOLDERS)

    @cached_property
    def _private_stamps(self) -> frozenset[tuple[int, int]]:
        """The private folders by device and inode, because a bind mount shows them under another path."""
        return frozenset(filter(None, map(_identity, self._private_places)))

    def _private_files(self) -> Iterator[tuple[int, int]]:
        yield from filter(None, (_identity(self.home / name) for name in _PRIVATE_FILES))


def real_path(path: Path) -> Path:
    """The target of a path. Two slashes at its beginning, which POSIX leaves undefined, count as one."""
    real = os.path.realpath(path)
    return Path("/" + real.lstrip("/")) if real.startswith("//") else Path(real)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _store_refused(store: ObjectStore, reason: str) -> RightError:
    return RightError(
        f"{store.address} may not be read by work that is sent to a server: {reason}.",
        hint="Give accessKey and secretKey in pinotFSSpecs, or have the setting changed.",
    )
