"""Writes docs/reference/hint.md: each message of the product with the hint below it, read from the source.

    python -m tests.docs.hint_list

A value in a text is its name in capital letters, or `...`.
"""

from __future__ import annotations

import ast
import textwrap
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from hybrid import errors
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "hint.md"
_HEAD = """# Hint

```
$ hybrid segment list ordrs
error: Table 'ordrs' does not exist. Did you mean 'orders'?
```

Many messages have a second line, `hint:`, with the next command or the missing piece. With `--json` it is the key
`hint`, over HTTP too, and `error.hint` in Python. Below is every hint with its message. A word in capital letters is
a value. A message without a hint says in itself what to do; [Errors](../errors.md) has wrong inputs with their
messages, and the exit codes.

This page is written from the source by `python -m tests.docs.hint_list`, and a test compares the two.
"""
_GIVEN = "hint="
_GROUPS = {
    2: "## Exit code 2",
    1: "## Exit code 1",
    4: "## Exit code 4",
    0: "## Other\n\nOf findings of the doctor, and of messages whose exit code depends on the case.",
}


@dataclass(frozen=True, order=True)
class Hint:
    """A message, its hint, and the exit code of the error; 0 where the source does not name the error's class."""

    exit_code: int
    message: str
    hint: str


@cache
def hints() -> list[Hint]:
    """Every hint in the source whose text can be read there, in the order of the page."""
    found: set[Hint] = set()
    for path in sorted((ROOT / "hybrid").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if _GIVEN in source:
            found.update(_Module(source).hints())
    return sorted(found, key=lambda hint: (list(_GROUPS).index(hint.exit_code), hint.message.lower(), hint.hint))


def page() -> str:
    """The text of the page."""
    lines = [_HEAD]
    code = None
    for hint in hints():
        if hint.exit_code != code:
            code = hint.exit_code
            lines.append(f"\n{_GROUPS[code]}\n\n*message · hint*\n\n")
        lines.append(f"- {_wrapped(hint.message)}\\\n  {_wrapped(hint.hint)}\n")
    return "".join(lines)


def _wrapped(text: str) -> str:
    """The text as code in the page, in lines that fit."""
    tick = "``" if "`" in text else "`"
    inner = f" {text} " if tick == "``" else text
    return "\n  ".join(textwrap.wrap(f"{tick}{inner}{tick}", 116, break_long_words=False, break_on_hyphens=False))


class _Module:
    """A parsed module, and the texts that its names can stand for."""

    def __init__(self, source: str) -> None:
        self._tree = ast.parse(source)
        self._lines = [number for number, line in enumerate(source.split("\n"), 1) if _GIVEN in line]
        self._functions = {node.name: node for node in _statements(self._tree) if isinstance(node, ast.FunctionDef)}

    def hints(self) -> Iterator[Hint]:
        """Each call with a hint, directly in the module or in one of its functions."""
        yield from self._in_scope(self._tree, {})

    def _in_scope(self, scope: ast.AST, outer: dict[str, list[ast.expr]]) -> Iterator[Hint]:
        nodes = list(_own_nodes(scope))
        values = {**outer, **_assigned(nodes)}
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if self._has_hints(node):
                    yield from self._in_scope(node, values)
            elif isinstance(node, ast.Call):
                yield from self._of_call(node, values)

    def _has_hints(self, scope: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """By the lines: most functions have none, and looking at each node of all modules takes seconds."""
        return any(scope.lineno <= line <= (scope.end_lineno or line) for line in self._lines)

    def _of_call(self, call: ast.Call, values: dict[str, list[ast.expr]]) -> Iterator[Hint]:
        given = next((word.value for word in call.keywords if word.arg == "hint"), None)
        if given is None:
            return
        messages = [text for arg in reversed(call.args) for text in self._texts(arg, values) if " " in text]
        for message in messages[:1]:
            for hint in self._texts(given, values):
                if hint.strip(".") and hint != "...":
                    yield Hint(_exit_code(call), " ".join(message.split()), " ".join(hint.split()))

    def _texts(self, node: ast.expr, values: dict[str, list[ast.expr]], depth: int = 0) -> list[str]:
        """The texts that an expression can be; none where the source does not tell."""
        if depth > 6:
            return []
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else []
        if isinstance(node, ast.JoinedStr):
            return ["".join(_part(part, values) for part in node.values)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = (self._texts(side, values, depth + 1) or ["..."] for side in (node.left, node.right))
            return [one + other for one in left for other in right]
        if isinstance(node, ast.IfExp):
            return self._texts(node.body, values, depth + 1) + self._texts(node.orelse, values, depth + 1)
        if isinstance(node, ast.BoolOp):
            return [text for value in node.values for text in self._texts(value, values, depth + 1)]
        if isinstance(node, ast.Name):
            others = {name: found for name, found in values.items() if name != node.id}
            return [text for value in values.get(node.id, []) for text in self._texts(value, others, depth + 1)]
        if isinstance(node, ast.Call):
            function = self._functions.get(_last_name(node.func) or "")
            if function is not None:
                inner = {**values, **_assigned(_own_nodes(function))}
                returns = [each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value]
                return [text for value in returns for text in self._texts(value, inner, depth + 1)]
        return []


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements of a module, in the order of `ast.walk`, without what is in expressions."""
    waiting = deque[ast.AST]([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without what is inside of functions and classes in it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """What is assigned to each name of a scope, by its own nodes."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)  # type: ignore[attr-defined]
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):  # type: ignore[attr-defined]
                for name, value in zip(target.elts, node.value.elts, strict=False):  # type: ignore[attr-defined]
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(value)
    return found


def _part(part: ast.expr, values: dict[str, list[ast.expr]]) -> str:
    """A piece of an f-string: its text, the text of a constant, or the name of the value in capital letters."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    if isinstance(part.value, ast.Name) and len(known := values.get(part.value.id, [])) == 1:
        constant = known[0]
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
            return constant.value
    name = _last_name(part.value)
    return name.strip("_").upper() if name else "..."


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _exit_code(call: ast.Call) -> int:
    """Of the error's class; of `at`, `fail` and the like, which make SpecErrors and QueryErrors, 1; else 0."""
    names = {node.id for node in ast.walk(call.func) if isinstance(node, ast.Name)}
    for name in names:
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, errors.HybridError):
            return kind.exit_code
    return 1 if _last_name(call.func) in {"fail", "at", "error_at", "failed"} else 0


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
