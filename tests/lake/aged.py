"""Makes the past of a half: commits and files as if they had been made days ago."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hybrid.lake.log import open_half

DAY = 86_400_000


def entry(half: Path, version: int) -> Path:
    return half / "_delta_log" / f"{version:020d}.json"


def age(half: Path, days: float, through: int | None = None) -> None:
    """Commits up to version `through` (None: all), and all data files that they added, are so many days older."""
    for version in range(open_half(half).version + 1 if through is None else through + 1):
        path = entry(half, version)
        if not path.exists():
            continue
        lines = []
        for line in filter(None, path.read_text(encoding="utf-8").split("\n")):
            action = json.loads(line)
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] -= round(days * DAY)
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= round(days * DAY)
            if "add" in action:
                older(half / action["add"]["path"], days)
            lines.append(json.dumps(action, separators=(",", ":")))
        stat = path.stat()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")
        os.utime(path, (stat.st_atime, stat.st_mtime))
        older(path, days)


def older(path: Path, days: float) -> None:
    """A file as if it had been written so many days before."""
    if path.exists():
        stat = path.stat()
        os.utime(path, (stat.st_atime - days * DAY / 1000, stat.st_mtime - days * DAY / 1000))
