"""Recipes on a cluster: results at the server that writes, and the same at those that follow."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(900)]


def test_it_starts(running: Cluster) -> None:
    print(running.writer().name, running.writer().ok("GET", "/readyz"))
    for server in running.servers.values():
        print(server.name, server.pids("java"), server.ok("GET", "/tables"))
