"""A model of a power failure: of a folder, only what was synced is there afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from pathlib import Path

SHIM = Path(__file__).with_name("record_syncs.c")


def compile_shim(folder: Path) -> Path | None:
    """The library to preload; None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "record_syncs.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return library


def cut_power(record: Path, root: Path, target: Path, *, brings_back: bool = False) -> None:
    """Copies of `root` what is stored: names as of the last sync of their folder, bytes of synced files.

    A file that was not synced since its last write is empty. Of what was removed since the last sync of its folder the
    device may have either; with `brings_back` it is there, empty.
    """
    checksums: dict[str, str] = {}
    names: dict[str, dict[str, str]] = {}
    for line in record.read_text().splitlines() if record.exists() else []:
        kind, inode, _, *rest = line.split("\t")
        if kind == "F":
            checksums[inode] = rest[0]
        else:
            names[inode] = dict(zip(rest[::2], rest[1::2], strict=True))
    places = {str(os.lstat(path).st_ino): path for path in [root, *root.rglob("*")]}
    _copy(str(root.stat().st_ino), target, places, names, checksums, brings_back)


def _copy(
    inode: str,
    target: Path,
    places: dict[str, Path],
    names: dict[str, dict[str, str]],
    checksums: dict[str, str],
    brings_back: bool,
) -> None:
    target.mkdir()
    for name, child in names.get(inode, {}).items():
        source = places.get(child)
        if source is None:
            if brings_back:
                (target / name).touch()
            continue
        if source.is_dir():
            _copy(child, target / name, places, names, checksums, brings_back)
        else:
            status = source.stat()
            data = source.read_bytes()
            (target / name).write_bytes(data if checksums.get(child) == str(zlib.crc32(data)) else b"")
            os.utime(target / name, ns=(status.st_atime_ns, status.st_mtime_ns))
