"""Imports point one way, from the command line down to the errors, and no module imports itself by way of others.

Imports count wherever they stand: in functions and under `TYPE_CHECKING`, too. The engines (Spark, DuckDB, Kafka's
client) are imported where the design lets them be, and nowhere else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "hybrid"

# Packages by layer, lowest first: each imports lower layers only. docs/architecture.md says what each is for.
LAYERS = (
    {"errors", "clock", "progress"},
    {"runtime"},
    {"logs", "store"},
    {"schema"},
    {"formats"},
    {"expression"},
    {"config"},
    {"table"},
    {"records", "kafka"},
    {"jvm"},
    {"lake", "catalog", "files", "sql"},
    {"home"},
    {"ingest", "move", "replace", "flow", "query"},
    {"flows"},
    {"operations"},
    {"api"},
    {"rpc"},
    {"doctor", "demo"},
    {"serve"},
    {"cli"},
)
RANK = {package: rank for rank, packages in enumerate(LAYERS) for package in packages}

ENGINES = {
    "pyspark": {"ingest", "move", "replace", "flow", "lake", "query.spark"},
    "delta": {"ingest", "move", "replace", "flow", "lake"},
    "duckdb": {"query", "move", "lake.worker_daemon"},
    "kafka": {"kafka", "query"},
    "confluent_kafka": {"kafka", "query", "formats"},
}
PURE = ("schema", "formats", "expression", "config", "table", "records", "sql")
AT_THE_ROOT = {"__init__", "errors", "clock", "progress", "logs", "flows"}

Graph = Mapping[str, set[str]]


def module_name(path: Path, root: Path = ROOT) -> str:
    """`hybrid.sql.texts` of `hybrid/sql/texts.py`, `hybrid.sql` of its `__init__.py`."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# An import wherever it stands, but for long texts. Parsing whole modules takes seconds.
_IMPORT = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|^(?P<statement> *(?:from +[\w.]+ +import +(?:\([^)]*\)|[^(\n]+)|import +.+).*)',
    re.MULTILINE,
)


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node. Imports stand nowhere else, and expressions are most of a module."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, None) or ():
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)


@cache
def imported_names(path: Path) -> set[str]:
    """All that a module imports, by dotted name; of `from a import b` both `a` and `a.b`."""
    text = path.read_text(encoding="utf-8")
    return names_in("\n".join(found["statement"].lstrip() for found in _IMPORT.finditer(text) if found["statement"]))


def names_in(text: str) -> set[str]:
    names = set[str]()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"imports are absolute: {ast.unparse(node)}"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@cache
def import_graph(root: Path = ROOT) -> Graph:
    """Which module of the package imports which."""
    modules = {module_name(path, root): imported_names(path) for path in root.rglob("*.py")}
    graph = dict[str, set[str]]()
    for module, names in modules.items():
        imported = {name for name in names if name in modules and name != module}
        # `from a import b` of a module b imports b; that it passes a's (empty) `__init__` is no edge of its own.
        graph[module] = {name for name in imported if not any(other.startswith(f"{name}.") for other in imported)}
    return graph


def cycles(graph: Graph) -> list[list[str]]:
    """The groups of modules that import each other, by Tarjan's algorithm."""
    index, low, stack, found = dict[str, int](), dict[str, int](), list[str](), list[list[str]]()

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for imported in sorted(graph[module]):
            if imported not in index:
                visit(imported)
                low[module] = min(low[module], low[imported])
            elif imported in stack:
                low[module] = min(low[module], index[imported])
        if low[module] == index[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def upward_imports(graph: Graph) -> list[str]:
    """The imports that do not point down, as `importer imports imported`."""
    wrong = []
    for module, imported in graph.items():
        for other in imported:
            above, below = package_of(module), package_of(other)
            if above is not None and above != below and (below is None or RANK[below] >= RANK[above]):
                wrong.append(f"{module} imports {other}")
    return sorted(wrong)


def package_of(module: str) -> str | None:
    """The part below `hybrid` that a module belongs to; None for `hybrid` itself, which imports the API."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


@pytest.mark.slow
def test_the_imports_are_those_of_the_whole_module() -> None:
    for path in MODULES:
        assert imported_names(path) == names_in(path.read_text(encoding="utf-8")), path


def test_imports_point_down() -> None:
    assert upward_imports(import_graph()) == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycles(import_graph()) == []


def planted(tmp_path: Path, **modules: str) -> Graph:
    """The graph of a package with these modules: `sql__texts="import ..."`."""
    for name, text in modules.items():
        path = tmp_path / "hybrid" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return import_graph(tmp_path / "hybrid")


def test_a_planted_cycle_is_found(tmp_path: Path) -> None:
    """Also one that is closed by an import for types and by one inside a function."""
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hybrid.sql.names import Name\n"
    graph = planted(
        tmp_path,
        sql__texts=typed,
        sql__names="from hybrid.sql import calls",
        sql__calls="def f():\n    import hybrid.sql.texts\n",
    )
    assert cycles(graph) == [["hybrid.sql.calls", "hybrid.sql.names", "hybrid.sql.texts"]]


def test_a_planted_upward_import_is_found(tmp_path: Path) -> None:
    graph = planted(
        tmp_path, sql__texts="def f():\n    from hybrid.query import plan\n", query__plan="", table__names=""
    )
    assert upward_imports(graph) == ["hybrid.sql.texts imports hybrid.query.plan"]


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_engines_stay_where_they_belong(path: Path) -> None:
    module = module_name(path)
    places = {package_of(module), ".".join(module.split(".")[1:3])}
    for name in imported_names(path):
        allowed = ENGINES.get(name.split(".")[0])
        assert allowed is None or places & allowed, f"{module} imports {name}"


def test_pure_parts_import_no_engine() -> None:
    heavy = {"pyspark", "delta", "duckdb", "kafka", "deltalake", "sqlalchemy"}
    for package in PURE:
        for path in (ROOT / package).rglob("*.py"):
            assert not {name.split(".")[0] for name in imported_names(path)} & heavy, path


def test_the_root_holds_what_users_import_and_what_all_modules_share() -> None:
    assert {path.stem for path in ROOT.glob("*.py")} == AT_THE_ROOT


LINES_MAX, LONG_MAX = 400, 5
LONG = {
    "query/cache/cached_rows.py": "All steps change one state in one transaction, tuned to tenths of a ms.",
    "query/cache/follower.py": "Steps and the statements that await them share state, tuned to tenths of a ms.",
    "api/hybrid.py": "The public class: what users call stands in one place, and each method only delegates.",
}


def test_modules_are_small() -> None:
    """At most five modules are longer than `LINES_MAX`, each for the reason that is given here."""
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path for path, count in lines.items() if count > LINES_MAX} == LONG.keys()
    assert len(LONG) <= LONG_MAX and max(lines.values()) <= 500
