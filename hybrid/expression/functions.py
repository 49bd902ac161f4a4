"""The functions of transforms and filters, by Pinot's names without regard to case and underscores."""

from __future__ import annotations

from hybrid.errors import suggestion
from hybrid.expression import arithmetic, jsons, logic, patterns, texts, times
from hybrid.expression.rules import Rule
from hybrid.schema.dialect import canonical

# Grouped as in the documentation.
FAMILIES: dict[str, dict[str, Rule]] = {
    "arithmetic": arithmetic.RULES,
    "conditions": logic.RULES,
    "text": texts.RULES,
    "patterns": patterns.RULES,
    "JSON": jsons.RULES,
    "time": times.RULES,
}
_NAMES = {canonical(name): name for rules in FAMILIES.values() for name in rules}
_RULES = {canonical(name): rule for rules in FAMILIES.values() for name, rule in rules.items()}
# The most popular functions of Pinot that are missing here, with the reason or an alternative.
ABSENT = {
    "groovy": "scripts are not run",
    "casewhen": "write CASE WHEN ... THEN ... ELSE ... END",
    "lookup": "join when you query",
    "rand": "a row must be the same however often it is read",
    "stpoint": "geometry is not built",
    "tosphericalgeography": "geometry is not built",
}


def rule_of(name: str, count: int) -> Rule:
    """The rule of the function `name` with `count` arguments. ValueError when there is none."""
    rule = _RULES.get(canonical(name))
    if rule is None:
        if canonical(name) in ABSENT:
            raise ValueError(f"function '{name}' is not supported: {ABSENT[canonical(name)]}")
        near = suggestion(canonical(name), _NAMES)
        raise ValueError(f"function '{name}' does not exist.{_spelled(near)}".rstrip("."))
    if count < rule.fewest or (rule.most is not None and count > rule.most):
        raise ValueError(f"{_NAMES[canonical(name)]} takes {_arity(rule)}, not {count}{_hint(name, count)}")
    return rule


def _spelled(near: str) -> str:
    """A suggestion with the name in Pinot's spelling."""
    return near if not near else f" Did you mean '{_NAMES[near.split(chr(39))[1]]}'?"


def _arity(rule: Rule) -> str:
    most = "or more" if rule.most is None else f"to {rule.most}"
    count_text = str(rule.fewest) if rule.fewest == rule.most else f"{rule.fewest} {most}"
    return f"{count_text} argument{'s' * (count_text != '1')}"


def _hint(name: str, count: int) -> str:
    return "; roundDecimal(x) rounds to a whole number" if (canonical(name), count) == ("round", 1) else ""
