"""A statement on DuckDB and on Spark over the same table at the same revision, and whether the answers are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hybrid.errors import QueryError
from hybrid.lake.commit_context import CommitContext
from hybrid.query.engine import QueryOptions, QueryResult, run
from hybrid.query.tail import NoTail, TailSource
from tests.parity.compare import same_rows

# What a refusal says, whatever it refuses.
REFUSALS = ("Spark does not run ", "Spark gives ")


@dataclass
class BothEngines:
    """Both engines over one source of tables; `equal`, `refused` and `failed` list the statements by their outcome."""

    spark: Callable[[], CommitContext]
    source: Any
    tail: TailSource = field(default_factory=NoTail)
    now_ms: int = 1_632_700_000_000
    equal: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)

    def answer(self, sql: str, engine: str | None = None, **options: Any) -> QueryResult | QueryError:
        """The answer, or the error."""
        statement = sql if engine is None else f"{sql}\n; SET engine = '{engine}'"
        given = QueryOptions(tail=self.tail, now_ms=lambda: self.now_ms, spark=self.spark, **options)
        try:
            return run(statement, self.source, given)
        except QueryError as error:
            return error

    def compare(self, sql: str, *, ordered: bool = False) -> str:
        """Run a statement on both; the outcome in a word."""
        ours, theirs = self.answer(sql), self.answer(sql, "spark")
        if isinstance(theirs, QueryError) and str(theirs).startswith(REFUSALS) and not isinstance(ours, QueryError):
            self.refused[sql] = str(theirs)
            return "refused"
        if isinstance(ours, QueryError) or isinstance(theirs, QueryError):
            if isinstance(ours, QueryError) and isinstance(theirs, QueryError):
                self.failed.append(sql)
                return "failed"
            self.differing.append(f"{sql}\n  DuckDB: {ours!r}\n  Spark:  {theirs!r}")
            return "differing"
        same = (ours.column_names, ours.column_types, str(ours.revision)) == (
            theirs.column_names, theirs.column_types, str(theirs.revision),
        ) and same_rows(ours.rows, theirs.rows, ordered=ordered)  # fmt: skip
        if same:
            self.equal.append(sql)
            return "equal"
        self.differing.append(
            f"{sql}\n  DuckDB: {ours.column_types} {ours!r}\n  Spark:  {theirs.column_types} {theirs!r}"
        )
        return "differing"

    def compare_all(self, statements: Iterable[str]) -> None:
        """Run statements on both, one after the other."""
        for sql in statements:
            self.compare(sql, ordered="order by" in sql.lower().partition("over (")[0])

    def compare_expressions(self, expressions: Iterable[str], template: str) -> None:
        """Run expressions as results of few statements; each by itself where one of them is not equal."""
        for group in batches(expressions, 40):
            sql = template.format(", ".join(group))
            if self.compare(sql) != "equal" and len(group) > 1:
                self.failed[:] = [other for other in self.failed if other != sql]
                self.differing[:] = [other for other in self.differing if not other.startswith(sql)]
                self.refused.pop(sql, None)
                self.compare_all(template.format(expression) for expression in group)

    def counted(self) -> str:
        """How the statements ended."""
        return f"{len(self.equal)} equal, {len(self.refused)} refused, {len(self.failed)} wrong on both"


def batches(expressions: Iterable[str], size: int) -> Iterable[list[str]]:
    """The expressions in groups of one statement each: a job costs as much for thirty results as for one."""
    waiting = list(expressions)
    while waiting:
        yield waiting[:size]
        waiting = waiting[size:]
