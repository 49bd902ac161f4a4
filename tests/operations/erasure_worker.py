"""Runs an erasure in a process that a failpoint kills."""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.progress import Silent
from tests.replace.tables import new_workbench


def main() -> None:
    folder, erasure_id = Path(sys.argv[1]), sys.argv[2]
    home = Hybrid(load_settings(home=folder), Silent())
    vars(home.context)["bench"] = new_workbench(folder / "logs")
    home.erasures.run(erasure_id)


if __name__ == "__main__":
    main()
