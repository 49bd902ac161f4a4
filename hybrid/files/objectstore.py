"""Downloads objects of an S3 store, so that workers read them as local files with exact places."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hybrid.config.job_store import ObjectStore
from hybrid.errors import DataError

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_CONNECT_S, _REQUEST_S = 10, 120


def fetch(store: ObjectStore, wanted: Callable[[str, str], bool], folder: Path) -> str | None:
    """Download the objects at or below the store's key to files below `folder`, with their modification times.

    Returns the address of what `folder` stands for: the store's, or the part before its name if that is one object.
    None: no object is wanted. `wanted` is called with the part of a key below the store's, and with the whole
    address in the form of Pinot's patterns (`s3:/bucket/key`). Raises DataError when the store cannot be read, or a key
    would leave the folder.
    """
    try:
        filesystem = _open(store)
        base, objects = None, _objects(filesystem, store)
        for info, below in objects:
            if wanted(below, f"s3:/{info.path}"):
                _copy(filesystem, info, folder / _inside(store, below))
                base = "s3://" + info.path.removesuffix(f"/{below}")
        return base
    except OSError as error:
        raise DataError(f"{store.address} cannot be read: {' '.join(str(error).split())}") from error


def _open(store: ObjectStore) -> pafs.FileSystem:
    import pyarrow.fs as pafs

    options = store.resolved_options()
    scheme, _, host = options.get("endpoint", "").rpartition("://")
    return pafs.S3FileSystem(
        access_key=options.get("accessKey"),
        secret_key=options.get("secretKey"),
        anonymous=options.get("anonymousCredentialsProvider", "").lower() == "true",
        region=options.get("region"),
        endpoint_override=host or None,
        scheme=scheme or None,
        connect_timeout=_CONNECT_S,
        request_timeout=_REQUEST_S,
    )


def _objects(filesystem: pafs.FileSystem, store: ObjectStore) -> list[tuple[pafs.FileInfo, str]]:
    """(object, its key below the store's) of every object. If the address names one object: its name."""
    import pyarrow.fs as pafs

    place = f"{store.bucket}/{store.key}".rstrip("/")
    itself = filesystem.get_file_info(place)
    if itself.type is pafs.FileType.File:
        return [(itself, itself.base_name)]
    below = filesystem.get_file_info(pafs.FileSelector(place, recursive=True))
    return [(info, info.path.removeprefix(f"{place}/")) for info in below if info.type is pafs.FileType.File]


def _inside(store: ObjectStore, below: str) -> PurePosixPath:
    path = PurePosixPath(below)
    if path.is_absolute() or ".." in path.parts:
        raise DataError(f"{store.address}: the key '{below}' cannot be a file's path.")
    return path


def _copy(filesystem: pafs.FileSystem, info: pafs.FileInfo, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with filesystem.open_input_stream(info.path, compression=None) as source, to.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    os.utime(to, ns=(info.mtime_ns, info.mtime_ns))
