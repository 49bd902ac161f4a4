"""The catalog's tables, and the migration of older catalogs to today's columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

_ATTEMPTS = 20
_PAUSE_S = 0.1

# PostgreSQL: the channel that tells of writes, with the schema as payload; the setting of a session that says as which
# owner it writes; the SQLSTATE of a write by another one; and the lock of whoever changes the tables or the owner.
CHANNEL, OWNER_SETTING, OWNER_LOST, _LOCK = "hybrid_catalog", "hybrid.owner", "HYB01", 0x6879_6272
_TRIGGER = "hybrid_catalog_written"
# A session without the setting, such as a person's, may write.
_WRITTEN = f"""
DECLARE writer text := current_setting('{OWNER_SETTING}', true);
BEGIN
  IF TG_TABLE_NAME <> 'origin' AND writer <> '' THEN
    IF NOT EXISTS (SELECT FROM origin WHERE starts_with(folder, writer || ' ')) THEN
      RAISE EXCEPTION 'the catalog has another owner' USING ERRCODE = '{OWNER_LOST}';
    END IF;
  END IF;
  PERFORM pg_notify('{CHANNEL}', TG_TABLE_SCHEMA);
  RETURN NULL;
END
"""

METADATA = sa.MetaData()


class _Text(sa.TypeDecorator[str]):
    """A text. PostgreSQL's hold no NUL, which messages of errors may quote from data."""

    impl, cache_ok = sa.String, True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """The text as the database takes it."""
        return value if value is None or "\x00" not in value else value.replace("\x00", "\N{REPLACEMENT CHARACTER}")


RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", _Text, primary_key=True),
    sa.Column("table_name", _Text, nullable=False, index=True),
    sa.Column("type", _Text, nullable=False),
    sa.Column("state", _Text, nullable=False, index=True),
    sa.Column("created_at", _Text, nullable=False),
    sa.Column("started_at", _Text),
    sa.Column("finished_at", _Text),
    sa.Column("result", _Text),
    sa.Column("pid", sa.Integer),
    # The work of a server: the API's verb with its arguments as JSON. None: a run of another process.
    sa.Column("verb", _Text),
    sa.Column("arguments", _Text),
    sa.Column("source", _Text),
    sa.Column("attempts", sa.Integer),
    sa.Column("progress", _Text),
    sa.Column("report", _Text),
    sa.Column("error", _Text),
    # Set while a task is incomplete, so that the unique index below allows only one; None afterwards.
    sa.Column("only_one", _Text),
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
    sa.Column("table_name", _Text, primary_key=True),
    sa.Column("type", _Text, primary_key=True),
    sa.Column("state", _Text, primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
)

ROLES = sa.Table(
    "roles",
    METADATA,
    sa.Column("role", _Text, primary_key=True),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("state", _Text, nullable=False),
    sa.Column("beat_ms", sa.BigInteger, nullable=False),
)

INGESTION = sa.Table(
    "ingestion",
    METADATA,
    sa.Column("table_name", _Text, primary_key=True),
    sa.Column("state", _Text, nullable=False),
    sa.Column("detail", _Text),
    sa.Column("behind", sa.BigInteger),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)

PAUSES = sa.Table(
    "pauses",
    METADATA,
    sa.Column("table_name", _Text, primary_key=True),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("comment", _Text),
)

# The desired state of a connector (`paused`; `stop_at`: where its stream ends for now, as JSON), and its current state.
CONNECTORS = sa.Table(
    "connectors",
    METADATA,
    sa.Column("table_name", _Text, primary_key=True),
    sa.Column("name", _Text, primary_key=True),
    sa.Column("paused", sa.Boolean),
    sa.Column("stop_at", _Text),
    sa.Column("state", _Text),
    sa.Column("error", _Text),
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
    sa.Column("boot", _Text, nullable=False),
    sa.Column("doubted_wall_ms", sa.BigInteger),
    sa.Column("doubted_running_ms", sa.BigInteger),
    sa.Column("doubted_boot", _Text),
    sa.Column("steady_ms", sa.BigInteger, nullable=False),
)

