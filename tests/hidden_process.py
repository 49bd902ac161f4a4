"""Processes as on a host of their own: without this process's variables, and without folders that they must not see."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.watchdog import watch

# With the options of tests' JVMs (tests/conftest.py), which say nothing of a store, Python or Spark.
_KEPT = ("PATH", "HOME", "LANG", "JAVA_TOOL_OPTIONS")


def may_hide_folders() -> bool:
    """Whether this user may mount over folders for a process alone."""
    words = ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    try:
        return subprocess.run(words, capture_output=True, timeout=10, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_hidden_folders = pytest.mark.skipif(
    not may_hide_folders(), reason="`unshare -m` and mounting are not permitted, so workers would see the home"
)


def without_folders(words: Sequence[str], hidden: Sequence[Path]) -> list[str]:
    """A command that runs with empty folders in the place of those in `hidden`."""
    if not hidden:
        return [*words]
    mounts = "".join(f"mount -t tmpfs tmpfs {shlex.quote(str(path))} && " for path in hidden)
    return ["unshare", "-m", "sh", "-c", f"{mounts}exec {shlex.join(words)}"]


def start_apart(words: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a command in the folder of its log, as leader of a process group.

    It gets these variables and nothing of this process's store, Python or Spark.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with log.open("ab") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            start_new_session=True,
            env={**kept, **environment},
        )
    watch(process)
    return process
