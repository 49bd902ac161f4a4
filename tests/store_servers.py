"""Real servers of each protocol that a warehouse's store can speak."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests import azure_server, google_server, s3_server

KINDS = ("s3", "az", "gs")
# For tests that need a server of S3: mark them with it.
ONLY_S3 = pytest.mark.parametrize("server", ["s3"], indirect=True)
ONLY_AZURE = pytest.mark.parametrize("server", ["az"], indirect=True)
ONLY_GOOGLE = pytest.mark.parametrize("server", ["gs"], indirect=True)


class StoreServer(Protocol):
    """A server with buckets. `kind` is the scheme of its URLs."""

    @property
    def kind(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def environment(self) -> dict[str, str]:
        """The variables of somebody who may write."""

    @property
    def options(self) -> dict[str, str]:
        """The same as storage options of delta-rs."""

    def environment_at(self, address: str) -> dict[str, str]:
        """Variables that name another address, whose requests a proxy may change."""

    def create_bucket(self, name: str) -> None: ...


@contextmanager
def store_server(kind: str, folder: Path) -> Iterator[StoreServer]:
    """A server of a protocol with an empty bucket `bucket`. The test is skipped where its program is not installed."""
    if kind == "s3":
        if s3_server.COMMAND is None:
            pytest.skip("versitygw is not there (go install github.com/versity/versitygw/...)")
        opened = s3_server.s3_server(folder / "store")
    elif kind == "az":
        if azure_server.COMMAND is None:
            pytest.skip("azurite-blob is not there (npm install azurite)")
        opened = azure_server.azure_server(folder)
    else:
        if google_server.COMMAND is None:
            pytest.skip("fake-gcs-server is not there (go install github.com/fsouza/fake-gcs-server@v1.56.1)")
        opened = google_server.google_server(folder)
    with opened as server:
        server.create_bucket("bucket")
        yield server


def clear_environment(patch: pytest.MonkeyPatch, names: list[str]) -> None:
    """Remove the variables of stores from the environment for a test; `names` are all of it."""
    for name in names:
        if name.startswith(("AWS_", "AZURE_", "AZURITE_", "GOOGLE_")) or name == "SERVICE_ACCOUNT":
            patch.delenv(name)
