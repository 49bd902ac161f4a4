"""Homes that follow a warehouse with pinned tables, and tables that certain servers hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.pinning import Pinning
from hybrid.config.settings import load_settings
from hybrid.home.home import Home
from hybrid.progress import Silent
from hybrid.store.store_client import StoreClient

SERVERS = tuple(f"http://127.0.0.1:{port}" for port in (8101, 8102, 8103))


def pinned_home(
    folder: Path,
    url: str,
    own: int,
    *,
    servers: Sequence[str] = SERVERS,
    copies: int = 1,
    together: str = "",
    **more: str,
) -> Home:
    """A home whose server is number `own` of the list; `more` are variables."""
    environ = {
        "HYBRID_WAREHOUSE": url,
        "HYBRID_PINNING_SERVERS": ",".join(servers),
        "HYBRID_PINNING_SELF": servers[own],
        "HYBRID_PINNING_COPIES": str(copies),
        "HYBRID_PINNING_TOGETHER": together,
        **more,
    }
    return Home(load_settings(home=folder, environ=environ), Silent())


def table_on(servers: Sequence[str], *holders: str, other_than: Sequence[str] = ()) -> str:
    """A name of a table that exactly these servers hold, in this order."""
    pinning = Pinning(tuple(servers), servers[0], len(holders))
    return next(
        name
        for name in (f"t{number}" for number in count())
        if pinning.holders(name) == holders and name not in other_than
    )


@contextmanager
def requests_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests to a store of this process, by the names of the client's functions."""
    asked = list[str]()

    def counted(name: str) -> Any:
        real = getattr(StoreClient, name)

        def call(*args: Any, **options: Any) -> Any:
            asked.append(name)
            return real(*args, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("get", "download", "size_of", "list_below", "list_folder", "upload", "upload_file", "delete"):
            patch.setattr(StoreClient, name, counted(name))
        yield asked
