"""A purge from its first reading to its proof.

The steps, and the state after a crash in each (the next purge does the rest):
  read every place, decide                            nothing done
  for each half, REALTIME first: one commit rewrites  invisible rows are gone from the current version
  segments without the rows to remove
  the entry in OFFLINE's log                          recorded, though files still exist
  delete the files of old versions that hold such     deleted, one by one
  rows, and before them their values in the log
  read every place again; once more if any such row   done, except for the record
  remains (delete markers are removed last)
  keep the record                                     done

In a warehouse on an object store each removal is made there first, and each reading begins with what the store has:
see `purged_store`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, OvertakenError, StoreError
from hybrid.lake import plans
from hybrid.lake.layout import TableLayout
from hybrid.lake.staging import owned_names
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.replace.purge.places import clear_ended
from hybrid.replace.purge.purged_store import PurgedStore
from hybrid.replace.purge.remove import remove_dead
from hybrid.replace.purge.report import (
    PurgeReading,
    PurgeReport,
    RemovedFile,
    incomplete,
    incomplete_for,
    keep,
    sentence_of,
    store_words,
)
from hybrid.replace.purge.request import PurgeRequest, PurgeScope, require_purgeable
from hybrid.replace.purge.rewrite import is_overridden, refuse_override, tell, write_anew
from hybrid.replace.purge.scan import MatchingRows
from hybrid.replace.purge.survey import Survey, survey
from hybrid.runtime import durable
from hybrid.runtime.file_lock import try_lock

_ROUNDS_MAX, _TRIES_MIN = 6, 2
_LATER = (
    "A file that no version names, or that is not whole, may be about to be committed by another tool; it goes an hour "
    "after it was written. Run it again then, or when less is going on."
)


def purge(table: TableContext, asked: PurgeRequest, outside: Sequence[str] = ()) -> PurgeReport:
    """Removes matching rows that no query shows from every place, and reads all places again.

    ConflictError while a query shows a matching row, while a boundary override is set, or while a plan or an open
    replacement has staged a matching row. Also while another purge of the table runs, or when the purge is not
    complete. SpecError for a table that cannot be purged. A dry run reports what there is. `outside` is added to the
    record. StoreError when the store of the warehouse does not answer: the record says that the purge is not complete.
    """
    offline = table.half(Half.OFFLINE).offline if Half.OFFLINE in table.spec.halves else None
    require_purgeable(table.spec, offline, asked.reads)
    table.bench.require_shared_files("a purge")
    store = None if asked.dry_run else PurgedStore.of(table)
    if store is not None:
        store.require_provable()
    with _alone(table.layout), table.staging(asked.id) as folder:
        return _Work(PurgeScope(table, asked, folder), tuple(outside), store).run()


@contextmanager
def _alone(layout: TableLayout) -> Iterator[None]:
    durable.make_folder(layout.purges)
    with (layout.purges / ".lock").open("a") as file:
        if not try_lock(file, 0.0):
            raise ConflictError("Another purge of the table is running. Nothing was changed.")
        yield


class _Work:
    """One purge in progress, with its running totals. `store` is that of a warehouse on one."""

    def __init__(self, scene: PurgeScope, outside: tuple[str, ...], store: PurgedStore | None) -> None:
        self._scene, self._outside, self._store = scene, outside, store
        self._rows: dict[str, int] = defaultdict(int)
        self._files: list[RemovedFile] = []
        self._samples = 0

    def run(self) -> PurgeReport:
        scene, say = self._scene, self._scene.table.bench.progress.say
        say(f"Reading every file of '{scene.table.name}' for rows that match.")
        if scene.asked.dry_run:
            seen = survey(scene, 0)
            return self._report(seen, (), _would(scene, seen))
        clear_ended(scene.table.layout)
        before = seen = self._look(0)
        _refuse(scene, seen)
        try:
            for number in range(1, _ROUNDS_MAX + 1):
                did_something = self._round(seen, number)
                say("Reading every file again.")
                seen = self._look(number)
                if seen.is_clean or (number >= _TRIES_MIN and not did_something):
                    break
            if self._store is not None:
                self._store.announce(scene.asked.id)
        except StoreError as error:
            keep(scene.table.layout, self._report(before, (), incomplete_for(scene.table.name, error)))
            raise
        return self._ended(before, seen)

    def _look(self, number: int) -> Survey:
        """A reading of every place, of the store too where the warehouse is on one."""
        if self._store is None:
            return survey(self._scene, number)
        self._store.clear_plans()  # also what was killed since the last reading
        self._store.bring()
        seen = survey(self._scene, number)
        return replace(seen, on_store=self._store.left(seen.halves)) if number else seen

    def _round(self, seen: Survey, number: int) -> bool:
        """Removes what the survey found. True when anything was removed, or another commit was first."""
        before = sum(self._rows.values()), len(self._files)
        was_overtaken = not self._rewrite(seen)
        self._remove(seen, is_first=number == 1)
        if self._store is not None:
            self._store.remove_rest(seen.halves)
        return was_overtaken or before != (sum(self._rows.values()), len(self._files))

    def _ended(self, before: Survey, seen: Survey) -> PurgeReport:
        """Keeps the record, also of an incomplete purge, which raises ConflictError."""
        name = self._scene.table.name
        if seen.is_clean:
            sentence = sentence_of(name, self._rows, len(self._files), seen.readings)
            sentence += store_words(self._store.reading()) if self._store is not None else ""
        else:
            sentence = incomplete(name, _left(seen))
        report = self._report(before, seen.readings, sentence, seen)
        keep(self._scene.table.layout, report)
        if not seen.is_clean:
            raise ConflictError(sentence, hint=_LATER)
        _refuse_staged(self._scene, seen)
        return report

    # Operations

    def _rewrite(self, seen: Survey) -> bool:
        """Removes the rows from the current versions. False when another commit was first: look again."""
        for half in (Half.REALTIME, Half.OFFLINE):
            going = [segment for segment in seen.going if segment.half is half]
            if not going:
                continue
            count = sum(segment.goes for segment in going)
            self._scene.table.bench.progress.say(
                f"Writing {counted(len(going), 'segment')} of {half.value} without {counted(count, 'row')}."
            )
            try:
                self._rows[half.value] += write_anew(self._scene, half, seen.halves, seen.hidden, going)
            except OvertakenError:
                self._scene.table.bench.progress.say(
                    f"Another operation on '{self._scene.table.name}' came first; looking again."
                )
                return False
        return True

    def _remove(self, seen: Survey, *, is_first: bool) -> None:
        """Deletes the files of older versions and of crashed operations that hold such rows, and those just replaced.

        It also removes the log's values of files that are already gone, whoever deleted them.
        """
        files = {file.path: file for _, file in seen.found}
        if seen.going or (files and is_first):
            self._tell()
        for half in seen.halves:
            folder = self._scene.table.layout.half(half)
            self._remove_of(half, {path: file for path, file in files.items() if path.is_relative_to(folder)})
        layout = self._scene.table.layout
        self._samples += sum(plans.forget_samples(layout, plan_id) for plan_id in plans.plan_ids(layout))

    def _remove_of(self, half: Half, files: Mapping[Path, MatchingRows]) -> None:
        root = self._scene.table.layout.root
        for path, size in remove_dead(self._scene.table, half, files):
            match = files[path]
            self._files.append(
                RemovedFile(half.value, path.relative_to(root).as_posix(), size, match.rows, match.matching)
            )

    def _tell(self) -> None:
        """Commits the entry after each round that removed rows, because a move may have been planned on them since."""
        half = Half.OFFLINE if Half.OFFLINE in self._scene.table.spec.halves else Half.REALTIME
        tell(self._scene, half, {"removed": dict(self._rows)})

    # Reports

    @cached_property
    def _created_at(self) -> str:
        return self._scene.table.bench.now_iso()

    def _report(
        self, before: Survey, after: tuple[PurgeReading, ...], sentence: str, last: Survey | None = None
    ) -> PurgeReport:
        request, last = self._scene.asked, last or before
        return PurgeReport(
            id=request.id,
            table=self._scene.table.name,
            created_at=self._created_at,
            columns=request.reads,
            condition_sha256=request.digest,
            reason=request.reason,
            user=request.user,
            dry_run=request.dry_run,
            rows=dict(self._rows),
            files=tuple(self._files),
            before=before.readings,
            after=after,
            undecided=last.undecided,
            samples=self._samples,
            staged=_staged_by(self._scene, last),
            messages=last.messages,
            remembered=last.remembered,
            outside=(*self._outside, *self._staging()),
            sentence=sentence,
            store=self._store.reading() if self._store is not None else None,
        )

    def _staging(self) -> list[str]:
        """Other operations in progress: they may have staged rows, on a warehouse's store without a folder here."""
        folder = self._scene.folder
        others = sorted(name for name in owned_names(folder.parent) if name != folder.name)
        return [f"what {name} has staged while it runs" for name in others]


