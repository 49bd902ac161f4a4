"""A purge from its first reading to its proof.

The sequence, and what a death in between leaves (the next purge does the rest):
  read every place, decide                            nothing done
  for each half, REALTIME first: segments without     rows that nobody saw are gone from the current version
  the rows that go, one commit
  the entry in OFFLINE's log                          told, though files are still there
  delete the files of no version that hold such       gone, one by one
  rows, and before it what the log says of them
  read every place again; once more, if something     done, but for the record
  is left (delete markers go last)
  keep the record                                     done
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, OvertakenError
from hybrid.lake import plans
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import try_lock
from hybrid.lake.log import open_half
from hybrid.progress import counted
from hybrid.replace.purge.places import clear_ended
from hybrid.replace.purge.remove import remove_dead
from hybrid.replace.purge.report import PurgeReading, PurgeReport, RemovedFile, incomplete, keep, sentence_of
from hybrid.replace.purge.request import PurgeRequest, PurgeScope, require_purgeable
from hybrid.replace.purge.rewrite import refuse_override, tell, write_anew
from hybrid.replace.purge.scan import MatchingRows
from hybrid.replace.purge.survey import Survey, survey
from hybrid.runtime import durable

_ROUNDS_MAX, _TRIES_MIN = 6, 2
_LATER = (
    "A file that no version names, or that is not whole, may be about to be committed by another tool; it goes an hour "
    "after it was written. Run it again then, or when less is going on."
)


def purge(
    bench: CommitContext, spec: TableSpec, layout: TableLayout, asked: PurgeRequest, outside: Sequence[str] = ()
) -> PurgeReport:
    """Removes rows that match and that no query shows from every place, and reads all of them again.

    ConflictError while a query shows a row that matches, while a boundary is set by hand, while a plan or an open
    replacement has staged such a row, while another purge of the table goes on, or when the purge is not complete;
    SpecError for a table that cannot be purged. Of a dry run the report says what there is. `outside` is kept with it.
    """
    offline = open_half(layout.half(Half.OFFLINE)).offline if Half.OFFLINE in spec.halves else None
    require_purgeable(spec, offline, asked.reads)
    with _alone(layout), bench.staging(layout, asked.id) as folder:
        return _Work(PurgeScope(bench, spec, layout, asked, folder), tuple(outside)).run()


@contextmanager
def _alone(layout: TableLayout) -> Iterator[None]:
    durable.make_folder(layout.purges)
    with (layout.purges / ".lock").open("a") as file:
        if not try_lock(file, 0.0):
            raise ConflictError("Another purge of the table goes on. Nothing was changed.")
        yield


class _Work:
    """One purge. Its numbers grow while it goes on."""

    def __init__(self, scene: PurgeScope, outside: tuple[str, ...]) -> None:
        self._scene, self._outside = scene, outside
        self._rows: dict[str, int] = defaultdict(int)
        self._files: list[RemovedFile] = []
        self._samples = 0

    def run(self) -> PurgeReport:
        scene, say = self._scene, self._scene.bench.progress.say
        say(f"Reading every file of '{scene.spec.name}' for rows that match.")
        if scene.asked.dry_run:
            seen = survey(scene, 0)
            return self._report(seen, (), _would(scene, seen))
        clear_ended(scene.layout)
        before = seen = survey(scene, 0)
        _refuse(scene, seen)
        for number in range(1, _ROUNDS_MAX + 1):
            did_something = self._round(seen, number)
            say("Reading every file again.")
            seen = survey(scene, number)
            if seen.is_clean or (number >= _TRIES_MIN and not did_something):
                break
        return self._ended(before, seen)

    def _round(self, seen: Survey, number: int) -> bool:
        """Removes what was seen; whether anything went, or another act came first."""
        before = sum(self._rows.values()), len(self._files)
        was_overtaken = not self._rewrite(seen)
        self._remove(seen, is_first=number == 1)
        return was_overtaken or before != (sum(self._rows.values()), len(self._files))

    def _ended(self, before: Survey, seen: Survey) -> PurgeReport:
        """Keeps the record, also of what could not be ended: ConflictError then."""
        name = self._scene.spec.name
        if seen.is_clean:
            sentence = sentence_of(name, self._rows, len(self._files), seen.readings)
        else:
            sentence = incomplete(name, _left(seen))
        report = self._report(before, seen.readings, sentence, seen)
        keep(self._scene.layout, report)
        if not seen.is_clean:
            raise ConflictError(sentence, hint=_LATER)
        _refuse_staged(self._scene, seen)
        return report

    # Acts

    def _rewrite(self, seen: Survey) -> bool:
        """Takes the rows out of the current versions. False when another act came first: the next round looks at it."""
        for half in (Half.REALTIME, Half.OFFLINE):
            going = [one for one in seen.going if one.half is half]
            if not going:
                continue
            count = sum(one.goes for one in going)
            self._scene.bench.progress.say(
                f"Writing {counted(len(going), 'segment')} of {half.value} without {counted(count, 'row')}."
            )
            try:
                self._rows[half.value] += write_anew(self._scene, half, seen.halves, seen.hidden, going)
            except OvertakenError:
                self._scene.bench.progress.say(f"Another act on '{self._scene.spec.name}' came first; looking again.")
                return False
        return True

    def _remove(self, seen: Survey, *, is_first: bool) -> None:
        """Deletes the files of older versions and of killed acts that hold such rows, those just replaced among them.

        Also without a file: what the log says of files that are gone goes, whoever took them.
        """
        files = {one.path: one for _, one in seen.found}
        if seen.going or (files and is_first):
            self._tell()
        for half in seen.halves:
            folder = self._scene.layout.half(half)
            self._remove_of(half, {path: one for path, one in files.items() if path.is_relative_to(folder)})
        layout = self._scene.layout
        self._samples += sum(plans.forget_samples(layout, plan_id) for plan_id in plans.plan_ids(layout))

    def _remove_of(self, half: Half, files: Mapping[Path, MatchingRows]) -> None:
        root = self._scene.layout.root
        for path, size in remove_dead(self._scene.bench, self._scene.layout, half, files):
            one = files[path]
            self._files.append(RemovedFile(half.value, path.relative_to(root).as_posix(), size, one.rows, one.matching))

    def _tell(self) -> None:
        """After each round that took rows: a move may have planned on them since the last one."""
        half = Half.OFFLINE if Half.OFFLINE in self._scene.spec.halves else Half.REALTIME
        tell(self._scene, half, {"removed": dict(self._rows)})

    # Reports

    @cached_property
    def _created_at(self) -> str:
        return self._scene.bench.now_iso()

    def _report(
        self, before: Survey, after: tuple[PurgeReading, ...], sentence: str, last: Survey | None = None
    ) -> PurgeReport:
        asked, last = self._scene.asked, last or before
        return PurgeReport(
            id=asked.id,
            table=self._scene.spec.name,
            created_at=self._created_at,
            columns=asked.reads,
            condition_sha256=asked.digest,
            reason=asked.reason,
            user=asked.user,
            dry_run=asked.dry_run,
            rows=dict(self._rows),
            files=tuple(self._files),
            before=before.readings,
            after=after,
            undecided=last.undecided,
            samples=self._samples,
            remembered=last.remembered,
            outside=(*self._outside, *self._staging()),
            sentence=sentence,
        )

    def _staging(self) -> list[str]:
        """The acts that go on and have staged rows of their own, this one apart."""
        folder = self._scene.folder
        others = sorted(path.name for path in folder.parent.iterdir() if path.is_dir() and path != folder)
        return [f"what {name} has staged while it goes on" for name in others]


def _would(scene: PurgeScope, seen: Survey) -> str:
    goes, shown = sum(one.goes for one in seen.going), sum(one.shown for one in seen.shown)
    staged = sum(one.matching for one in seen.staged)
    rows, files = sum(one.rows for one in seen.readings), sum(one.files for one in seen.readings)
    parts = [
        f"Would remove {counted(goes, 'row')} of current versions and {counted(len(seen.dead), 'old file')} of "
        f"'{scene.spec.name}' ({counted(rows, 'row')} in {counted(files, 'file')} were read)."
    ]
    if shown:
        parts.append(f"Queries show {counted(shown, 'row')} that match: delete them first.")
    if staged:
        parts.append(f"{counted(staged, 'row')} that match are staged by plans: cancel these first.")
    return " ".join([*parts, "Nothing was touched."])


# Refusals


def _refuse(scene: PurgeScope, seen: Survey) -> None:
    """ConflictError where a purge cannot begin."""
    refuse_override(scene.spec.name, seen.halves.get(Half.OFFLINE))
    _refuse_staged(scene, seen)
    _refuse_shown(scene, seen)


def _refuse_staged(scene: PurgeScope, seen: Survey) -> None:
    for one in seen.staged:
        plan = one.path.relative_to(scene.layout.plans).parts[0]
        raise ConflictError(
            f"'{plan}' has staged {counted(one.matching, 'row')} that match and could bring them back.",
            hint=f"hybrid backfill cancel {plan} (a plan), or revert the open replacement",
        )


def _refuse_shown(scene: PurgeScope, seen: Survey) -> None:
    if not seen.shown:
        return
    name, first = scene.spec.name, seen.shown[0]
    show = "fold" if scene.spec.folds else "show"
    raise ConflictError(
        f"Queries {show} {counted(sum(one.shown for one in seen.shown), 'row')} of '{name}' that match, in segment "
        f"'{first.name}' of {first.half.value} for one. A purge only removes what has been deleted. Nothing was "
        "changed.",
        hint=f"hybrid backfill plan {name} --delete --where ... --from ... --to ... -o PLAN.json",
    )


def _left(seen: Survey) -> str:
    """What a purge could not remove, in words."""
    goes, dead = sum(one.goes for one in seen.going), seen.dead
    left = [f"{counted(goes, 'row')} of current versions"] if goes else []
    if dead:
        left.append(f"file {dead[0].path.name} (of {counted(len(dead), 'file')}), which no version of the log names")
    return "; ".join([*left, *seen.torn[:3], *(f"values in {name}" for name in seen.remembered[:3])])
