"""The cluster of the tests in this folder that are marked `cluster`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.cluster.network import why_not
from tests.postgresql import IS_INSTALLED
from tests.s3_server import COMMAND


@pytest.fixture(scope="session")
def running() -> Iterator[Cluster]:
    """A cluster for all tests. Skipped where there can be no hosts, or where PostgreSQL or versitygw is missing."""
    reason = why_not()
    if reason is None and not IS_INSTALLED:
        reason = "PostgreSQL is not installed (apt-get install postgresql)"
    if reason is None and COMMAND is None:
        reason = "versitygw is not there (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)"
    if reason is not None:
        pytest.skip(reason)
    with cluster() as found:
        yield found
