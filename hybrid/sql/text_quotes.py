"""The hint for a text without its quotes: it was read as the name of a column."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like, exp.ILike)


def quotes_hint(node: exp.Expr | None, fields: Iterable[FieldSpec]) -> str | None:
    """The hint for a word that is compared with a column of texts, as `status = OPEN` and `status = "OPEN"`.

    `node` is the word as the parser read it, `fields` are the columns that there are. None for anything else.
    """
    if not isinstance(node, exp.Column) or node.table or not isinstance(node.parent, COMPARISONS):
        return None
    texts = {field.name.lower() for field in fields if field.data_type in (DataType.STRING, DataType.JSON)}
    beside = (part for part in node.parent.iter_expressions() if isinstance(part, exp.Column))
    if not any(part.name.lower() in texts for part in beside):
        return None
    why = "Double quotes mean a column. " if node.this.quoted else ""
    return f"{why}If a text is meant, write '{node.name}' in single quotes."
