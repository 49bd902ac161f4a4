"""The same statements on DuckDB and on Spark: names, types, rows and revision are equal, or Spark refuses by name."""

from __future__ import annotations

import re

import pytest

from hybrid.errors import QueryError
from hybrid.schema.dialect import canonical
from hybrid.sql.spark_functions import AGGREGATES, SCALARS, is_run_by_spark
from tests.docs.pages import reference
from tests.examples import seeds
from tests.parity.fixtures import fixtures
from tests.query.spark_engine import corpus
from tests.query.spark_engine.both_engines import BothEngines
from tests.sql import rows

_NAMED = re.compile(r"`([A-Z][A-Z0-9_]+)")
_CALL = re.compile(r"(\w+)\s*\(")


def assert_equal(engines: BothEngines, *, refused_max: int = 0, failed_max: int = 0) -> None:
    assert engines.differing == [], "\n".join(engines.differing)
    assert len(engines.failed) <= failed_max, engines.failed
    assert len(engines.refused) <= refused_max, engines.refused


@pytest.mark.spark
@pytest.mark.slow
def test_aggregations(parity: BothEngines) -> None:
    parity.compare_expressions(corpus.AGGREGATES, "select {} from parity")
    parity.compare_expressions(corpus.AGGREGATES, "select b, {} from parity group by b order by b")
    assert_equal(parity)


@pytest.mark.spark
@pytest.mark.slow
def test_expressions_of_one_row(things: BothEngines) -> None:
    things.compare_expressions([*corpus.SCALARS, *rows.VALUES, *rows.CONDITIONS], "select {} from things")
    assert_equal(things)


@pytest.mark.spark
@pytest.mark.slow
def test_shapes_of_statements(parity: BothEngines) -> None:
    parity.compare_all(corpus.shapes())
    assert_equal(parity)


@pytest.mark.spark
@pytest.mark.slow
def test_the_corpus_of_pinot(parity: BothEngines) -> None:
    """A third of the statements of tests/parity, with HYBRID_SEEDS=3 all: at most a twentieth is refused."""
    statements = [fixture.sql for fixture in fixtures() if "explain" not in fixture.sql]
    chosen = [sql for third in seeds(0, 1)[:3] for sql in statements[third::3]]
    parity.compare_all(chosen)
    assert len(parity.equal) >= len(chosen) * 4 // 5, parity.counted()
    assert_equal(parity, refused_max=len(chosen) // 20, failed_max=len(chosen) // 10)


def test_the_docs_say_which_functions_spark_runs() -> None:
    page = reference("function").read_text(encoding="utf-8")
    every, _, rest = page.partition("\n## Functions on Spark\n")
    on_spark, _, refused = rest.partition("\n## ")[0].partition("*function · instead*")
    named = {canonical(name) for name in _NAMED.findall(every.partition("\n## Functions\n")[2])}
    refused_names = {canonical(name) for name in _NAMED.findall(refused)}
    windows = {"lag", "lead", "firstvalue", "lastvalue"}
    assert {name for name in named if not is_run_by_spark(name)} <= refused_names
    assert {canonical(name) for name in _NAMED.findall(on_spark)} - windows <= AGGREGATES | SCALARS
    assert {
        name for name in AGGREGATES | SCALARS if name in canonical(on_spark) or name in named
    } == AGGREGATES | SCALARS


def test_every_function_is_compared() -> None:
    texts = [*corpus.AGGREGATES, *corpus.SCALARS, *corpus.shapes(), *rows.VALUES, *rows.CONDITIONS]
    called = {canonical(name) for text in texts for name in _CALL.findall(text)}
    assert (AGGREGATES | SCALARS) - called == set()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("sql", corpus.REFUSED)
def test_what_spark_does_not_run_is_refused_by_name_and_place(parity: BothEngines, sql: str) -> None:
    assert not isinstance(parity.answer(sql), QueryError)
    error = parity.answer(sql, "spark")
    assert isinstance(error, QueryError)
    assert corpus.REFUSED[sql] in str(error)
    assert error.hint == "Leave out engine = 'spark': DuckDB runs it."
