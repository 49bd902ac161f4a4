"""The places that an erasure does not reach, and who must act there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.operations.erasure_texts import kept_texts
from hybrid.operations.purge import copies_on_store, leftovers, purged_store
from hybrid.operations.tables.drop import dropped_copies
from hybrid.progress import counted

if TYPE_CHECKING:
    from hybrid.catalog.erasures import ErasedTable
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.sql.redaction import Redaction

_BROKER = (
    "whoever runs the broker: retention removes messages, a tombstone those of a key on a compacted topic, "
    "kafka-delete-records all before an offset"
)
_CONFIGURATION = "whoever runs this home: change the filter, the path or the definition, and reset the progress"
_RUNS_MAX = 10_000
_RUN = "the arguments of a run that is queued or runs: it is still to be carried out"
_COPY = "a dropped copy without such rows: values of deleted files in its logs, and what statements have left in it"
_DATABASE = "former rows of the catalog: in the database's log, backups and replicas, and in its files until its VACUUM"
# What no table can tell of. Each: place, detail, who must act.
_ALWAYS = (
    (
        "messages that arrive later",
        "whatever is sent, replayed, or read again after a reset is ingested as any other message",
        "whoever sends them; erase again when it has happened",
    ),
    (
        "input files",
        "files that jobs, backfills, connectors and flows have read, or will read again",
        "whoever keeps them",
    ),
    (
        "digests of plain purges",
        "condition_sha256 of purges by other conditions: unsalted, so a condition on the same person can be guessed",
        "whoever runs this home",
    ),
    ("exports", "results that users wrote to files with -o or through HTTP, and plans written with -o", "each user"),
    ("histories", "statements that users typed: in `hybrid shell`, in the system's shell", "each user"),
    (
        "backups",
        "backups from before (hybrid backup list DIR), copies of the home, snapshots, versions of objects",
        "whoever keeps them: hybrid backup delete, also with --surplus; erase again in what is restored from them",
    ),
    (
        "readers",
        "rows that other engines, notebooks and dashboards keep; servers of this home rebuild theirs by themselves",
        "whoever runs them",
    ),
    (
        "later statements",
        "statements that still run or are asked later, which the query log gets with their values",
        "whoever asks them; query_log_values = false leaves values out",
    ),
    (
        "statements by other values",
        "logs, lineage and errors that name the person by values that the condition does not have",
        "whoever runs this home",
    ),
    (
        "temporary files",
        "what Spark keeps of a step in the machine's temporary folder: it goes with the process",
        "whoever runs this home",
    ),
    ("free blocks of the disk", "bytes of deleted files until they are written over", "whoever runs the machine"),
)


def outside_places(
    home: Home, tables: Sequence[ErasedTable], words: Sequence[str], redaction: Redaction
) -> tuple[Mapping[str, str], ...]:
    """All places that may still hold the person's values. `words` are what the purges did not reach."""
    places = [place for table in tables for place in _of_kafka(home.table(table.table), table)]
    places += [place for table in tables for place in _of_markers(home.table(table.table), table)]
    kept = kept_texts(home, [table.table for table in tables], redaction)
    places += [_place(str(path), what, _CONFIGURATION) for path, what in kept]
    runs = home.catalog.runs.list(states=("QUEUED", "RUNNING"), limit=_RUNS_MAX)
    telling = (run for run in runs if redaction.is_in(dict(run.arguments)))
    places += [_place(f"run '{run.id}'", _RUN, "whoever queued it; erase again when it has ended") for run in telling]
    if (broker := home.folder / "kafka").is_dir():
        places.append(_place(str(broker), "messages of the local broker", _BROKER))
    places += [_place(str(path), what, "whoever runs this home") for path, what in leftovers(home).items()]
    copies = (path for table in tables for path in dropped_copies(home, table.table))
    places += [_place(str(path), _COPY, "whoever runs this home: hybrid table drop COPY --purge") for path in copies]
    places += [place for table in tables for place in _of_store(home, home.table(table.table))]
    if (database := home.catalog.server_url) is not None:
        places.append(_place(database, _DATABASE, "whoever runs the database"))
    places += [_place("not examined", text, "whoever runs this home; erase again afterwards") for text in words]
    return (*places, *(_place(*always) for always in _ALWAYS))


def _of_store(home: Home, ref: TableRef) -> Iterator[Mapping[str, str]]:
    """Homes beside the store of the warehouse, and what only that has of dropped tables."""
    store = purged_store(home, ref.name)
    for words in store.outside(copies_on_store(home, ref.name)) if store is not None else ():
        yield _place(f"the store of '{ref.name}'", words, "whoever runs those homes, or the store")


def _place(place: str, detail: str, who: str) -> Mapping[str, str]:
    return {"place": place, "detail": detail, "who": who}


def _of_kafka(ref: TableRef, table: ErasedTable) -> Iterator[Mapping[str, str]]:
    """The table's topics: which offsets hold matching messages, and what Kafka still keeps."""
    stream = ref.spec.stream
    if stream is None:
        return
    held = _held(ref)
    for message in table.messages:
        count = counted(message["messages"], "message")
        where = f"topic '{message['topic']}', partition {message['partition']}"
        offsets = f"{count} at offsets {message['first']} to {message['last']}"
        yield _place(where, f"{offsets}, of the topic's epoch {message['epoch']}", _BROKER)
    committed = ref.half(Half.REALTIME).realtime.offsets
    below = ", ".join(f"{key.topic}/{key.partition} below {offset}" for key, offset in sorted(committed.items()))
    yield _place(f"{stream.words}", f"{held}; committed here: {below or 'nothing'}", _BROKER)


def _of_markers(ref: TableRef, table: ErasedTable) -> Iterator[Mapping[str, str]]:
    """Delete markers that stay because the condition does not name whole keys."""
    spec = ref.spec
    if spec.upsert is not None and not {*table.columns} <= {*spec.primary_key}:
        key = ", ".join(spec.primary_key)
        yield _place(
            f"delete markers of '{spec.name}'",
            f"keys ({key}) of removed rows: an older version of a key may not match the condition",
            f"whoever erases; a condition on {key} alone removes them too",
        )


def _held(ref: TableRef) -> str:
    from hybrid.kafka.clients import QUERY_TIMEOUT_MS
    from hybrid.kafka.streams import view_stream

    assert ref.spec.stream is not None
    try:
        view = view_stream(ref.spec.stream, QUERY_TIMEOUT_MS)
    except HybridError:
        return "Kafka could not be asked what it holds"
    held = [f"{place} from {view.starts.get(place, 0)} to {end}" for place, end in sorted(view.ends.items())]
    return f"Kafka holds {', '.join(held) or 'nothing'}"
