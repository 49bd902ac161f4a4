"""Queries over the tables of a home: from the files, or from a server's cache."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from hybrid.errors import NO_SUCH_TABLE, QueryError
from hybrid.operations.catalog_statements import answer_from_definitions
from hybrid.operations.statement_tables import refuse_remote

if TYPE_CHECKING:
    from hybrid.config.connectors import Connector
    from hybrid.home.home import Home
    from hybrid.home.query_log import QueryRecord
    from hybrid.home.table_ref import TableRef
    from hybrid.query.cache.cache_reader import CachedAnswers
    from hybrid.query.cache.follower import StreamStatus
    from hybrid.query.engine import QueryOptions, QueryResult
    from hybrid.query.explain import Explanation
    from hybrid.query.result import QueryStats
    from hybrid.query.revision import Revision
    from hybrid.query.views.view import TableView
    from hybrid.sql.parameters import Parameters
    from hybrid.table.boundary import TopicPartition

# A revision or its text, or a time: ISO 8601 text, a datetime with a zone, or epoch milliseconds.
AsOfText: TypeAlias = "str | int | datetime | Revision"


def record_answer(record: QueryRecord, result: QueryResult, rows: int | None = None) -> None:
    """Write a result into the query log; `rows` where they went to a file or a stream."""
    details = partial(_details, result.source, result.revision, result.stats)  # without the rows
    record.answered(len(result.rows) if rows is None else rows, details)


def _details(source: str, revision: Revision, stats: QueryStats) -> Mapping[str, object]:
    return {
        "source": f"{source}+stream" if stats.tail_rows else source,
        "tables": [table.table for table in revision.tables],
        "segments": stats.num_segments_processed,
        "bytes": stats.bytes_read,
        "revision": str(revision),
    }


class Queries:
    """Answers statements over the tables of a home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._cached: CachedAnswers | None = None

    def query(self, sql: str, options: QueryOptions | None = None, *, as_of: AsOfText | None = None) -> QueryResult:
        """Answer a statement from one revision, including rows in Kafka that are not committed yet."""
        from hybrid.query.engine import QueryOptions, run

        used_options = options or QueryOptions()
        text = used_options.as_of if as_of is None else str(as_of)
        if text is None and used_options.sink is None and not used_options.params:
            answer = answer_from_definitions(self._home, sql)
            if answer is not None:
                return answer
        with self._naming_remote(sql, used_options.params):
            return run(sql, _Source(self._home), replace(used_options, cache=self._cached, as_of=text))

    def query_at_once(self, sql: str, options: QueryOptions) -> QueryResult | None:
        """Answer from the cache if that needs no waiting; None: use `query`."""
        from hybrid.query.engine import run_at_once

        return run_at_once(sql, replace(options, cache=self._cached))

    def serve_from_memory(self, bytes_max: int) -> None:
        """Keep the tables in a cache of at most `bytes_max` bytes from now on."""
        from hybrid.query.cache.cache import Cache
        from hybrid.query.cache.cache_reader import CachedAnswers

        settings = self._home.settings
        cache = Cache(_Source(self._home), settings.warehouse, bytes_max=bytes_max, spill=settings.spill)
        cache.follow_all()
        self._cached = CachedAnswers(cache)

    @property
    def has_cache(self) -> bool:
        """Whether statements are answered from memory."""
        return self._cached is not None

    def cached_sizes(self) -> Sequence[tuple[str, int, int]]:
        """The sizes of the cache: bytes in memory and on disk, by kind. Empty without `serve_from_memory`."""
        return () if self._cached is None else self._cached.sizes()

    def cached_streams(self) -> Mapping[str, StreamStatus]:
        """How the streams of the cached tables are read, by table. Empty without `serve_from_memory`."""
        return {} if self._cached is None else self._cached.streams()

    def explain(
        self,
        sql: str,
        *,
        as_of: AsOfText | None = None,
        options: QueryOptions | None = None,
        params: Parameters | None = None,
    ) -> Explanation:
        """How a statement would be answered: revision, boundary, segments read and pruned, SQL per half."""
        from hybrid.query.engine import QueryOptions, explain

        text = None if as_of is None else str(as_of)
        used_options = replace(options or QueryOptions(params=params), as_of=text, cache=self._cached)
        with self._naming_remote(sql, used_options.params):
            return explain(sql, _Source(self._home), used_options)

    @contextmanager
    def _naming_remote(self, sql: str, params: Parameters | None) -> Iterator[None]:
        """For the error of a table that does not exist: NotFoundError if it is remote, with its servers."""
        try:
            yield
        except QueryError as error:
            if error.pinot_code == NO_SUCH_TABLE:
                refuse_remote(self._home, sql, params)
            raise


class _Source:
    """The tables of a home as the query engine's source of tables."""

    def __init__(self, home: Home) -> None:
        self._home = home
        # Each table's connectors with the stamp of its definition: a statement needs both.
        self._connectors: dict[str, tuple[Hashable, tuple[Connector, ...]]] = {}

    def names(self) -> list[str]:
        return self._home.table_names()

    def stamp(self, name: str) -> Any:
        stamp = self._home.definitions.stamp(name)
        if stamp is None:
            return stamp
        entry = self._connectors.get(name)
        if entry is None or entry[0] != stamp:
            entry = self._connectors[name] = stamp, self._home.spec(name).connectors
        # A pause changes which rows are visible.
        offsets = self._stop_at(name, entry[1])
        return stamp, None if offsets is None else tuple(sorted(offsets.items()))

    def open(self, name: str) -> Any:
        from hybrid.query.engine import QueryTable

        spec = self._home.spec(name)
        brokers = spec.stream.brokers if spec.stream else None
        return QueryTable(spec, self._home.layout(name), brokers, self._stop_at(name, spec.connectors))

    def _stop_at(self, name: str, connectors: tuple[Connector, ...]) -> Mapping[TopicPartition, int] | None:
        if not connectors:  # most tables have none, and importing the catalog takes longer than a query
            return None
        from hybrid.operations.connectors.progress import pause_offsets

        return pause_offsets(self._home, name, connectors)


def view_table(
    table: TableRef, engine: str, now_ms: int, as_of: AsOfText | None = None, timeout_ms: int | None = None
) -> TableView:
    """A table at one revision as Python code for `spark`, `duckdb` or `polars`."""
    from hybrid.query.query_table import QueryTable
    from hybrid.query.views.view import table_view

    brokers = table.spec.stream.brokers if table.spec.stream else None
    queried = QueryTable(table.spec, table.layout, brokers)
    return table_view(queried, engine, now_ms, None if as_of is None else str(as_of), timeout_ms=timeout_ms)
