"""Erasures: every row of a person leaves one or several tables, and a certificate says so.

An attempt, and the state after a crash in each step (the next attempt begins at the first step and does the rest):
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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from hybrid.catalog.erasures import (
    ErasedTable,
    ErasureCertificate,
    ErasureState,
    ErasureStore,
    condition_digest,
    new_salt,
    replaced_table,
)
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, HybridError, UsageError
from hybrid.jvm.spark_errors import short_words
from hybrid.lake import plans, pushes
from hybrid.lake.commit_context import new_act_id
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.backfills import Backfills
from hybrid.operations.erasure import ERASE, Erasure, ErasureOptions
from hybrid.operations.erasure_outside import outside_places
from hybrid.operations.erasure_texts import mask_texts
from hybrid.operations.ingestion import catch_up
from hybrid.operations.purge import copies_with_rows, purge_request, run_purge
from hybrid.operations.revert import revert_replacement
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.runtime.file_lock import is_locked
from hybrid.sql.redaction import Redaction, without_constants
from hybrid.sql.row_sql import condition_words, row_condition

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.purge.report import PurgeReport
    from hybrid.replace.purge.request import PurgeRequest

ROUNDS_MAX = 3
SERVE_LOCK = "serve.lock"
_WHERE = "--where"
_POLL_S, _JOURNAL_TRIES = 0.2, 25


class Erasures:
    """The erasures of a home: begin, run, show, list, discard."""

    def __init__(self, home: Home) -> None:
        self._home, self._store = home, ErasureStore(home.folder)

    def begin(self, conditions: Mapping[str, str], options: ErasureOptions | None = None) -> ErasureCertificate:
        """Begins an erasure of the rows that match, by table; or returns the open one of the same conditions.

        Nothing is removed yet. UsageError for an invalid condition, for none, and for a reason that has one of its
        constants. SpecError for a table that cannot be purged.
        """
        options = options or ErasureOptions()
        if not conditions:
            raise UsageError("Which rows are to be erased? Name a table and a condition.", hint=_HINT)
        self._home.require_folder()
        wanted = {self._home.table(name).name: where.strip() for name, where in conditions.items()}
        tables = tuple(self._table(name, where) for name, where in wanted.items())
        redaction = _redaction(tables, wanted)
        if options.reason is not None and redaction.of(options.reason) != options.reason:
            raise UsageError("--reason names a value of the condition, and is kept in the certificate.")
        known = self._known(wanted)
        if known is not None:
            return self._with_options(known, options)
        now = self._home.bench.now_iso()
        certificate = ErasureCertificate(new_act_id("erasure"), now, tables, **vars(options))
        self._store.create(certificate, wanted)
        return certificate

    def is_open(self, conditions: Mapping[str, str]) -> bool:
        """Whether an erasure of these conditions is open already."""
        names = {self._home.table(name).name: where.strip() for name, where in conditions.items()}
        return self._known(names) is not None

    def look(self, erasure_id: str) -> list[dict[str, Any]]:
        """What an open erasure would find now, place by place, with what it would cancel. It changes nothing."""
        certificate, conditions = self._request(erasure_id)
        readings: list[dict[str, Any]] = []
        for table in certificate.tables:
            reading = _Attempt(self._home, self._store, certificate, conditions).look(table)
            of_places = [{"table": table.table, **asdict(place), "by": []} for place in reading.before]
            of_places[-1]["by"] = sorted(reading.staged)  # the last place is the staged rows
            readings += of_places
            copies = copies_with_rows(self._home, table.table, conditions[table.table], certificate.undecided)
            blank = dict.fromkeys(("files", "rows", "shown", "markers"), 0)
            readings += [
                {"table": table.table, "place": "dropped copy", "current": False, **blank, "matching": copy.rows or 0,
                 "by": [copy.path.name]}
                for copy in copies
            ]  # fmt: skip
        return readings

    def run(self, erasure_id: str) -> ErasureCertificate:
        """Runs an erasure, or goes on with it. ConflictError while it cannot be completed: it stays open.

        ConflictError too for a discarded erasure, and while another one runs. Errors name no value of the conditions.
        """
        with self._store.alone(erasure_id):
            certificate = self._store.find(erasure_id)
            if certificate.state is ErasureState.DONE:
                return certificate
            if certificate.state is ErasureState.OPEN:
                certificate, conditions = self._request(erasure_id)
                attempt = _Attempt(self._home, self._store, certificate, conditions)
                return self._home.run_recorded(certificate.tables[0].table, ERASE, lambda: self._closed(attempt.run()))
            if certificate.state is ErasureState.PROVEN:
                return self._closed(certificate)
            raise ConflictError(f"Erasure '{erasure_id}' was discarded.", hint=_HINT)

    def show(self, erasure_id: str) -> ErasureCertificate:
        """The certificate of an erasure; NotFoundError, with a suggestion, for an unknown id."""
        return self._store.find(erasure_id)

    def all(self) -> list[ErasureCertificate]:
        """The certificates of all erasures, newest first."""
        self._home.require_folder()
        return self._store.all()

    def state(self, certificate: ErasureCertificate) -> str:
        """The state of an erasure in words: RUNNING while a process runs it, FAILED and INTERRUPTED of an open one."""
        if certificate.state is not ErasureState.OPEN:
            return certificate.state.value
        if self._store.running() == certificate.id:
            return "RUNNING"
        if certificate.error is not None:
            return "FAILED"
        return "INTERRUPTED" if certificate.attempts else "OPEN"

    def discard(self, erasure_id: str) -> ErasureCertificate:
        """Ends an open erasure without its proof: its conditions are removed. What was removed stays removed."""
        with self._store.alone(erasure_id):
            certificate = self._store.find(erasure_id)
            if certificate.state is not ErasureState.OPEN:
                raise ConflictError(f"Erasure '{erasure_id}' is {certificate.state}: there is nothing to discard.")
            sentence = "Discarded. What it had deleted and removed stays so; nothing is proven."
            certificate = replace(
                certificate, state=ErasureState.DISCARDED, sentence=sentence, finished_at=self._home.bench.now_iso()
            )
            self._store.forget(erasure_id)  # first: an open erasure without its request can be discarded again
            self._store.save(certificate)
        return certificate

    def is_about(self, erasure_id: str, conditions: Mapping[str, str]) -> bool:
        """Whether a certificate is that of these conditions, as they were written."""
        tables = self._store.find(erasure_id).tables
        digests = {table.table: table.digest for table in tables}
        return digests == {
            table.table: condition_digest(table.table, conditions.get(table.table, ""), table.salt) for table in tables
        } and set(conditions) == set(digests)

    # The request

    def _table(self, name: str, where: str) -> ErasedTable:
        from hybrid.replace.purge.request import require_purgeable, require_realtime_erasable

        table = self._home.table(name)
        row_condition(where, table.spec, _WHERE)
        reads, _ = condition_words(where, table.spec, _WHERE)
        offline = table.half(Half.OFFLINE).offline if Half.OFFLINE in table.spec.halves else None
        require_purgeable(table.spec, offline, reads)
        if not _moves(table):
            require_realtime_erasable(table.spec, reads)
        salt = new_salt()
        return ErasedTable(name, reads, without_constants(where), salt, condition_digest(name, where, salt))

    def _request(self, erasure_id: str) -> tuple[ErasureCertificate, dict[str, str]]:
        """An open erasure with its conditions."""
        certificate, conditions = self._store.find(erasure_id), self._store.conditions(erasure_id)
        if certificate.state is not ErasureState.OPEN:
            raise ConflictError(f"Erasure '{erasure_id}' is {certificate.state}.", hint=_HINT)
        if conditions is None:
            raise DataError(f"The request of '{erasure_id}' is gone.", hint=f"hybrid erase discard {erasure_id}")
        return certificate, conditions

    def _with_options(self, known: ErasureCertificate, options: ErasureOptions) -> ErasureCertificate:
        """An open erasure with the options that were given now. ConflictError when it runs, and they are others."""

        def changed(certificate: ErasureCertificate) -> ErasureCertificate:
            return replace(
                certificate,
                reason=options.reason or certificate.reason,
                user=certificate.user or options.user,
                undecided=options.undecided or certificate.undecided,
                dropped_copies=options.dropped_copies or certificate.dropped_copies,
            )

        if changed(known) == known:
            return known
        with self._store.alone(known.id):  # its certificate is that of the process that runs it
            certificate = changed(self._request(known.id)[0])
            self._store.save(certificate)
        return certificate

    def _known(self, wanted: Mapping[str, str]) -> ErasureCertificate | None:
        """The open erasure of these conditions; None without one."""
        open_ones = (one for one in self._store.all() if one.state is ErasureState.OPEN)
        return next((one for one in open_ones if self._store.conditions(one.id) == wanted), None)

    def _closed(self, certificate: ErasureCertificate) -> ErasureCertificate:
        """Removes the request, then what the catalog's journal remembers, then closes the certificate."""
        self._store.forget(certificate.id)
        for _ in range(_JOURNAL_TRIES):
            if self._home.catalog.forget_journal():
                break
            time.sleep(_POLL_S)
        else:
            raise ConflictError(
                "Everything is removed, but the catalog's journal cannot be emptied while others read it.",
                hint=f"hybrid erase resume {certificate.id}",
            )
        done = replace(certificate, state=ErasureState.DONE, finished_at=self._home.bench.now_iso())
        self._store.save(done)
        return done


