"""The application over an empty home, and over one with the table orders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.progress import Silent
from tests.mirrors import new_url
from tests.s3_server import S3Server, s3_server
from tests.serve.app import App, Worker, lay_orders


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Over an empty home."""
    made = App(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def orders(app: App) -> App:
    """Over a home with the table orders."""
    lay_orders(app.home)
    return app


@pytest.fixture
def working(app: App, workbench: CommitContext) -> Iterator[App]:
    """Over an empty home whose queued work is carried out."""
    vars(app.home)["bench"] = CommitContext(lambda: workbench.spark, app.home.context.now_ms, Silent())
    with Worker(app.home):
        yield app


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A store, which the environment of all servers of a test names."""
    with s3_server(tmp_path / "s3" / "store") as found:
        found.create_bucket("bucket")
        for name, value in {**found.environment, "HYBRID_WAREHOUSE": new_url()}.items():
            monkeypatch.setenv(name, value)
        yield found
