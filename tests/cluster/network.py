"""Hosts of a network of their own on this machine: a network namespace each, joined by one bridge.

A host has its own loopback and one address, and reaches nothing else: who assumes that all is on one machine fails.
The bridge is in a namespace, too, so that the machine's own network is left as it is.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_NAMED = Path("/run/netns")
_BRIDGE = "bridge"
_CLONE_NEWNET = 0x40000000
_GONE_S = 10.0


@dataclass(frozen=True)
class Host:
    """A namespace with one address."""

    namespace: str
    address: str

    def command(self, words: Sequence[str]) -> list[str]:
        """What runs a command on this host. The process that is started becomes the command."""
        return ["ip", "netns", "exec", self.namespace, *words]

    def pids(self) -> list[int]:
        """The processes on this host."""
        try:
            own = (_NAMED / self.namespace).stat()
        except FileNotFoundError:
            return []
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                place = (folder / "ns" / "net").stat()
                if (place.st_ino, place.st_dev) == (own.st_ino, own.st_dev):
                    found.append(int(folder.name))
        return found

    def kill(self) -> None:
        """End all processes at once, as the loss of the machine would; those of this test's own process stay."""
        deadline = time.monotonic() + _GONE_S
        while pids := [pid for pid in self.pids() if pid != os.getpid()]:
            assert time.monotonic() < deadline, f"{pids} in {self.namespace} do not end"
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def why_not() -> str | None:
    """Why there can be no hosts on this machine; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "`ip` is not installed (apt-get install iproute2)"
    name = f"hybrid-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"network namespaces are refused here: {tried.stderr.strip()}"
    _ip("netns", "delete", name)
    return None


@contextmanager
def network(prefix: str, subnet: str, names: Sequence[str]) -> Iterator[dict[str, Host]]:
    """Hosts by name, in a network of three numbers such as `10.77.0`. Everything on them ends with the block.

    What a killed run left is removed first. One block with a prefix at a time: BlockingIOError for a second one.
    """
    with open(f"/run/{prefix}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(prefix)
        try:
            yield _create(prefix, subnet, names)
        finally:
            remove(prefix)


def remove(prefix: str) -> None:
    """End what runs on the hosts of a network, and remove them."""
    for path in sorted(_NAMED.glob(f"{prefix}-*")) if _NAMED.is_dir() else ():
        Host(path.name, "").kill()
        _ip("netns", "delete", path.name)


@contextmanager
def entered(host: Host) -> Iterator[None]:
    """This thread, and the threads and processes that it starts, are on a host until the end of the block."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(os.fspath(_NAMED / host.namespace))
        yield
    finally:
        _set_namespace(before)
        os.close(before)


def _enter(path: str) -> None:
    there = os.open(path, os.O_RDONLY)
    try:
        _set_namespace(there)
    finally:
        os.close(there)


def _set_namespace(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _create(prefix: str, subnet: str, names: Sequence[str]) -> dict[str, Host]:
    middle = f"{prefix}-{_BRIDGE}"
    _ip("netns", "add", middle)
    _ip("-n", middle, "link", "add", _BRIDGE, "type", "bridge")
    _ip("-n", middle, "link", "set", _BRIDGE, "up")
    hosts = {}
    for number, name in enumerate(names, start=11):
        host = hosts[name] = Host(f"{prefix}-{name}", f"{subnet}.{number}")
        inside, link = ("-n", host.namespace), f"to-{name}"
        _ip("netns", "add", host.namespace)
        _ip("-n", middle, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        _ip("-n", middle, "link", "set", link, "master", _BRIDGE, "up")
        _ip(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
        for own in ("lo", "eth0"):
            _ip(*inside, "link", "set", own, "up")
    return hosts


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"
