"""Homes whose warehouse is on a real server of stores, without the processes of a product's server."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.lake.create import create_half
from hybrid.lake.log import open_half
from hybrid.lake.store_log import settle
from hybrid.store.mirror import Mirror, configure, mirror_at
from hybrid.store.ownership import WarehouseOwner
from hybrid.table.state import Act, RealtimeState
from tests.every_type import every_type


@dataclass(frozen=True)
class Writer:
    """A home's warehouse folder beside a store, with the half REALTIME of a table `t`."""

    folder: Path
    url: str
    owner: WarehouseOwner

    @classmethod
    def at(cls, folder: Path, url: str, owner: str = "a") -> Writer:
        writer = cls(folder, url, WarehouseOwner(owner * 32, f"host:{owner}"))
        configure(folder, None, lambda: writer.owner)  # as in another process: nothing is known of the store
        configure(folder, url, lambda: writer.owner)
        return writer

    @property
    def half(self) -> Path:
        return self.folder / "t" / "REALTIME"

    @property
    def mirror(self) -> Mirror:
        mirror = mirror_at(self.folder)
        assert mirror is not None
        return mirror

    def create(self) -> Writer:
        first = RealtimeState(Act("create-0", 0, "create", "x"))
        create_half(self.half, every_type(), Half.REALTIME, first)
        return self

    def settle(self) -> None:
        settle(self.mirror, self.half)

    def segments(self) -> list[str]:
        return sorted(file.segment for file in open_half(self.half).files)

    @property
    def table_url(self) -> str:
        return f"{self.url}/{self.mirror.key_of(self.half)}"


def new_url(kind: str = "s3") -> str:
    return f"{kind}://bucket/{uuid.uuid4().hex}"
