"""Checks the file system of the home: locks and SQLite need a local one."""

from __future__ import annotations

from pathlib import Path

from hybrid.doctor.findings import Checkup, Severity
from hybrid.runtime.disk import existing

MOUNTS = Path("/proc/mounts")
# File systems that machines share: locks may hold on one machine only, and SQLite's WAL needs shared memory.
NETWORK_TYPES = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "fuse.glusterfs", "lustre", "gpfs", "9p",
        "virtiofs", "ocfs2", "gfs2", "beegfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "davfs",
        "fuse.ceph", "fuse.davfs", "fuse.mount-s3", "fuse.juicefs",
    }
)  # fmt: skip


def check_filesystem(checkup: Checkup, mounts: Path = MOUNTS) -> None:
    """Reports a home on a network file system."""
    folder = existing(checkup.home.home)
    kind = filesystem_of(folder, mounts)
    if kind in NETWORK_TYPES:
        checkup.found(
            Severity.WARNING,
            "filesystem",
            f"{folder} lies on a file system of the network ({kind}). Locks may not hold there between machines, "
            "and the catalog's SQLite file may be damaged.",
            hint="Move the home to a disk of this machine.",
        )


def filesystem_of(folder: Path, mounts: Path) -> str | None:
    """The type of the file system that a folder lies on; None when it is not known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    real, best, kind = folder.resolve(), Path(), None
    for line in lines:
        words = line.split(" ")
        if len(words) < 3:
            continue
        place = Path(_plain(words[1]))
        # The last of several mounts at one path hides the others.
        if (place == real or place in real.parents) and len(place.parts) >= len(best.parts):
            best, kind = place, words[2]
    return kind


def _plain(text: str) -> str:
    """A mount point without the kernel's octal escapes of blanks and backslashes."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
