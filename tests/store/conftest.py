from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.s3_server import S3Server, s3_server
from tests.store.s3_proxy import S3Proxy, s3_proxy


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server with an empty bucket `bucket`."""
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without variables of AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def proxy(server: S3Server, environment: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    """A proxy before the server, which the environment names."""
    with s3_proxy(server) as found:
        for name, value in found.environment.items():
            environment.setenv(name, value)
        yield found
