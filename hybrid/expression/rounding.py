"""Notes on ROUND with a second argument that users of SQL mean as decimals: in Pinot it is a step."""

from __future__ import annotations

from sqlglot import exp

_DECIMALS_MAX = 6  # a larger number is meant as the step that it is
_VALUE_MAX = 40


def rounding_notes(tree: exp.Expr) -> tuple[str, ...]:
    """A sentence for each ROUND of an expression or statement as it was written, whose step is 1 to 6."""
    notes: dict[str, None] = {}
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() == "round" and len(node.expressions) == 2:
            value, step = node.expressions
            if isinstance(step, exp.Literal) and step.name in _STEPS:
                notes[_note(value, step.name)] = None
    return tuple(notes)


_STEPS = frozenset(map(str, range(1, _DECIMALS_MAX + 1)))


def _note(value: exp.Expr, step: str) -> str:
    written = value.sql()
    shown = written if len(written) <= _VALUE_MAX else "..."
    decimals = "1 decimal" if step == "1" else f"{step} decimals"
    return (
        f"ROUND({shown}, {step}) rounds to a multiple of {step}, as in Pinot. ROUND_DECIMAL({shown}, {step}) rounds to "
        f"{decimals}."
    )
