"""Where we differ from Pinot on purpose: what may differ there. docs/reference/query.md says why, row by row."""

from __future__ import annotations

NAMES, TYPES, ROWS, ERRORS = "names", "types", "rows", "errors"

# As they stand in the first column of the docs' table -> what of an answer may differ.
DIFFERENCES: dict[str, frozenset[str]] = {
    "whole-number arithmetic": frozenset((TYPES,)),
    "types of MIN, MAX, MINMAXRANGE, MODE": frozenset((TYPES, ROWS)),
    "aggregates of no rows": frozenset((TYPES, ROWS)),
    "precise sums and quotients of BIG_DECIMAL": frozenset((TYPES, ROWS)),
    "name of `count(column)`": frozenset((NAMES,)),
    "approximate functions": frozenset((ROWS,)),
    "FLOAT and BIG_DECIMAL in conditions": frozenset((NAMES, TYPES, ROWS)),
    "answers without rows": frozenset((NAMES, TYPES, ROWS)),
    "SQL that Pinot 0.11 does not answer": frozenset((ERRORS,)),
    "JSON values that are not there": frozenset((ERRORS,)),
    "JSON columns": frozenset((ROWS,)),
    "OFFSET behind GROUP BY": frozenset((ROWS,)),
    "`$` columns that do not exist": frozenset((ERRORS,)),
    "EXPLAIN PLAN FOR": frozenset((NAMES, TYPES, ROWS)),
    "codes of errors": frozenset((ERRORS,)),
    "constants": frozenset((NAMES, TYPES, ROWS)),
    "DOUBLEs as text": frozenset((ROWS,)),
}
