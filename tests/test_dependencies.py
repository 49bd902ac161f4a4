"""Everything imported is declared in pyproject.toml, and everything declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {"hybrid", "tests", "benchmarks"}
# Modules that some versions of Python have in the standard library, and what brings them to the others.
STANDARD_IN_SOME = {"compression"}  # since 3.14
FOR_OLDER_PYTHONS = {"backports": ["backports.zstd"]}
# Declared and never imported, with the reason.
NOT_IMPORTED = {
    "delta-spark": "the version that must fit pyspark's; its jar is in jars.lock",
    "uvloop": "uvicorn finds it",
}
# Run by an interpreter of their own, or installed by `make fuzz` or by a benchmark.
ELSEWHERE = ("tests/clients/", "tests/hostile/fuzz.py", "benchmarks/serving/chdb.py")


NO_PACKAGES = sys.stdlib_module_names | OWN | STANDARD_IN_SOME
_IMPORT = re.compile(r"^\s*(?:from|import) (\w+)|import_module\(", re.MULTILINE)


def normalized(name: str) -> str:
    """The name of a distribution as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: Iterable[str]) -> set[str]:
    return {normalized(re.split(r"[^A-Za-z0-9._-]", requirement)[0]) for requirement in requirements}


def imported_packages(source: str) -> set[str]:
    """The top-level packages that a module imports, wherever the import stands, without the standard library's."""
    names = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            names |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return {name.partition(".")[0] for name in names} - NO_PACKAGES


@cache
def imports_below(folder: str) -> Mapping[str, set[str]]:
    """The packages that are imported, each with files that do. Parsing every file would take seconds."""
    importers = dict[str, set[str]]()
    for path in sorted((ROOT / folder).rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        if not relative.startswith(ELSEWHERE):
            source = path.read_text(encoding="utf-8")
            if set(_IMPORT.findall(source)) - NO_PACKAGES - importers.keys():
                for package in imported_packages(source):
                    importers.setdefault(package, set()).add(relative)
    return importers


installed = cache(packages_distributions)  # it reads the lists of all installed files


def distributions(package: str) -> set[str]:
    """The distributions that bring a package."""
    names = {**FOR_OLDER_PYTHONS, **installed()}.get(package, [package])
    return {normalized(name) for name in names}


REQUIRED = declared(PROJECT["dependencies"])
DEVELOPMENT = declared(PROJECT["optional-dependencies"]["dev"])
# Whoever lacks one of these is told so where it is needed.
EXTRAS = ("postgresql", "spark-connect", "store")
OPTIONAL = {"polars"}.union(*(declared(PROJECT["optional-dependencies"][name]) for name in EXTRAS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "available"),
    [
        ("hybrid", REQUIRED | OPTIONAL),
        ("tests", REQUIRED | DEVELOPMENT),
        ("benchmarks", REQUIRED | DEVELOPMENT),
    ],
)
def test_every_import_is_declared(folder: str, available: set[str]) -> None:
    undeclared = {
        package: sorted(files)
        for package, files in imports_below(folder).items()
        if not distributions(package) & available
    }
    assert undeclared == {}


@pytest.mark.slow
def test_every_dependency_is_imported() -> None:
    brought = {name for package in imports_below("hybrid") for name in distributions(package)}
    assert REQUIRED - brought == set(NOT_IMPORTED)


def test_imports_are_found_wherever_they_stand() -> None:
    source = (
        "import os, numpy.linalg\nfrom hybrid import api\nfrom . import x\n"
        "def f():\n    from kafka.errors import KafkaError\n    importlib.import_module('polars')\n"
    )
    assert imported_packages(source) == {"numpy", "kafka", "polars"}


def test_names_of_distributions() -> None:
    assert declared(["A.b_C[x]>=1; python_version < '3.14'", "d"]) == {"a-b-c", "d"}
