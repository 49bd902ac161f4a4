"""The functions that Spark may run in a statement: those whose answers the parity suite compares with DuckDB's.

Names are canonical (`schema.dialect.canonical`). Every other function is refused by the name and at the place where its
user wrote it, before Spark starts.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.schema.dialect import canonical
from hybrid.sql.aggregates import is_percentile
from hybrid.sql.calls import CLOCKS
from hybrid.sql.nodes import all_nodes
from hybrid.sql.row_functions import FUNCTIONS
from hybrid.sql.series import is_series
from hybrid.sql.tokens import error_at, tokens_of

INSTEAD = "Leave out engine = 'spark': DuckDB runs it."

_AGGREGATES = """
    count sum avg min max countif
    distinctcount distinctcountbitmap segmentpartitioneddistinctcount distinctcountsmarthll distinctsum distinctavg
    minmaxrange firstwithtime lastwithtime sumprecision mode histogram boolagg booland boolor
    stddev stddevpop stddevsamp variance varpop varsamp covarpop covarsamp exprmin exprmax argmin argmax minby maxby
    anyvalue countmv summv minmv maxmv avgmv minmaxrangemv
    distinctcountmv distinctcountbitmapmv distinctcounthllmv
"""
_WINDOWS = "rownumber rank denserank percentrank cumedist ntile"
_MORE = """
    arraysum arrayaverage todatetime fromdatetime datetimeconvert split strrpos repeat codepoint encodeurl decodeurl
    toutf8 fromutf8 tobase64 frombase64 bytestohex hextobytes hex unhex sha sha1 jsonformat tojsonmapstr
    sin cos tan asin acos atan atan2 sinh cosh tanh cbrt degrees radians pi unnest
"""
AGGREGATES = frozenset(_AGGREGATES.split())
SCALARS = frozenset((*FUNCTIONS, *_WINDOWS.split(), *_MORE.split()))
_APPROXIMATE = "approximates, and two engines approximate differently; {} is exact"
_BY_ORDER = "depends on the order of rows, which Spark does not keep"
_ORDERED = "first last arbitrary list arrayagg stringagg listagg groupconcat"
# Why a function is refused, for those where the reason helps.
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "distinctcounthll", "distinctcounthllplus", "distinctcountull", "distinctcountthetasketch",
            "distinctcountcpcsketch", "approxcountdistinct",
        ),
        _APPROXIMATE.format("DISTINCTCOUNT"),
    ),
    **dict.fromkeys(("approxquantile", "approxtopk"), _APPROXIMATE.format("PERCENTILE")),
    **dict.fromkeys(_ORDERED.split(), _BY_ORDER),
    **dict.fromkeys(("random", "genrandomuuid", "uuid"), "gives other values in each run"),
}  # fmt: skip
_DIGEST = ("tdigest", "kll")


def is_run_by_spark(name: str) -> bool:
    """Whether a statement for Spark may call a function of this canonical name."""
    return name in SCALARS or name in AGGREGATES or (is_percentile(name) and _reason(name) is None)


def _reason(name: str) -> str | None:
    if is_percentile(name):
        if any(word in name for word in _DIGEST) and "smart" not in name:
            return _APPROXIMATE.format("PERCENTILE")
        return None
    return _REASONS.get(name)


def refuse_unlisted(tree: exp.Query, sql: str) -> None:
    """QueryError (150), with the place, for a function that Spark does not run. `tree` is as its user wrote it."""
    for token in tokens_of(sql) if "gapfill" in sql.lower().replace("_", "") else ():
        if canonical(token.text) == "gapfill":
            raise refusal(sql, token.start, "GAPFILL", "is written in clauses that Spark does not have")
    for node in all_nodes(tree):
        if isinstance(node, exp.GroupConcat):
            raise refusal(sql, start_of(node), "STRING_AGG", _BY_ORDER)
        if isinstance(node, CLOCKS):
            raise refusal(sql, start_of(node), node.sql().upper())
        if isinstance(node, exp.Anonymous) and not is_run_by_spark(canonical(node.name)) and not _is_series(node):
            raise refusal(sql, start_of(node), node.name.upper(), _reason(canonical(node.name)))


def _is_series(node: exp.Anonymous) -> bool:
    return isinstance(node.parent, exp.Table) and is_series(node.parent)


def refusal(sql: str, place: int | None, what: str, reason: str | None = None) -> QueryError:
    """The error for a part of a statement that Spark does not run: what, why, where, and what would do."""
    because = f": it {reason}" if reason else ""
    message = f"Spark does not run {what}{because}."
    if place is None:
        return QueryError(message, pinot_code=150, hint=INSTEAD)
    return error_at(sql, place, message.rstrip(".") + ". It stands", INSTEAD)


def start_of(node: exp.Expr) -> int | None:
    """The position of a node in the text: its own, else the first of its parts, else that of a node around it."""
    around: exp.Expr | None = node
    while around is not None:
        if "start" in around.meta:
            return int(around.meta["start"])
        starts = [int(part.meta["start"]) for part in all_nodes(around) if "start" in part.meta]
        if starts:
            return min(starts)
        around = around.parent
    return None
