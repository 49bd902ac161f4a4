"""An attempt at an erasure: its steps, each recorded in the certificate.

The state after a crash in each step (the next attempt begins at the first step and does the rest):
  read every place; keep the first reading        nothing done; `before` is kept
  for each table, up to `ROUNDS_MAX` times:
    cancel plans with staged matching rows        cancelled
    delete by a backfill over all times           hidden, in part or whole
    purge                                         removed, in part or whole; `after` is kept
  remove dropped copies, if that was asked for    removed, in part
  mask statements                                 masked, in part
  state PROVEN                                    only the request is left
  remove the request; state DONE                  done
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from hybrid.catalog.erasures import ErasedTable, ErasureCertificate, ErasureState, ErasureStore, replaced_table
from hybrid.config.settings import SERVE_LOCK
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, HybridError
from hybrid.jvm.spark_errors import short_words
from hybrid.lake import plans, pushes
from hybrid.lake.commit_context import new_act_id
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.backfills import Backfills
from hybrid.operations.erasure import Erasure, Refusal
from hybrid.operations.erasure_outside import outside_places
from hybrid.operations.erasure_texts import mask_texts
from hybrid.operations.ingestion import catch_up
from hybrid.operations.purge import (
    CopyWithRows,
    copies_on_store,
    copies_with_rows,
    purge_request,
    purged_store,
    run_purge,
)
from hybrid.operations.revert import revert_replacement
from hybrid.operations.tables.drop import remove_copy
from hybrid.progress import counted
from hybrid.runtime.file_lock import is_locked
from hybrid.sql.redaction import Redaction

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.purge.report import PurgeReport
    from hybrid.replace.purge.request import PurgeRequest

ROUNDS_MAX = 3
_POLL_S = 0.2


class ErasureAttempt:
    """One attempt at an erasure; its certificate is saved after each step."""

    def __init__(
        self, home: Home, store: ErasureStore, certificate: ErasureCertificate, conditions: Mapping[str, str]
    ) -> None:
        self._home, self._store, self._certificate, self._conditions = home, store, certificate, conditions
        self._redaction = redaction_of(certificate.tables, conditions)

    def run(self) -> ErasureCertificate:
        """Everything up to the proof. Its error is stored, and names no value."""
        self._save(attempts=self._certificate.attempts + 1, error=None)
        try:
            outside = self._work()
        except Exception as error:
            # Whatever a step raises may quote the condition: Spark's errors do.
            raise self._failed(error) from None
        self._save(state=ErasureState.PROVEN, outside=outside, sentence=self._sentence(len(outside)))
        return self._certificate

    def look(self, table: ErasedTable) -> PurgeReport:
        """Reads every place of a table."""
        from hybrid.replace.purge.purge import purge

        ref = self._home.table(table.table)
        request = self._purge_request(ref, table, dry_run=True)
        return purge(self._home.table_context(ref), replace(request, locates=True))

    def _work(self) -> tuple[Mapping[str, str], ...]:
        for table in self._certificate.tables:
            if (store := purged_store(self._home, table.table)) is not None:
                store.require_provable()
            self._refuse_override(table.table)
            self._refuse_copies(table.table, "Nothing was removed.")
        warnings = self._erase_all()
        self._clear_spill()
        names = [table.table for table in self._certificate.tables]
        texts = self._certificate.texts + mask_texts(self._home, names, self._redaction)
        self._step(None, "mask", f"{counted(texts, 'text')} of logs, records and lineage were masked.", texts=texts)
        for name in names:
            self._end_on_store(name)
        words = [self._redaction.of(text) for text in warnings]
        return outside_places(self._home, self._certificate.tables, words, self._redaction)

    def _erase_all(self) -> list[str]:
        """Removes the rows of all tables and copies. Returns what the purges did not reach, in words.

        While one table is worked on, rows may come to another, or it is dropped: then there is another round.
        """
        warnings: dict[str, list[str]] = {}
        left = list(self._certificate.tables)
        for _ in range(ROUNDS_MAX):
            for table in left:
                warnings[table.table] = self._erase(table)
            self._remove_copies()
            for table in self._certificate.tables:
                self._refuse_copies(table.table, "It came while the erasure ran, which stays open.")
            last = left[-1].table
            left = [table for table in self._certificate.tables if table.table != last and self._has_more(table)]
            if not left:
                return [text for texts in warnings.values() for text in texts]
        names = ", ".join(f"'{table.table}'" for table in left)
        raise ConflictError(f"Rows of {names} that match keep arriving.", hint=self._resume_hint())

    def _has_more(self, table: ErasedTable) -> bool:
        """Whether a table that was purged has matching rows again. Delete markers that had to stay are none."""
        seen = self.look(table)
        stayed = sum(place["matching"] for place in table.after)
        return bool(seen.staged) or sum(place.matching for place in seen.before) > stayed

    def _erase(self, table: ErasedTable) -> list[str]:
        """Removes the rows of one table. Returns what its purge did not reach, in words."""
        from hybrid.replace.purge.places import clear_ended

        ref, name, failure = self._home.table(table.table), table.table, None
        for _ in range(ROUNDS_MAX):
            self._cancel_own(ref)
            catch_up(self._home, ref)
            clear_ended(ref.layout)
            if (store := purged_store(self._home, name)) is not None:
                store.clear_plans()
                store.bring()
            seen = self.look(table)
            shown = sum(place.shown for place in seen.before)
            if failure is not None and not (shown or seen.staged):
                raise failure
            self._keep_first(name, seen)
            self._release(ref, seen)
            if shown and Half.OFFLINE in ref.spec.halves:
                self._delete(ref, shown)
            try:
                report = run_purge(self._home, ref, self._purge_request(ref, table), [])
            except ConflictError as error:
                failure = error
                continue
            self._keep_last(name, report)
            if not sum(place.shown for place in report.after):
                return list(report.outside)
            failure = ConflictError(
                f"Rows of '{name}' that match keep arriving: {report.sentence}", hint=self._resume_hint()
            )
        assert failure is not None
        raise failure

    def _purge_request(self, ref: TableRef, table: ErasedTable, *, dry_run: bool = False) -> PurgeRequest:
        certificate, where = self._certificate, self._conditions[table.table]
        erasure = Erasure(where, certificate.undecided, dry_run, certificate.reason, certificate.user)
        request = purge_request(self._home, ref, erasure)
        return replace(request, id=new_act_id("purge"), takes_realtime=not moves(ref), own_digest=table.digest)

    def _end_on_store(self, name: str) -> None:
        """Removes the older versions of what was masked since the purge, and lets followers take over what there is."""
        store = purged_store(self._home, name)
        if store is not None:
            store.require_provable()
            store.announce(new_act_id("purge"))
            store.remove_versions()

    def _cancel_own(self, table: TableRef) -> None:
        """Cancels what earlier attempts have planned: they may have been killed at any point of it."""
        for plan_id in plans.plan_ids(table.layout):
            plan = plans.find_plan(table.layout, plan_id)
            if plan is not None and plan.request.get("erasure") == self._certificate.id:
                self._cancel(table, plan_id)

    def _release(self, table: TableRef, seen: PurgeReport) -> None:
        """Cancels plans and discards open replacements that have staged matching rows."""
        for staged_id, rows in seen.staged.items():
            if pushes.find_replacement(table.layout, staged_id) is not None:
                revert_replacement(self._home, table, staged_id, reason=f"erasure {self._certificate.id}")
                what = "The open replacement was discarded"
            else:
                self._cancel(table, staged_id)
                what = "The backfill was cancelled"
            self._step(table.name, "cancel", f"{what}, which had staged {counted(rows, 'row')}: {staged_id}.")

    def _cancel(self, table: TableRef, plan_id: str) -> None:
        """Cancels a plan, and waits for the end of its run: its staged rows are gone then."""
        backfills, layout = Backfills(self._home), table.layout
        if plans.desired_state_of(layout, plan_id).wish not in {plans.DesiredState.CANCEL, plans.DesiredState.ENDED}:
            status = backfills.status(plan_id)
            if status.state in {"DONE", "CANCELLED"}:
                return
            backfills.cancel(plan_id)
        deadline = time.monotonic() + self._home.settings.lock_timeout_s
        while plans.is_running(layout, plan_id):
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"Backfill '{plan_id}' has staged rows that match, and its run does not end.",
                    hint=self._resume_hint(),
                )
            time.sleep(_POLL_S)
        if backfills.status(plan_id).taken:
            backfills.release(plan_id)
        plans.discard_rows(layout, plan_id)

    def _delete(self, table: TableRef, shown: int) -> None:
        from hybrid.replace.backfill.options import BackfillOptions

        certificate = self._certificate
        reason = certificate.reason or f"erasure {certificate.id}"
        where = self._conditions[table.name]
        change = BackfillChange(delete=True, where=where, reason=reason, user=certificate.user)
        backfills = Backfills(self._home)
        plan = backfills.plan(table.name, change, self._redaction, certificate.id)
        sentence = plan.sentence
        if plan.units:
            sentence = backfills.run(plan.id, BackfillOptions()).sentence
        self._step(
            table.name,
            "delete",
            f"{counted(shown, 'row')} {'was' if shown == 1 else 'were'} shown. {sentence}",
            act=plan.id,
        )

    def copies(self, name: str) -> list[CopyWithRows]:
        """The dropped copies of a table that have matching rows, or cannot be looked at."""
        return list(copies_with_rows(self._home, name, self._conditions[name], self._certificate.undecided))

    def refusal(self, name: str, copies: Sequence[CopyWithRows]) -> Refusal | None:
        """The refusal for copies with such rows, and for ones that cannot be looked at, which nothing removes."""
        refusal = self._refusal_of_folders(name)
        if refusal is not None:
            return refusal
        unknown = [copy for copy in copies if copy.rows is None]
        left = unknown if self._certificate.dropped_copies else copies
        if not left:
            return None
        hint = "hybrid erase run ... --dropped-copies removes them. To keep them: hybrid table undrop"
        if unknown:
            hint = f"hybrid table drop {unknown[0].path.name} --purge, or hybrid table undrop {unknown[0].path.name}"
        words = "; ".join(copy.words for copy in left)
        return Refusal(f"'{name}' was dropped before: {words}.", hint=hint)

    def _refusal_of_folders(self, name: str) -> Refusal | None:
        """The refusal for halves on the store of a dropped table, of which no copy here tells what they have."""
        store = purged_store(self._home, name)
        if store is None or self._certificate.dropped_copies:
            return None
        folders = store.folders_of_nobody(copies_on_store(self._home, name))
        if not folders:
            return None
        hint = "hybrid erase run ... --dropped-copies removes it. To keep it, copy its objects elsewhere before"
        return Refusal(f"'{name}' was dropped before: {store.words_of_folder(folders[0])}.", hint=hint)

    def refusal_of_override(self, name: str) -> Refusal | None:
        """The refusal while a table's boundary is set by hand, which would end the purge."""
        from hybrid.replace.purge.rewrite import is_overridden, override_words

        table = self._home.table(name)
        if not is_overridden(table.half(Half.OFFLINE) if Half.OFFLINE in table.spec.halves else None):
            return None
        return Refusal(override_words(name), hint=f"hybrid boundary clear {name}")

    def _refuse_override(self, name: str) -> None:
        refusal = self.refusal_of_override(name)
        if refusal is not None:
            raise ConflictError(f"{refusal.message} Nothing was removed.", hint=refusal.hint)

    def _refuse_copies(self, name: str, state: str) -> None:
        refusal = self.refusal(name, self.copies(name))
        if refusal is not None:
            raise ConflictError(f"{refusal.message} {state}", hint=refusal.hint)

    def _remove_copies(self) -> None:
        if not self._certificate.dropped_copies:
            return
        for table in self._certificate.tables:
            for copy in self.copies(table.table):
                if copy.rows is None:  # nobody knows what it has: `_refuse_copies` names it
                    continue
                remove_copy(copy.path)
                self._step(table.table, "remove-copy", f"Removed {copy.words}.")
            if (store := purged_store(self._home, table.table)) is not None:
                for folder in store.folders_of_nobody(copies_on_store(self._home, table.table)):
                    store.remove_folder(folder)
                    self._step(table.table, "remove-copy", f"Removed {store.words_of_folder(folder)}.")

    def _clear_spill(self) -> None:
        """Removes what killed processes have left of rows beyond their memory; a server that runs is using it."""
        if not is_locked(self._home.folder / SERVE_LOCK):
            shutil.rmtree(self._home.settings.spill, ignore_errors=True)

    # The certificate

    def _keep_first(self, name: str, seen: PurgeReport) -> None:
        """Keeps the first reading for good: a later one finds what earlier attempts have left."""
        table = self._of(name)
        if table.before_at is None:
            before = tuple(asdict(place) for place in seen.before)
            self._change(replace(table, before=before, before_at=self._now(), messages=seen.messages))

    def _keep_last(self, name: str, report: PurgeReport) -> None:
        after = tuple(asdict(place) for place in report.after)
        markers = sum(place.markers for place in report.after)
        table = replace(self._of(name), after=after, after_at=self._now())
        self._change(replace(table, undecided=report.undecided, markers=markers))
        self._step(name, "purge", report.sentence, act=report.id)

    def _of(self, name: str) -> ErasedTable:
        return next(table for table in self._certificate.tables if table.table == name)

    def _change(self, table: ErasedTable) -> None:
        self._save(tables=replaced_table(self._certificate, table))

    def _step(self, table: str | None, step: str, sentence: str, *, act: str | None = None, **more: Any) -> None:
        sentence = self._redaction.of(sentence)
        self._home.progress.say(sentence)
        entry = {"at": self._now(), "table": table, "step": step, "sentence": sentence, "act": act}
        self._save(steps=(*self._certificate.steps, entry), **more)

    def _save(self, **changes: Any) -> None:
        self._certificate = replace(self._certificate, **changes)
        self._store.save(self._certificate)

    def _now(self) -> str:
        return self._home.bench.now_iso()

    def _sentence(self, outside: int) -> str:
        tables = self._certificate.tables
        found = sum(place["matching"] for table in tables for place in table.before)
        files, rows = (sum(place[key] for table in tables for place in table.after) for key in ("files", "rows"))
        names = ", ".join(f"'{table.table}'" for table in tables)
        words = [
            f"Erased from {names}: {counted(found, 'stored row')} matched, and none is left in {counted(rows, 'row')} "
            f"of {counted(files, 'file')}."
        ]
        markers, undecided = (sum(getattr(table, key) for table in tables) for key in ("markers", "undecided"))
        if markers:
            why = (
                "they hold the key, so that older messages cannot bring it back. Erase again when all of Kafka is read."
            )
            words.append(f"{counted(markers, 'delete marker')} {'stays' if markers == 1 else 'stay'}: {why}")
        if undecided:
            stay, them = ("stays", "it") if undecided == 1 else ("stay", "them")
            words.append(f"{counted(undecided, 'rejected message')} {stay} undecided: --undecided removes {them} too.")
        if outside:
            verb = "is" if outside == 1 else "are"
            words.append(f"{counted(outside, 'place')} {verb} out of reach: see the certificate.")
        return " ".join(words)

    def _resume_hint(self) -> str:
        return f"hybrid erase resume {self._certificate.id}"

    def _failed(self, error: Exception) -> HybridError:
        """The error without the values of the conditions, which also leave the records of the failed steps."""
        kind = type(error) if isinstance(error, HybridError) else HybridError
        message = self._redaction.of(short_words(error))
        hint = getattr(error, "hint", None) or self._resume_hint()
        self._save(error=message)
        # Whatever this raises: an error of the catalog's database quotes the texts of its statement.
        with suppress(Exception):  # the next attempt masks again; this error is the one to tell
            names = [table.table for table in self._certificate.tables if table.table in self._home.table_names()]
            texts = mask_texts(self._home, names, self._redaction)
            self._save(texts=self._certificate.texts + texts)
        failure: HybridError = kind(message, hint=self._redaction.of(hint))
        return failure


def redaction_of(tables: tuple[ErasedTable, ...], conditions: Mapping[str, str]) -> Redaction:
    """What is masked of the conditions of an erasure."""
    return Redaction.of_conditions((conditions[table.table], table.columns) for table in tables)


def moves(table: TableRef) -> bool:
    """Whether rows that REALTIME shows can move to OFFLINE, to be deleted there."""
    return Half.REALTIME not in table.spec.halves or (Half.OFFLINE in table.spec.halves and table.spec.move is not None)
