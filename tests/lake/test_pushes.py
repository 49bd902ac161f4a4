"""What is kept of replacements in several requests."""

from pathlib import Path

import pytest

from hybrid.errors import ConflictError, NotFoundError
from hybrid.lake import pushes
from hybrid.lake.layout import TableLayout
from hybrid.lake.pushes import OpenReplacement, Push, PushedSegment, PushState
from hybrid.store.plan_files import ROWS
from tests.query.halves import Halves, orders_spec


@pytest.fixture
def layout(tmp_path: Path) -> TableLayout:
    return Halves.create(tmp_path, orders_spec()).layout


def opened(layout: TableLayout, number: int = 1) -> OpenReplacement:
    entry = OpenReplacement(
        f"replace-{number}", "orders", f"2021-11-2{number}", {"old": ("a.parquet",)}, ("x", "y"), {"k": "v"}
    )
    pushes.publish(layout, entry)
    return entry


def add(layout: TableLayout, entry: OpenReplacement, *names: str) -> Push:
    staged = layout.root / "staged"
    (staged / ROWS).mkdir(parents=True)
    segments = tuple(PushedSegment(name, 1, 0, 1, 2) for name in names)
    push = Push(pushes.next_number(layout, entry.id), "spec", (("order_id", "int"),), segments, ({"path": "p"},))
    pushes.add_push(layout, entry.id, staged, push)
    return push


def test_they_are_read_back(layout: TableLayout) -> None:
    newer, older = opened(layout, 2), opened(layout, 1)
    assert pushes.open_replacements(layout) == pushes.in_progress(layout) == [older, newer]
    assert pushes.find_replacement(layout, older.id) == older and older.reason == "k=v"
    assert pushes.find_replacement(layout, "../plans/replace-1") is None
    with pytest.raises(NotFoundError, match=r"'replace-' does not exist\. Did you mean 'replace-"):
        pushes.known_replacement(layout, "replace-")


def test_the_last_push_of_a_segment_counts(layout: TableLayout) -> None:
    entry = opened(layout)
    first, second = add(layout, entry, "x", "y"), add(layout, entry, "x")
    found = pushes.pushed(layout, entry.id)
    assert (found["x"][0], found["y"][0]) == (second, first) and second.number == 2


def test_one_that_is_closed(layout: TableLayout) -> None:
    entry = opened(layout)
    add(layout, entry, "x")
    pushes.close(layout, entry.id, PushState.REVERTED)
    assert pushes.state_of(layout, entry.id) is PushState.REVERTED
    assert pushes.in_progress(layout) == [] and pushes.pushed(layout, entry.id) == {}


def test_one_request_changes_it_at_a_time(layout: TableLayout) -> None:
    entry = opened(layout)
    for held in (lambda: pushes.changing(layout, entry.id, 0.0), lambda: pushes.opening(layout, 0.0)):
        with held(), pytest.raises(ConflictError, match="Nothing was changed"), held():
            pass
        with held():
            pass
