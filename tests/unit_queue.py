"""Files of unit tests that several processes take from one queue: each imports a file when its turn comes.

So no process waits long for another at the end, whatever the files take, and none imports what another runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from tests.unit_parts import next_number

_Node = pytest.Item | pytest.Collector


class FileQueue:
    """Plug-in of pytest: imports and runs one file after the other, each as the queue says, long ones first."""

    def __init__(self, queue: int) -> None:
        self._queue = queue
        self._nodes: dict[Path, list[_Node]] = {}  # what is to be run of each file
        self._files: list[Path] = []
        self._bytes: list[int] = []  # of the files before each, and of all
        self._collected = 0

    def pytest_collection(self, session: pytest.Session) -> bool:
        """List the files at first, then collect the next one that has tests to run; none at the end of the queue."""
        if not self._files:
            self._list_files(session)
        number = -1
        session.items = []
        while not session.items and (number := next_number(self._queue)) < len(self._files):
            items = [item for node in self._nodes[self._files[number]] for item in session.genitems(node)]
            session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
            session.items = items
        self._collected += len(session.items)
        # pytest prints which part of them has run: by an estimate, until the last file is taken.
        taken = self._bytes[min(number + 1, len(self._files))]
        session.testscollected = self._collected * self._bytes[-1] // taken if taken else 0
        return True

    def _list_files(self, session: pytest.Session) -> None:
        def note(node: _Node) -> Iterator[pytest.Item]:
            if isinstance(node, pytest.Directory):
                yield from pytest.Session.genitems(session, node)  # notes what is in it
            else:
                self._nodes.setdefault(node.path, []).append(node)

        session.genitems = note  # type: ignore[method-assign]
        session.perform_collect()
        del session.genitems
        self._files = sorted(self._nodes, key=lambda path: (-path.stat().st_size, path))
        self._bytes = list(accumulate((path.stat().st_size for path in self._files), initial=0))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of a file, and take the next one before the last of them: it says what is torn down."""
        items = session.items
        while items:
            for test, following in pairwise(items):
                _run(session, test, following)
            last = items[-1]
            session.config.hook.pytest_collection(session=session)
            items = session.items
            _run(session, last, items[0] if items else None)
        return True


def _run(session: pytest.Session, test: pytest.Item, following: pytest.Item | None) -> None:
    if session.config.option.collectonly:
        return
    test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