def _would(scene: PurgeScope, seen: Survey) -> str:
    goes, shown = sum(part.goes for part in seen.going), sum(part.shown for part in seen.shown)
    staged = sum(file.matching for file in seen.staged)
    rows, files = sum(place.rows for place in seen.readings), sum(place.files for place in seen.readings)
    parts = [
        f"Would remove {counted(goes, 'row')} of current versions and {counted(len(seen.dead), 'old file')} of "
        f"'{scene.table.name}' ({counted(rows, 'row')} in {counted(files, 'file')} were read)."
    ]
    if shown:
        parts.append(f"Queries show {counted(shown, 'row')} that match: delete them first.")
    if staged:
        parts.append(f"{counted(staged, 'row')} that match are staged by plans: cancel these first.")
    if is_overridden(seen.halves.get(Half.OFFLINE)):
        parts.append(f"The boundary is set by hand: `hybrid boundary clear {scene.table.name}` first.")
    return " ".join([*parts, "Nothing was touched."])


def _staged_by(scene: PurgeScope, seen: Survey) -> dict[str, int]:
    """The number of staged matching rows of each plan or open replacement."""
    rows = Counter[str]()
    for file in seen.staged:
        rows[file.path.relative_to(scene.table.layout.plans).parts[0]] += file.matching
    return dict(rows)