# The home's folder (device:inode): a value that differs from the current folder's indicates a copied catalog.
ORIGIN = sa.Table("origin", METADATA, sa.Column("folder", _Text, primary_key=True))


def put(engine: sa.Engine, table: sa.Table, key: Mapping[str, object], values: Mapping[str, object]) -> None:
    """Set `values` in the row with that key, which is inserted if it is missing."""
    with engine.begin() as connection:
        put_row(connection, table, key, values)


def put_row(
    connection: sa.Connection,
    table: sa.Table,
    key: Mapping[str, object],
    values: Mapping[str, object],
    changed: Mapping[str, object] | None = None,
) -> None:
    """The same within a transaction; `changed` are the values of a row that is there, where they are others.

    Of processes that insert the row at once, none fails.
    """
    insert: Any
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert
    statement = insert(table).values(**key, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=dict(changed or values)))


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


def lock(connection: sa.Connection) -> None:
    """Let no other process change the tables or the owner of a catalog in PostgreSQL until the transaction ends."""
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


def make_tables(connection: sa.Connection) -> None:
    """`prepare` for PostgreSQL, with triggers, in a transaction that has the `lock`."""
    _make(connection)
    _make_triggers(connection)


def await_writers(connection: sa.Connection) -> None:
    """Wait until no transaction in progress has written to a catalog in PostgreSQL, and let none write meanwhile."""
    names = ", ".join(f'"{table.name}"' for table in METADATA.sorted_tables)
    connection.execute(sa.text(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE"))


def prepare(engine: sa.Engine) -> None:
    """Create missing tables and indexes, and columns that were added since the catalog was created, in SQLite."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            with engine.begin() as connection:
                _make(connection)
            return
        except sa.exc.OperationalError:  # another process created the same thing after our check
            if not attempts_left:
                raise
            time.sleep(_PAUSE_S)


def _make(connection: sa.Connection) -> None:
    METADATA.create_all(connection)
    there = sa.inspect(connection)
    for table in METADATA.sorted_tables:
        present_columns = {column["name"] for column in there.get_columns(table.name)}
        missing = [column for column in table.columns if column.name not in present_columns]
        indexed = {index["name"] for index in there.get_indexes(table.name)}
        if not missing and all(index.name in indexed for index in table.indexes):
            continue
        for column in missing:
            kind = column.type.compile(connection.dialect)
            connection.execute(sa.text(f'ALTER TABLE "{table.name}" ADD COLUMN "{column.name}" {kind}'))
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def _make_triggers(connection: sa.Connection) -> None:
    """Let PostgreSQL notify of whatever is written to the catalog's tables, and refuse writes of a former owner.

    A check by each statement here would cost a question to the database, and the next statement could lack it.
    """
    source = sa.text("SELECT prosrc FROM pg_proc WHERE proname = :name AND pg_function_is_visible(oid)")
    if connection.execute(source, {"name": _TRIGGER}).scalar() != _WRITTEN:
        connection.exec_driver_sql(
            f"CREATE OR REPLACE FUNCTION {_TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS $${_WRITTEN}$$"
        )
    triggers = sa.text(  # of this schema's tables: the database may hold catalogs in others
        "SELECT relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE tgname = :name AND pg_table_is_visible(tgrelid)"
    )
    present = set(connection.execute(triggers, {"name": _TRIGGER}).scalars())
    for name in (table.name for table in METADATA.sorted_tables if table.name not in present):
        connection.execute(
            sa.text(
                f'CREATE TRIGGER {_TRIGGER} AFTER INSERT OR UPDATE OR DELETE ON "{name}" '
                f"FOR EACH STATEMENT EXECUTE FUNCTION {_TRIGGER}()"
            )
        )
