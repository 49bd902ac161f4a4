"""How far the ingestion of each table is behind Kafka, by what it last noted: no broker is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.home.table_ref import TableRef

if TYPE_CHECKING:
    from hybrid.catalog.serving import Ingestion
    from hybrid.home.home import Home

_NOTED_MS_MAX, _NOTED_INTERVALS_MAX = 30_000, 3  # an ingestion that works notes more often


@dataclass(frozen=True)
class TableLag:
    """The offsets in Kafka that a table has not committed (None: unknown).

    `complete_ms` is the newest moment (epoch ms) up to which all that Kafka held is committed, where that is known.
    """

    table: str
    behind: int | None
    complete_ms: int | None = None


def ingestion_lags(home: Home, pinned: Callable[[TableRef], TableRef] = TableRef.pinned) -> list[TableLag]:
    """The lag of every table; unknown where no ingestion has noted it lately. `pinned` as in `overview_of_all`."""
    noted = home.catalog.serving.ingestions()
    since_ms = home.now_ms() - max(_NOTED_MS_MAX, int(_NOTED_INTERVALS_MAX * 1000 * home.settings.ingest_interval_s))
    return [_lag(home, name, noted, since_ms, pinned) for name in home.table_names()]


def _lag(
    home: Home, name: str, noted: Mapping[str, Ingestion], since_ms: int, pinned: Callable[[TableRef], TableRef]
) -> TableLag:
    ingestion = noted.get(name)
    if ingestion is None or ingestion.behind is None or ingestion.at_ms < since_ms:
        return TableLag(name, None)
    if not ingestion.behind:
        return TableLag(name, ingestion.behind)
    try:
        complete_ms = pinned(home.table(name)).half(Half.REALTIME).realtime.complete_ms
    except (HybridError, OSError):  # dropped meanwhile
        complete_ms = None
    return TableLag(name, ingestion.behind, complete_ms)