_HINT = 'hybrid erase run orders --where "customer_id = 7"'


class _Attempt:
    """One attempt at an erasure; its certificate is saved after each step."""

    def __init__(
        self, home: Home, store: ErasureStore, certificate: ErasureCertificate, conditions: Mapping[str, str]
    ) -> None:
        self._home, self._store, self._certificate, self._conditions = home, store, certificate, conditions
        self._redaction = _redaction(certificate.tables, conditions)

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
        return purge(self._home.table_context(ref), replace(request, id=new_act_id("purge"), locates=True))

    def _work(self) -> tuple[Mapping[str, str], ...]:
        warnings: list[str] = []
        for table in self._certificate.tables:
            self._refuse_copies(table.table)
        for table in self._certificate.tables:
            warnings += self._erase(table)
        self._remove_copies()
        self._clear_spill()
        names = [table.table for table in self._certificate.tables]
        texts = self._certificate.texts + mask_texts(self._home, names, self._redaction)
        self._step(None, "mask", f"{counted(texts, 'text')} of logs, records and lineage were masked.", texts=texts)
        words = [self._redaction.of(text) for text in warnings]
        return outside_places(self._home, self._certificate.tables, words, self._redaction)

    def _erase(self, table: ErasedTable) -> list[str]:
        """Removes the rows of one table. Returns what its purge did not reach, in words."""
        from hybrid.replace.purge.places import clear_ended

        ref, name, failure = self._home.table(table.table), table.table, None
        for _ in range(ROUNDS_MAX):
            self._cancel_own(ref)
            catch_up(self._home, ref)
            clear_ended(ref.layout)
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
        return replace(request, id=new_act_id("purge"), takes_realtime=not _moves(ref), own_digest=table.digest)

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
        self._step(table.name, "delete", f"{counted(shown, 'row')} were shown. {sentence}", act=plan.id)

    def _refuse_copies(self, name: str) -> None:
        if self._certificate.dropped_copies:
            return
        undecided = self._certificate.undecided
        copies = list(copies_with_rows(self._home, name, self._conditions[name], undecided))
        if copies:
            raise ConflictError(
                f"'{name}' was dropped before: {'; '.join(copy.words for copy in copies)}. Nothing was removed.",
                hint="With --dropped-copies they are removed. To keep them: hybrid table undrop",
            )

    def _remove_copies(self) -> None:
        if not self._certificate.dropped_copies:
            return
        for table in self._certificate.tables:
            where = self._conditions[table.table]
            for copy in list(copies_with_rows(self._home, table.table, where, self._certificate.undecided)):
                shutil.rmtree(copy.path)
                durable.sync(copy.path.parent)
                self._step(table.table, "remove-copy", f"Removed {copy.words}.")

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
            words.append(f"{counted(markers, 'delete marker')} stay: {why}")
        if undecided:
            words.append(f"{counted(undecided, 'rejected message')} stay undecided: --undecided removes them too.")
        return " ".join([*words, f"{counted(outside, 'place')} are out of reach: see the certificate."])

    def _resume_hint(self) -> str:
        return f"hybrid erase resume {self._certificate.id}"

    def _failed(self, error: Exception) -> HybridError:
        """The error without the values of the conditions, which also leave the records of the failed steps."""
        kind = type(error) if isinstance(error, HybridError) else HybridError
        message = self._redaction.of(str(error) if isinstance(error, HybridError) else short_words(error))
        hint = getattr(error, "hint", None) or self._resume_hint()
        self._save(error=message)
        with suppress(HybridError, OSError):  # the next attempt masks again; this error is the one to tell
            names = [table.table for table in self._certificate.tables if table.table in self._home.table_names()]
            texts = mask_texts(self._home, names, self._redaction)
            self._save(texts=self._certificate.texts + texts)
        failure: HybridError = kind(message, hint=self._redaction.of(hint))
        return failure


def _redaction(tables: tuple[ErasedTable, ...], conditions: Mapping[str, str]) -> Redaction:
    return Redaction.of_conditions((conditions[table.table], table.columns) for table in tables)


def _moves(table: TableRef) -> bool:
    """Whether rows that REALTIME shows can move to OFFLINE, to be deleted there."""
    return Half.REALTIME not in table.spec.halves or (Half.OFFLINE in table.spec.halves and table.spec.move is not None)
