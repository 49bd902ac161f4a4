"""The warehouse's store during a purge: it is read and cleared as the mirror is (docs/adr/0072).

`bring` makes the mirror as the store is, so that each reading of it is one of the store. What the purge removes from
files and logs it removes there itself. Here is the rest: what no list of objects shows, and what only the store has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError
from hybrid.lake import plans
from hybrid.lake.checkpoint import HINT
from hybrid.lake.failpoints import step
from hybrid.lake.lacking_rows import lacking_of_plans, staged_prefix
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.plan_store import publish_plans
from hybrid.lake.staging import owned_names
from hybrid.lake.store_log import align
from hybrid.lake.store_refresh import HalfObjects, bring_lacking, has_same_bytes, refresh_log, remove_pull_leftovers
from hybrid.lake.table_context import TableContext
from hybrid.lake.unneeded_plans import remove_unneeded
from hybrid.replace.purge.log_statistics import gone_from, tells, without_gone
from hybrid.replace.purge.remove import UNKNOWN_FOR_S, is_old
from hybrid.replace.purge.report import StoreReading
from hybrid.store.mirror import DEFINITION_FILE, Mirror, for_all, half_keys, mirror_at
from hybrid.store.object_versions import NULL, ObjectVersions
from hybrid.store.plan_files import DOCUMENTS, PLAN_FILE
from hybrid.store.published_definition import publish_definition, published_table
from hybrid.store.published_plans import LIST_ENDING
from hybrid.store.store_client import ListedObject
from hybrid.store.store_location import StoreKind

_CHECKSUM = re.compile(r"(\d{20})\.crc")
_HALF_FOLDER = re.compile(r"[A-Z]+-[0-9a-f]{8}")
# Written again and again beside a purge, and without values of rows: the hint, definitions, lists of plans.
_WITHOUT_VALUES = (HINT, DEFINITION_FILE, LIST_ENDING)
_LATER = (
    "Delete the rows (hybrid backfill). Vacuum removes their files once the revert window has passed; they are gone "
    "for good when the retention of the store itself (soft delete, older versions) has passed after that."
)


class PurgedStore:
    """The store of a table during its purge. Its methods raise StoreError when the store does not answer.

    `unknown_for_s`: the age, seconds, from which an upload that has not ended is taken for one of a crash.
    """

    def __init__(self, table: TableContext, mirror: Mirror, unknown_for_s: float = UNKNOWN_FOR_S) -> None:
        self._table, self._mirror, self._unknown_for_s = table, mirror, unknown_for_s
        self._listed: list[ListedObject] = []
        self._objects: dict[Half, HalfObjects] = {}
        self._versioning = ""
        self._brought = self._versions_deleted = self._uploads_aborted = 0
        self._seen = set[str]()

    @classmethod
    def of(cls, table: TableContext) -> PurgedStore | None:
        """The store of a table; None in a warehouse of local folders."""
        mirror = mirror_at(table.layout.root)
        return None if mirror is None else cls(table, mirror)

    def require_provable(self) -> None:
        """ConflictError where another home writes, and where removed values could stay. Nothing is changed."""
        self._mirror.require_writable(is_recent_enough=False)
        name, url = self._table.name, self._mirror.url
        if self._mirror.client.location.kind is not StoreKind.S3:
            raise ConflictError(
                f"Rows of '{name}' cannot be removed for good from {url}: whether soft delete keeps what was deleted "
                "cannot be seen from here. Nothing was changed.",
                hint=_LATER,
            )
        if retention := self._versions.retention():
            raise ConflictError(
                f"Rows of '{name}' cannot be removed for good from {url}: object lock keeps each object for "
                f"{retention}. Nothing was changed.",
                hint="Remove the bucket's default retention; purge again when it has passed for the newest object.",
            )
        self._versioning = self._versions.versioning()
        older = self._versions.kept(self._name).older
        self._versions.unfinished(self._name)  # a right that lacks is an error before anything is changed, too
        nameless = [version for version in older if version.version == NULL and self._versioning == "Suspended"]
        if first := next(iter(nameless), None):
            raise ConflictError(
                f"Rows of '{name}' cannot be removed for good from {url}: versioning of the bucket is suspended, and "
                f"it keeps a version of {first.key} from before it was on, which has no id of its own. Nothing was "
                "changed.",
                hint="Switch versioning on, or let a lifecycle rule remove noncurrent versions; then run it again.",
            )

    def clear_plans(self) -> None:
        """Remove objects of plans that nobody needs: rows of ended plans, and what crashed operations have left.

        Parts of their files here that a killed download left go, too, when they are an hour old.

        The plans are listed first: the store may not have the end of one yet, and its rows stay until then.
        """
        for path in self._cut_downloads():
            if is_old(path):
                path.unlink(missing_ok=True)
        publish_plans(self._table.layout)
        published = published_table(self._mirror, self._name)
        if published is not None:
            remove_unneeded(self._mirror, published)

    def bring(self) -> None:
        """Make the mirror's halves as the store has them, with all files that it has of them, whatever names them."""
        with ExitStack() as locks:
            for half in self._halves:
                locks.enter_context(self._table.lock(half, with_spark=False))
            for half in self._halves:
                remove_pull_leftovers(self._table.layout.half(half))
                align(self._mirror, self._table.layout.half(half))
            self._list()
            for half in self._halves:
                path, objects = self._table.layout.half(half), self._objects[half]
                self._brought += refresh_log(self._mirror, path, objects) + bring_lacking(self._mirror, path, objects)
        self._seen |= {item.key for item in self._listed}

    def _list(self) -> None:
        self._listed = self._mirror.client.list_below(self._name)
        for half in self._halves:
            self._objects[half] = HalfObjects.of(self._mirror, self._table.layout.half(half), self._listed)

    def mask_rest(self, entry: Callable[[str], str], document: Callable[[str], str]) -> int:
        """Mask what only the store has: entries that were cleaned here, documents of plans. How many had something."""
        self._list()
        count = 0
        for half in self._halves:
            path = self._table.layout.half(half)
            with self._table.lock(half, with_spark=False):
                keys = [self._objects[half].log[name].key for name in self._lone_entries(path)]
                count += sum(self._changed(key, entry) for key in keys)
        return count + sum(self._changed(key, document) for key in self._differing_plans(DOCUMENTS))

    def _changed(self, key: str, change: Callable[[str], str]) -> bool:
        """Give an object the text that `change` makes of its own. Whether that is another one."""
        was_changed = False

        def changed(text: str) -> str:
            nonlocal was_changed
            fresh = change(text)
            was_changed |= fresh != text
            return fresh

        self._mirror.rewrite_text(key, changed)
        return was_changed

    def remove_rest(self, halves: Mapping[Half, HalfSnapshot]) -> None:
        """Remove what a purge of the mirror does not meet: see `left`."""
        for half in halves:
            path = self._table.layout.half(half)
            with self._table.lock(half, with_spark=False):
                current = self._table.half(half)
                self._clear_log(path, current)
        for key in self._differing_plans():
            self._mirror.rewrite_text(key, plans.text_without_samples)
        self.remove_versions()

    def remove_versions(self) -> None:
        """Delete the versions of the table's objects that are not current, and parts of uploads that did not end.

        Then the delete markers of what has no version any more.
        """
        self._mirror.ownership.require(is_recent_enough=False)
        older = self._versions.kept(self._name).older  # the table's definition has the last name below it
        step("purge.versions")
        self._versions.delete_all(older)
        self._versions_deleted += len(older)
        self._versions.delete_all(self._versions.kept(self._name).lone_markers)
        uploads = self._versions.unfinished(self._name)
        if uploads:
            before_s = self._mirror.client.time().store_s - self._unknown_for_s
            ended = [upload for upload in uploads if upload.began.timestamp() < before_s]
            for_all(self._versions.abort, ended)
            self._uploads_aborted += len(ended)

    def left(self, halves: Mapping[Half, HalfSnapshot]) -> tuple[str, ...]:
        """What the store still has that may hold values and that the mirror does not show, as phrases."""
        kept = self._versions.kept(self._name)
        older, markers = (version.key for version in kept.older), (version.key for version in kept.lone_markers)
        return (
            *(f"an older version of {key}" for key in older if not key.endswith(_WITHOUT_VALUES)),
            *(f"a delete marker of {key}" for key in markers if not key.endswith(_WITHOUT_VALUES)),
            *(
                f"parts of an upload of {upload.key} that did not end"
                for upload in self._versions.unfinished(self._name)
            ),
            *(name for half, current in halves.items() for name in self._left_in_log(half, current)),
            *(f"rows in {key}, which this home lacks (hybrid warehouse sync)" for key in self._lacking_rows()),
            *(f"a part of {path.name}, which is being brought, or was" for path in self._cut_downloads()),
            *(f"samples in {key}" for key in self._differing_plans() if self._has_samples(key)),
        )

    def announce(self, purge_id: str) -> None:
        """Let homes that follow remove what the purge has removed: they read the table's definition."""
        publish_definition(self._mirror, self._table.layout.root, purge=purge_id)
        step("purge.announced")

    def reading(self) -> StoreReading:
        """What was read and removed."""
        there = {item.key for item in self._listed}
        prefixes = tuple(f"{self._mirror.key_of(self._table.layout.half(half))}/" for half in self._halves)
        deleted = sum(key.startswith(prefixes) for key in self._seen - there)
        return StoreReading(
            url=f"{self._mirror.url}/{self._name}",
            objects=len(self._listed),
            bytes=sum(item.size for item in self._listed),
            brought=self._brought,
            deleted=deleted,
            versioning=self._versioning,
            versions_deleted=self._versions_deleted,
            uploads_aborted=self._uploads_aborted,
        )

    def outside(self, known: set[str]) -> Iterator[str]:
        """The places around the store that a purge does not reach, in words. `known`: see `folders_of_nobody`."""
        for name in self.folders_of_nobody(known):
            yield f"{self.words_of_folder(name)}: whoever runs the store removes it"
        yield (
            "servers that follow the store drop what was removed within seconds, or when they start; homes that only "
            "pull it with the next hybrid warehouse pull. Their own logs of statements, and their copies of tables "
            "that were dropped, stay"
        )
        yield (
            "homes that wrote the warehouse before: their disks, and files that one which was frozen uploads when it "
            "wakes up; purge again then"
        )

    def folders_of_nobody(self, known: set[str]) -> list[str]:
        """The folders of halves on the store that neither the table nor, by their names `known`, a copy has."""
        mine = set(half_keys(self._table.layout.root).values()) | known
        folders = (folder.rpartition("/")[2] for folder in self._mirror.client.list_folder(self._name).folders)
        return sorted(name for name in folders if _HALF_FOLDER.fullmatch(name) and name not in mine)

    def words_of_folder(self, name: str) -> str:
        """What a folder is that `folders_of_nobody` returned, as a phrase."""
        return (
            f"{self._mirror.url}/{self._name}/{name}, a half of a table of this name that was dropped, of which this "
            "home has no copy"
        )

    def remove_folder(self, name: str) -> None:
        """Remove the folder of a half that `folders_of_nobody` returned, with its plans and its archive."""
        self._mirror.delete_halves(self._name, [name])

    @property
    def _halves(self) -> list[Half]:
        return [half for half in (Half.OFFLINE, Half.REALTIME) if half in self._table.spec.halves]

    @property
    def _name(self) -> str:
        return self._table.layout.root.name

    @cached_property
    def _versions(self) -> ObjectVersions:
        return ObjectVersions(self._mirror.client)

    def _clear_log(self, half: Path, current: HalfSnapshot) -> None:
        """Remove checksums of old versions, and values in entries that the mirror does not have."""
        objects, is_gone = self._objects[Half(half.name)], gone_from(current)
        for name in self._lone_entries(half):
            key = objects.log[name].key
            self._mirror.rewrite_text(key, lambda text: without_gone(text, is_gone))
        checksums = [
            item.key
            for name, item in objects.log.items()
            if (match := _CHECKSUM.fullmatch(name)) and int(match[1]) < current.version
        ]
        for_all(self._mirror.client.delete, checksums)

    def _left_in_log(self, half: Half, current: HalfSnapshot) -> Iterator[str]:
        objects, is_gone = self._objects[half], gone_from(current)
        for name in self._lone_entries(current.path):
            content = self._mirror.client.get(objects.log[name].key)
            if content is not None and tells(content.data.decode(), is_gone):
                yield f"values in {objects.log[name].key}"
        known = {*objects.entries, *objects.checkpoints, HINT}
        for name, item in objects.log.items():
            match = _CHECKSUM.fullmatch(name)
            if name not in known and (match is None or int(match[1]) < current.version):
                yield f"{item.key}, which is no file of a log"

    def _lone_entries(self, half: Path) -> list[str]:
        """Entries of the store's log that the mirror has not: a crash left them below the log when it was cleaned."""
        return [name for name in self._objects[Half(half.name)].entries if not (half / "_delta_log" / name).exists()]

    def _differing_plans(self, documents: Sequence[str] = (PLAN_FILE,)) -> list[str]:
        """The keys of documents of plans on the store, of these names, that are not as they are here, or may be not."""
        place = staged_prefix(self._name, self._table.layout.root)
        if place is None:
            return []
        prefix = f"{place}/"
        endings = tuple(f"/{name}" for name in documents)
        items = (item for item in self._listed if item.key.startswith(prefix) and item.key.endswith(endings))
        folder = self._table.layout.plans
        return [item.key for item in items if not has_same_bytes(folder / item.key.removeprefix(prefix), item)]

    def _cut_downloads(self) -> list[Path]:
        """Parts of files of plans here: no lock says whether a sync is bringing them."""
        return sorted(self._table.layout.plans.rglob("*.parquet.*.part"))

    def _lacking_rows(self) -> list[str]:
        """The keys of staged rows that the mirror lacks, and so no reading of it has seen."""
        layout, name = self._table.layout, self._name
        busy = owned_names(layout.root / "staging")
        lacking = set(lacking_of_plans(name, layout.root, (item.key for item in self._listed), busy))
        prefix = staged_prefix(name, layout.root)
        if not lacking or prefix is None:
            return []
        # Since they were listed, an operation that has ended may have removed what it had staged.
        return sorted(lacking & {item.key for item in self._mirror.client.list_below(prefix)})

    def _has_samples(self, key: str) -> bool:
        content = self._mirror.client.get(key)
        text = "" if content is None else content.data.decode()
        return bool(text) and plans.text_without_samples(text) != text
