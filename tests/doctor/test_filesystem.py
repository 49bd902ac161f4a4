"""Doctor names a home on a file system of the network."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hybrid.doctor.filesystem import check_filesystem, filesystem_of


def mounts(folder: Path, *lines: str) -> Path:
    path = folder / "mounts"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_nearest_mount_counts_and_the_last_at_one_place(tmp_path: Path) -> None:
    blank = tmp_path / "a b"
    blank.mkdir()
    place = str(blank).replace(" ", "\\040")
    table = mounts(tmp_path, "/dev/x / ext4 rw 0 0", f"s:/x {place} ext4 rw 0 0", f"s:/x {place} nfs4 rw 0 0", "bad")
    assert filesystem_of(blank, table) == "nfs4"
    assert filesystem_of(blank / "below", table) == "nfs4"
    assert filesystem_of(tmp_path / "a", table) == "ext4"
    assert filesystem_of(tmp_path, tmp_path / "none") is None


@pytest.mark.parametrize(("kind", "count"), [("nfs", 1), ("fuse.s3fs", 1), ("ext4", 0), ("overlay", 0), ("tmpfs", 0)])
def test_doctor_names_a_file_system_of_the_network(tmp_path: Path, kind: str, count: int) -> None:
    found: list[tuple[object, ...]] = []
    checkup = SimpleNamespace(
        home=SimpleNamespace(home=tmp_path), found=lambda *words, hint: found.append((*words, hint))
    )
    check_filesystem(checkup, mounts(tmp_path, f"x / {kind} rw 0 0"))  # type: ignore[arg-type]
    assert len(found) == count and all(kind in str(one) for one in found)
