"""The page of a table's segments: filter, pages, empty table, hostile text. No JVM."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.serve.console.segments import shown_segments
from tests.console.page_requests import page, twin
from tests.serve.app import App, lay_orders

PLACE = "/ui/tables/orders/segments"


def segment(number: int, half: str = "OFFLINE", state: str = "ONLINE") -> dict[str, Any]:
    return {"name": f"s{number}", "half": half, "state": state, "rows": 10, "bytes": 100}


def test_a_page_of_many() -> None:
    many = [segment(number) for number in range(250)]
    none = {"half": "", "state": ""}
    first, last = shown_segments(many, none, ""), shown_segments(many, none, "230")
    assert (first["from"], first["earlier"], first["later"], len(first["segments"])) == (0, None, 100, 100)
    assert (last["from"], last["earlier"], last["later"], len(last["segments"])) == (200, 100, None, 50)
    assert first["rows"] == 2500 and first["bytes"] == 25_000 and first["matching"] == 250
    for wrong in ("-1", "x", "9" * 30, "²"):
        assert shown_segments(many, none, wrong)["from"] == 0


def test_only_what_is_chosen() -> None:
    both = [segment(1), segment(2, "REALTIME", "CONSUMING"), segment(3, "REALTIME", "DONE")]
    shown = shown_segments(both, {"half": "REALTIME", "state": "CONSUMING"}, "")
    assert [found["name"] for found in shown["segments"]] == ["s2"]
    assert shown["total"] == 3 and shown["choices"]["state"] == ["CONSUMING", "DONE", "ONLINE"]


@pytest.mark.slow
def test_the_page_and_its_twin(app: App) -> None:
    lay_orders(app.home)
    model = twin(app, PLACE)
    assert model["table"] == "orders" and model["total"] == len(model["segments"]) > 0
    html = page(app, PLACE)
    assert all(found["name"] in html for found in model["segments"])
    evil = page(app, f"{PLACE}?half=%3Cscript%3Ealert(1)%3C/script%3E&from=%22%3E")
    assert "<script>alert" not in evil and "No segment matches" in evil
