"""One more worker of pytest-xdist, which fills idle processors with tests that start no process: `--spare`.

The others start servers, brokers and JVMs, and wait for them. The last one gets only files none of whose tests has a
mark of a process, and runs at a low priority, so that it takes little time from the others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from hybrid.serve.priority import set_session_niceness

# A tenth of a busy processor: with less, a test of some seconds would reach its timeout.
_NICENESS = 10


def give_way() -> None:
    """Give this process a low priority, also among those of other sessions."""
    os.nice(_NICENESS)
    with suppress(OSError):  # no session counts by itself here
        os.setsid()  # else the other workers, which are of the same session, would be set back too
        set_session_niceness(os.getpid(), _NICENESS)


def is_spare() -> bool:
    """Whether this process is the spare worker, if there is one."""
    return os.environ.get("PYTEST_XDIST_WORKER") == _name(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")))


def _name(workers: int) -> str:
    """Workers are named gw0, gw1 and so on; the spare one is the last."""
    return f"gw{workers - 1}"


class SpareWorkerScheduling(LoadFileScheduling):
    """Deals out files in the order of the tests: to the spare worker only some, and to the others these at last.

    All files of a package, a folder with `__init__.py`, go to one worker: they share what lives as long as the package.
    """

    def __init__(
        self, config: pytest.Config, log: Producer | None, light: Collection[str], packages: Collection[str]
    ) -> None:
        """`light` are the files for the spare worker, and `packages` folders, as test ids begin."""
        super().__init__(config, log)
        self._light, self._packages, self._spare = light, packages, _name(self.numnodes)

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        folder = file.rpartition("/")[0]
        return folder if folder in self._packages else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        is_spare = node.gateway.id == self._spare
        file = next((file for file in self.workqueue if (file in self._light) == is_spare), None)
        if file is not None:
            self.workqueue.move_to_end(file, last=False)
        elif is_spare:
            node.shutdown()
            return
        super()._assign_work_unit(node)


def light_files(folder: Path, root: Path, marks: Sequence[str]) -> frozenset[str]:
    """The test files below `folder` without any of these marks, relative to `root`."""
    marked = re.compile(rf"\bmark\.(?:{'|'.join(marks)})\b")
    files = folder.rglob("test_*.py")
    return frozenset(
        path.relative_to(root).as_posix() for path in files if not marked.search(path.read_text(encoding="utf-8"))
    )


def packages(folder: Path, root: Path) -> frozenset[str]:
    """The folders below `folder` that are packages, relative to `root`."""
    return frozenset(path.parent.relative_to(root).as_posix() for path in folder.rglob("__init__.py"))