# Refusals


def _refuse(scene: PurgeScope, seen: Survey) -> None:
    """ConflictError when a purge cannot begin."""
    refuse_override(scene.table.name, seen.halves.get(Half.OFFLINE))
    _refuse_staged(scene, seen)
    _refuse_shown(scene, seen)


def _refuse_staged(scene: PurgeScope, seen: Survey) -> None:
    for file in seen.staged:
        plan = file.path.relative_to(scene.table.layout.plans).parts[0]
        raise ConflictError(
            f"'{plan}' has staged {counted(file.matching, 'row')} that match and could bring them back.",
            hint=f"hybrid backfill cancel {plan} (a plan), or revert the open replacement",
        )


def _refuse_shown(scene: PurgeScope, seen: Survey) -> None:
    if not seen.shown:
        return
    name, first = scene.table.name, seen.shown[0]
    show = "fold" if scene.table.spec.folds else "show"
    raise ConflictError(
        f"Queries {show} {counted(sum(segment.shown for segment in seen.shown), 'row')} of '{name}' that match, in "
        f"segment '{first.name}' of {first.half.value} for one. A purge only removes what has been deleted. Nothing "
        "was changed.",
        hint=f"hybrid backfill plan {name} --delete --where ... --from ... --to ... -o PLAN.json",
    )


def _left(seen: Survey) -> str:
    """What a purge could not remove, as a phrase."""
    goes, dead = sum(segment.goes for segment in seen.going), seen.dead
    parts = [f"{counted(goes, 'row')} of current versions"] if goes else []
    if dead:
        parts.append(f"file {dead[0].path.name} (of {counted(len(dead), 'file')}), which no version of the log names")
    return "; ".join(
        [*parts, *seen.torn[:3], *(f"values in {name}" for name in seen.remembered[:3]), *seen.on_store[:3]]
    )
