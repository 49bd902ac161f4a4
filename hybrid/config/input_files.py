"""Lists the files below an input folder, without entering folders that may not be read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hybrid.config.input_rules import InputRules


def files_below(folder: Path, rules: InputRules | None = None) -> list[Path]:
    """Every file below `folder`, sorted. Links to files are listed, links to folders are not followed.

    With `rules`, private folders are skipped. The caller checks whether each file may be read.
    """
    paths = []
    for place, names, files in os.walk(folder):
        if rules is not None:
            names[:] = [name for name in names if rules.may_enter(Path(place, name))]
        paths += [path for path in (Path(place, name) for name in files) if path.is_file()]
    return sorted(paths)


def check_each(rules: InputRules, paths: Iterable[Path]) -> None:
    """RightError when one of the files may not be read."""
    for path in paths:
        rules.check(path)
