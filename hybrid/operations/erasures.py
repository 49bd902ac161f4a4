"""Erasures: every row of a person leaves one or several tables, and a certificate says so.

`hybrid.operations.erasure_attempt` carries one out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from hybrid.catalog.erasures import (
    ErasedTable,
    ErasureCertificate,
    ErasureState,
    ErasureStore,
    condition_digest,
    new_salt,
)
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, UsageError
from hybrid.lake.commit_context import new_act_id
from hybrid.operations.erasure import ERASE, ErasureOptions, ErasurePreview, Refusal, by_table
from hybrid.operations.erasure_attempt import ErasureAttempt, moves, redaction_of
from hybrid.runtime.sentence_repr import shown_as
from hybrid.sql.redaction import without_constants
from hybrid.sql.row_sql import condition_words, row_condition

if TYPE_CHECKING:
    from hybrid.home.home import Home

_WHERE = "--where"
_POLL_S, _JOURNAL_TRIES = 0.2, 25


@shown_as("{0._home.folder}")
class Erasures:
    """The erasures of a home: begin, run, show, list, discard."""

    def __init__(self, home: Home) -> None:
        self._home, self._store = home, ErasureStore(home.folder)

    def begin(self, conditions: Mapping[str, str], options: ErasureOptions | None = None) -> ErasureCertificate:
        """Begins an erasure of the rows that match, by table; or returns the open one of the same conditions."""
        return self.take_up(conditions, options)[0]

    def take_up(
        self, conditions: Mapping[str, str], options: ErasureOptions | None = None
    ) -> tuple[ErasureCertificate, bool]:
        """`begin`, and whether the erasure is new. One that was open stays as it is: only `run` changes its options.

        Nothing is removed yet. UsageError for an invalid condition, for none, for two of one table, and for a reason
        that has one of its constants. SpecError for a table that cannot be purged.
        """
        options = options or ErasureOptions()
        if not conditions:
            raise UsageError("Which rows are to be erased? Name a table and a condition.", hint=_HINT)
        self._home.require_folder()
        wanted = by_table(conditions, lambda name: self._home.table(name).name)
        tables = tuple(self._table(name, where) for name, where in wanted.items())
        _refuse_telling(options, tables, wanted)
        certificate = ErasureCertificate(new_act_id("erasure"), self._home.bench.now_iso(), tables, **vars(options))
        with self._store.beginning():
            known = self._known(wanted)
            if known is not None:
                self._store.claim(known.id)
                return known, False
            self._store.create(certificate, wanted)
        return certificate, True

    def look(self, erasure_id: str, options: ErasureOptions | None = None) -> ErasurePreview:
        """What an open erasure would find now, place by place, what it would cancel, and what would refuse it.

        It changes nothing. `options` are those that `run` would be given; UsageError for those that it would refuse.
        """
        certificate, conditions = self._request(erasure_id, ErasureState.OPEN, ErasureState.PROVEN)
        if options is not None:
            _refuse_telling(options, certificate.tables, conditions)
        certificate = _with_options(certificate, options)
        readings: list[dict[str, Any]] = []
        refusals: list[Refusal] = []
        running = self._store.running()
        if running is not None:
            words = "It is running already" if running == erasure_id else f"Another erasure is running: '{running}'"
            refusals.append(Refusal(f"{words}.", hint=f"hybrid erase show {running}"))
        attempt = ErasureAttempt(self._home, self._store, certificate, conditions)
        for table in certificate.tables:
            reading = attempt.look(table)
            of_places = [{"table": table.table, **asdict(place), "by": []} for place in reading.before]
            of_places[-1]["by"] = sorted(reading.staged)  # the last place is the staged rows
            readings += of_places
            copies = attempt.copies(table.table)
            blank = dict.fromkeys(("files", "rows", "shown", "markers"), 0)
            readings += [
                {"table": table.table, "place": "dropped copy", "current": False, **blank, "matching": copy.rows,
                 "by": [copy.path.name]}
                for copy in copies
            ]  # fmt: skip
            found = (attempt.refusal_of_override(table.table), attempt.refusal(table.table, copies))
            refusals += [refusal for refusal in found if refusal is not None]
        return ErasurePreview(readings, refusals)

    def run(self, erasure_id: str, options: ErasureOptions | None = None) -> ErasureCertificate:
        """Runs an erasure, or goes on with it. ConflictError while it cannot be completed: it stays open.

        `options` are added to those that it has, with the attempt's first step.

        ConflictError too for a discarded erasure, and while another one runs. Errors name no value of the conditions.
        """
        with self._store.alone(erasure_id):
            with self._store.beginning():  # from now on nobody who only looks gives it back
                certificate = self._store.find(erasure_id)
                if certificate.state is ErasureState.OPEN:
                    self._store.claim(erasure_id)
            if certificate.state is ErasureState.DONE:
                return certificate
            if certificate.state is ErasureState.OPEN:
                certificate, conditions = self._request(erasure_id, ErasureState.OPEN)
                if options is not None:
                    _refuse_telling(options, certificate.tables, conditions)
                    certificate = _with_options(certificate, options)
                attempt = ErasureAttempt(self._home, self._store, certificate, conditions)
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
        with self._store.beginning():
            certificate = self._store.find(erasure_id)
            if self._store.running() == erasure_id:
                raise ConflictError(f"Erasure '{erasure_id}' is running. Nothing was changed.")
            if certificate.state is not ErasureState.OPEN:
                raise ConflictError(f"Erasure '{erasure_id}' is {certificate.state}: there is nothing to discard.")
            sentence = "Discarded. What it had deleted and removed stays so; nothing is proven."
            certificate = replace(
                certificate, state=ErasureState.DISCARDED, sentence=sentence, finished_at=self._home.bench.now_iso()
            )
            self._store.forget(erasure_id)  # first: an open erasure without its request can be discarded again
            self._store.save(certificate)
        return certificate

    def give_back(self, erasure_id: str) -> ErasureCertificate:
        """Removes an erasure that was only looked at, with its conditions and certificate.

        It stays when it has run, or when somebody else has taken it up.
        """
        with self._store.beginning():
            certificate = self._store.find(erasure_id)
            is_open = certificate.state is ErasureState.OPEN
            if not is_open or certificate.attempts or self._store.is_claimed(erasure_id):
                return certificate
            self._store.remove(erasure_id)
        return replace(certificate, state=ErasureState.DISCARDED, sentence="It was only looked at. Nothing is kept.")

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
        if not moves(table):
            require_realtime_erasable(table.spec, reads)
        salt = new_salt()
        return ErasedTable(name, reads, without_constants(where), salt, condition_digest(name, where, salt))

    def _request(self, erasure_id: str, *states: ErasureState) -> tuple[ErasureCertificate, dict[str, str]]:
        """An erasure in one of these states with its conditions."""
        certificate, conditions = self._store.find(erasure_id), self._store.conditions(erasure_id)
        if certificate.state not in states:
            raise ConflictError(f"Erasure '{erasure_id}' is {certificate.state}.", hint=_HINT)
        if conditions is None:
            raise DataError(f"The request of '{erasure_id}' is gone.", hint=f"hybrid erase discard {erasure_id}")
        return certificate, conditions

    def _known(self, wanted: Mapping[str, str]) -> ErasureCertificate | None:
        """The erasure of these conditions whose request is kept; None without one. It is open, or to be closed."""
        states = {ErasureState.OPEN, ErasureState.PROVEN}
        kept = (one for one in self._store.all() if one.state in states)
        return next((one for one in kept if self._store.conditions(one.id) == wanted), None)

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


def _with_options(certificate: ErasureCertificate, options: ErasureOptions | None) -> ErasureCertificate:
    """An erasure with these options too: none that it has is taken away."""
    if options is None:
        return certificate
    return replace(
        certificate,
        reason=options.reason or certificate.reason,
        user=certificate.user or options.user,
        undecided=options.undecided or certificate.undecided,
        dropped_copies=options.dropped_copies or certificate.dropped_copies,
    )


def _refuse_telling(options: ErasureOptions, tables: tuple[ErasedTable, ...], conditions: Mapping[str, str]) -> None:
    """UsageError for a reason that has a constant of the conditions."""
    if options.reason is not None and redaction_of(tables, conditions).of(options.reason) != options.reason:
        raise UsageError("--reason names a value of the condition, and is kept in the certificate.")
