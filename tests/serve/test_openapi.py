"""The application's document: complete, of one shape for errors, without any other host; and no input makes a 500."""

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy

from tests.serve.app import MOVE, MOVED, App, Worker, fail_at_once

if TYPE_CHECKING:
    import schemathesis

KNOWN = {"table": "orders", "schema": "orders", "segment": MOVED, "type": MOVE}
# Characters of a path's and a query's values. A client takes many seconds to escape a text of millions, which a server
# refuses by its length.
VALUES_MAX = 10_000
# Requests for each path; more find more: HYBRID_API_EXAMPLES=50.
EXAMPLES = int(os.environ.get("HYBRID_API_EXAMPLES", "2"))
# What a schema says of values without excluding any.
NOTES = {"title", "description", "example", "examples"}
OWN_SHAPES = {"/metrics", "/livez", "/health", "/", "/readyz", "/version"}


@pytest.mark.slow
def test_every_path_is_described(app: App) -> None:
    document = app.get("/openapi.json")
    assert "422" not in str(document) and "HTTPValidationError" not in document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            place = f"{method} {path}"
            assert operation.get("summary") and operation.get("tags") and operation.get("description"), place
            answers = operation["responses"]
            shapes = {str(answers[code]["content"]["application/json"]["schema"]) for code in ("400", "404", "409")}
            assert shapes == {"{'$ref': '#/components/schemas/Error'}"}, place
            if path not in OWN_SHAPES:
                contents = answers["200"]["content"].values()  # an export has a type for each format
                assert contents and all("example" in one or one.get("schema") for one in contents), place
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                assert "example" in body or "examples" in str(document), place


@pytest.mark.slow
def test_operation_ids_are_unique(app: App) -> None:
    operations = [one for item in app.get("/openapi.json")["paths"].values() for one in item.values()]
    ids = [one["operationId"] for one in operations]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_the_list_of_paths_needs_no_other_host(app: App) -> None:
    page = app.get("/docs")
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", page) and "<script" not in page
    for path in app.get("/openapi.json")["paths"]:
        assert f" {path}" in page


@pytest.mark.slow
@pytest.mark.parametrize("requests", ["fitting", "unfitting"])
def test_no_input_makes_a_500(orders: App, requests: str) -> None:
    """Requests made from the document, with names that are there and names that are not."""
    import schemathesis  # takes half a second, which `make unit` need not wait
    from schemathesis import GenerationMode

    mode = GenerationMode.POSITIVE if requests == "fitting" else GenerationMode.NEGATIVE
    tried: set[str] = set()
    paths = orders.get("/openapi.json")["paths"]
    schema = schemathesis.openapi.from_url(f"{orders.url}/openapi.json")
    with Worker(orders.home, fail_at_once):
        operations = [result.ok() for result in schema.get_all_operations()]
        for operation in sorted(operations, key=lambda one: one.method == "delete"):
            if mode is GenerationMode.NEGATIVE and fits_always(paths[operation.path][operation.method]):
                continue
            names = {parameter.name for parameter in operation.path_parameters}
            known = {name: value for name, value in KNOWN.items() if name in names}
            fixed = [None, known] if known.keys() == names and names and operation.method != "delete" else [None]
            for path_parameters in fixed:
                try_out(operation.as_strategy(mode, path_parameters=path_parameters), tried)
    assert tried >= paths.keys() if mode is GenerationMode.POSITIVE else len(tried) > 20


def fits_always(operation: dict[str, Any]) -> bool:
    """Whether no request is unfitting: no text is, as a name in a path. Hypothesis draws 459 before it gives up."""
    parameters = operation.get("parameters", [])
    names = [one for one in parameters if one["in"] == "path" and one["schema"].keys() - NOTES == {"type"}]
    return "requestBody" not in operation and parameters == [one for one in names if one["schema"]["type"] == "string"]


def try_out(strategy: "SearchStrategy[schemathesis.Case]", tried: set[str]) -> None:
    @seed(7)
    @settings(max_examples=EXAMPLES, database=None, phases=[Phase.generate], suppress_health_check=HealthCheck)
    @given(case=strategy)
    def run(case: "schemathesis.Case") -> None:
        tried.add(case.path)
        written = sum(len(str(value)) for value in (*case.path_parameters.values(), *case.query.values()))
        assume(written <= VALUES_MAX)
        response = case.call()
        assert response.status_code != 500, response.text
        if response.status_code >= 400 and case.path != "/readyz":
            assert response.json()["error"], case.as_curl_command()

    # A part that cannot be wrong (a path without parameters and body) has no unfitting requests.
    with suppress(Unsatisfiable):
        run()
