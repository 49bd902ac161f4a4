"""The catalog's tables, and the migration of older catalogs to today's columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import sqlalchemy as sa

_ATTEMPTS = 20
_PAUSE_S = 0.1

METADATA = sa.MetaData()

RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("table_name", sa.String, nullable=False, index=True),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("state", sa.String, nullable=False, index=True),
    sa.Column("created_at", sa.String, nullable=False),
    sa.Column("started_at", sa.String),
    sa.Column("finished_at", sa.String),
    sa.Column("result", sa.String),
    sa.Column("pid", sa.Integer),
    # The work of a server: the API's verb with its arguments as JSON. None: a run of another process.
    sa.Column("verb", sa.String),
    sa.Column("arguments", sa.String),
    sa.Column("source", sa.String),
    sa.Column("attempts", sa.Integer),
    sa.Column("progress", sa.String),
    sa.Column("report", sa.String),
    sa.Column("error", sa.String),
    # Set while a task is incomplete, so that the unique index below allows only one; None afterwards.
    sa.Column("only_one", sa.String),
    # The version of the half that the run commits to, at the time of queueing.
    sa.Column("queued_version", sa.BigInteger),
    sa.Column("dry_run", sa.Boolean),
)
sa.Index("runs_only_one", RUNS.c.only_one, unique=True)
sa.Index("runs_newest", RUNS.c.table_name, RUNS.c.type, RUNS.c.created_at)
sa.Index("runs_created_at", RUNS.c.created_at)

# How many runs have ended so far; their rows go after a while.
RUN_COUNTS = sa.Table(
    "run_counts",
    METADATA,
    sa.Column("table_name", sa.String, primary_key=True),
    sa.Column("type", sa.String, primary_key=True),
    sa.Column("state", sa.String, primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
)

ROLES = sa.Table(
    "roles",
    METADATA,
    sa.Column("role", sa.String, primary_key=True),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("beat_ms", sa.BigInteger, nullable=False),
)

INGESTION = sa.Table(
    "ingestion",
    METADATA,
    sa.Column("table_name", sa.String, primary_key=True),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("detail", sa.String),
    sa.Column("behind", sa.BigInteger),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)

PAUSES = sa.Table(
    "pauses",
    METADATA,
    sa.Column("table_name", sa.String, primary_key=True),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("comment", sa.String),
)

# The desired state of a connector (`paused`; `stop_at`: where its stream ends for now, as JSON), and its current state.
CONNECTORS = sa.Table(
    "connectors",
    METADATA,
    sa.Column("table_name", sa.String, primary_key=True),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("paused", sa.Boolean),
    sa.Column("stop_at", sa.String),
    sa.Column("state", sa.String),
    sa.Column("error", sa.String),
    sa.Column("errors", sa.Integer),
    sa.Column("at_ms", sa.BigInteger),
)

# The trusted reading of the machine's clock (`hybrid.table.clock_trust`), in one row.
CLOCK = sa.Table(
    "clock",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("wall_ms", sa.BigInteger, nullable=False),
    sa.Column("running_ms", sa.BigInteger, nullable=False),
    sa.Column("boot", sa.String, nullable=False),
    sa.Column("doubted_wall_ms", sa.BigInteger),
    sa.Column("doubted_running_ms", sa.BigInteger),
    sa.Column("doubted_boot", sa.String),
    sa.Column("steady_ms", sa.BigInteger, nullable=False),
)

# The home's folder (device:inode): a value that differs from the current folder's indicates a copied catalog.
ORIGIN = sa.Table("origin", METADATA, sa.Column("folder", sa.String, primary_key=True))


def put(engine: sa.Engine, table: sa.Table, key: Mapping[str, object], values: Mapping[str, object]) -> None:
    """Set `values` in the row with that key, which is inserted if it is missing."""
    here = sa.and_(*(table.c[name] == value for name, value in key.items()))
    with engine.begin() as connection:
        if not connection.execute(table.update().where(here).values(**values)).rowcount:
            connection.execute(table.insert().values(**key, **values))


# The columns with texts that people or statements have written.
_FREE_TEXTS = {
    RUNS: ("result", "arguments", "progress", "report", "error"),
    INGESTION: ("detail",),
    PAUSES: ("comment",),
    CONNECTORS: ("error",),
}


def mask(engine: sa.Engine, masked: Callable[[str, str], str]) -> int:
    """Replace free texts by `masked(column, text)`. Returns how many rows changed.

    The arguments of a queued run stay: they are still to be carried out.
    """
    count = 0
    for table, names in _FREE_TEXTS.items():
        keys = list(table.primary_key.columns)
        chosen = [*keys, *(table.c[name] for name in names), *([RUNS.c.state] if table is RUNS else [])]
        with engine.begin() as connection:
            for row in connection.execute(sa.select(*chosen)).mappings().all():
                stays = {"arguments"} if row.get("state") in {"QUEUED", "RUNNING"} else set()
                texts = {name: row[name] for name in names if isinstance(row[name], str) and name not in stays}
                fresh = {name: masked(name, text) for name, text in texts.items()}
                changed = {name: text for name, text in fresh.items() if text != texts[name]}
                if changed:
                    here = sa.and_(*(key == row[key.name] for key in keys))
                    connection.execute(table.update().where(here).values(**changed))
                    count += 1
    return count


def prepare(engine: sa.Engine) -> None:
    """Create missing tables and indexes, and columns that were added since the catalog was created."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            _make(engine)
            return
        except sa.exc.OperationalError:  # another process created the same thing after our check
            if not attempts_left:
                raise
            time.sleep(_PAUSE_S)


def _make(engine: sa.Engine) -> None:
    METADATA.create_all(engine)
    there = sa.inspect(engine)
    for table in METADATA.sorted_tables:
        present_columns = {column["name"] for column in there.get_columns(table.name)}
        missing = [column for column in table.columns if column.name not in present_columns]
        indexed = {index["name"] for index in there.get_indexes(table.name)}
        if not missing and all(index.name in indexed for index in table.indexes):
            continue
        with engine.begin() as connection:
            for column in missing:
                kind = column.type.compile(engine.dialect)
                connection.execute(sa.text(f'ALTER TABLE "{table.name}" ADD COLUMN "{column.name}" {kind}'))
            for index in table.indexes:
                index.create(connection, checkfirst=True)
