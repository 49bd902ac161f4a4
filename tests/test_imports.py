"""The imports point one way, from the command line down to the errors; siblings do not import each other.

The engines (Spark, DuckDB, Kafka's client) are imported where the design lets them be, and nowhere else.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "hybrid"

# Parts by layer, lowest first. A part imports lower layers only; `api` is every module at the package's top.
LAYERS = [
    {"errors", "progress", "plain", "clock", "garbage", "folder_setting", "spark_errors"},
    {"durable", "disk"},
    {"spec"},
    {"table", "jvm"},
    {"lake", "catalog", "sql", "files"},
    {"ingest", "move", "replace", "query", "flow"},
    {"api"},
    {"cli", "demo", "serve"},
]
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}
# The command line starts the demo and the server; all are thin over the API.
ALLOWED_SIBLINGS = {("cli", "demo"), ("cli", "serve")}

ENGINES = {
    "pyspark": {"ingest", "move", "replace", "flow", "lake"},
    "delta": {"ingest", "move", "replace", "flow", "lake"},
    "duckdb": {"query"},
    "kafka": {"ingest", "query", "jvm"},
}


def part_of(module: str) -> str:
    """The part that a dotted module name inside the package belongs to."""
    names = module.split(".")[1:]
    return names[0] if names and names[0] in RANK else "api"


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"hybrid.{name.name}" for name in node.names]
            found |= set(names) if node.module == "hybrid" else {node.module}
    return found


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    importer = part_of(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
    for module in imports_of(path):
        if module.split(".")[0] != "hybrid":
            continue
        imported = part_of(module)
        same = imported == importer or (importer, imported) in ALLOWED_SIBLINGS
        assert same or RANK[imported] < RANK[importer], f"{importer} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_engines_stay_where_they_belong(path: Path) -> None:
    part = part_of(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
    for module in imports_of(path):
        allowed = ENGINES.get(module.split(".")[0])
        assert allowed is None or part in allowed, f"{part} imports {module}"


def test_pure_parts_import_no_engine() -> None:
    heavy = {"pyspark", "delta", "duckdb", "kafka", "deltalake", "sqlalchemy"}
    for part in ("table", "spec", "sql"):
        for path in (ROOT / part).rglob("*.py"):
            assert not {module.split(".")[0] for module in imports_of(path)} & heavy, path


def test_modules_are_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines for path in MODULES if (lines := len(path.read_text().splitlines())) > 500
    }
    assert not long
