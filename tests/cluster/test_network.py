"""The hosts of `make cluster-test`: each has its own loopback; nothing is left of them, not even by a killed run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.network import Host, entered, network, remove, why_not

pytestmark = [pytest.mark.process]

_LISTEN = (
    "import socket, sys, time; s = socket.create_server((sys.argv[1], 7000)); print('up', flush=True); time.sleep(60)"
)


@pytest.fixture
def prefix() -> str:
    if reason := why_not():
        pytest.skip(reason)
    return f"hybrid-t{os.getpid()}"


def listening(host: Host, address: str) -> subprocess.Popen[bytes]:
    command = host.command([sys.executable, "-c", _LISTEN, address])
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.stdout.close()
    return process


def reaches(host: Host, address: str) -> bool:
    with entered(host):
        try:
            socket.create_connection((address, 7000), timeout=2).close()
        except OSError:
            return False
        return True


def test_hosts_reach_each_other_by_their_addresses_only(prefix: str) -> None:
    with network(prefix, "10.78.0", ["one", "other"]) as hosts:
        one, other = hosts["one"], hosts["other"]
        process = listening(one, one.address)
        assert one.pids() == [process.pid]
        assert reaches(other, one.address) and reaches(one, one.address)
        one.kill()
        assert process.wait(timeout=5) < 0 and not reaches(other, one.address)
        process = listening(one, "127.0.0.1")
        assert reaches(one, "127.0.0.1") and not reaches(other, "127.0.0.1") and not reaches(other, one.address)
        with pytest.raises(BlockingIOError), network(prefix, "10.78.0", []):
            raise AssertionError("one network with a name at a time")
    assert process.wait(timeout=5) < 0, "what ran on a host has ended"
    assert not [*Path("/run/netns").glob(f"{prefix}-*")]


def test_what_a_killed_run_left_is_removed(prefix: str) -> None:
    left = [f"{prefix}-bridge", f"{prefix}-one"]
    for name in left:
        subprocess.run(["ip", "netns", "add", name], check=True)
    process = subprocess.Popen(Host(left[1], "").command(["sleep", "60"]))
    with network(prefix, "10.78.0", ["one"]) as hosts:
        assert process.wait(timeout=5) < 0 and hosts["one"].pids() == []
    remove(prefix)
    assert not [*Path("/run/netns").glob(f"{prefix}-*")]
