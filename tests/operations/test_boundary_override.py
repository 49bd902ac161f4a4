"""A table's boundary over its life: the mode it gets, what fixes it, and what Pinot's clients are told. No JVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.config.table_config import BoundaryMode, Half
from hybrid.errors import ConflictError, NotFoundError, SpecError
from hybrid.home.home import Home
from hybrid.lake.log import open_half
from hybrid.move.boundary_override import OverrideRequest, decide
from hybrid.progress import Silent
from hybrid.table.boundary import Boundary
from tests.fake_streams import seen
from tests.query.halves import KEY, Halves, Row

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
PINOT, EXACT = BoundaryMode.PINOT, BoundaryMode.EXACT
NO_TASK = "/task={}"
MODE = "/metadata/customConfigs/hybrid.boundary"
Documents = Callable[..., TableDocuments]


@pytest.fixture
def hy(home: Path, monkeypatch: pytest.MonkeyPatch) -> Hybrid:
    """A home whose Kafka has the topic; a JVM that would be started is an error."""
    for module in ("hybrid.operations.tables.create", "hybrid.kafka.streams"):
        monkeypatch.setattr(f"{module}.view_stream", lambda *_, **__: seen("orders", "id-1", {0: 0}, {0: 10}))
    monkeypatch.setattr(Home, "_start_spark", lambda self: pytest.fail("Spark was started"))
    return Hybrid(load_settings(home=home), Silent())


def documents(*halves: str, sets: tuple[str, ...] = ()) -> TableDocuments:
    files = {"REALTIME": "orders_table.json", "OFFLINE": "orders_offline_table.json"}
    return TableDocuments.read(
        DATA / "orders_schema.json", [DATA / files[half] for half in halves or files], overrides=sets
    )


def mode_of(hy: Hybrid) -> BoundaryMode:
    boundary = hy.table("orders").boundary()
    assert boundary is not None
    return boundary.mode


def halves_of(hy: Hybrid) -> Halves:
    """The table's halves, to write to without Spark."""
    table = hy.table("orders")
    states = [table.half(half).state for half in (Half.REALTIME, Half.OFFLINE)]
    return Halves(table.spec, table.layout, *states)  # type: ignore[arg-type]


def push(hy: Hybrid, *times: int, boundary: Boundary | None = None) -> Halves:
    halves = halves_of(hy)
    rows = [Row({"order_id": time, "ts": time}, time, place, segment="o") for place, time in enumerate(times)]
    halves.commit_offline(rows, boundary)
    return halves


@pytest.mark.parametrize(
    ("sets", "mode"),
    [((), EXACT), ((NO_TASK,), PINOT), ((f"{MODE}=pinot",), PINOT), ((NO_TASK, f"{MODE}=exact"), EXACT)],
)
def test_the_mode_of_a_new_table(hy: Hybrid, sets: tuple[str, ...], mode: BoundaryMode) -> None:
    hy.create_table(documents(sets=sets))
    assert mode_of(hy) is mode


@pytest.mark.parametrize("halves", [("REALTIME", "OFFLINE"), ("OFFLINE", "REALTIME")])
@pytest.mark.parametrize(("sets", "mode"), [((), EXACT), ((NO_TASK,), PINOT), ((f"{MODE}=pinot",), PINOT)])
def test_the_mode_of_a_table_whose_halves_come_one_by_one(
    hy: Hybrid, halves: tuple[str, str], sets: tuple[str, ...], mode: BoundaryMode
) -> None:
    for half in halves:
        hy.apply_table(documents(half, sets=sets if half == "REALTIME" else ()))
    assert mode_of(hy) is mode
    state = hy.table("orders").half(Half.OFFLINE).offline
    settled = halves[0] == "OFFLINE" and mode is PINOT
    assert (state.act.kind, state.act.number) == (("boundary", 1) if settled else ("create", 0))


def test_an_archive_that_gets_a_stream_keeps_its_rows_and_gets_the_mode_of_the_whole(hy: Hybrid) -> None:
    hy.create_table(documents("OFFLINE"))
    table = hy.table("orders")
    halves = Halves(table.spec, table.layout, offline=table.half(Half.OFFLINE).offline)
    halves.commit_offline([Row({"order_id": 1, "ts": 5}, 5, 0, segment="o")])
    assert (table.boundary(), table.effective_boundary(), table.time_boundary()) == (None, None, None)
    hy.apply_table(documents(sets=(NO_TASK,)))
    offline = hy.table("orders").half(Half.OFFLINE)
    assert (mode_of(hy), offline.offline.act.number, [file.segment for file in offline.files]) == (PINOT, 2, ["o"])


@pytest.mark.slow
def test_the_mode_is_fixed(hy: Hybrid) -> None:
    hy.create_table(documents())
    with pytest.raises(SpecError, match="created with boundary mode 'exact', and the mode is fixed") as caught:
        hy.apply_table(documents(sets=(f"{MODE}=pinot",)))
    assert caught.value.hint is not None and '"exact"' in caught.value.hint
    assert hy.apply_table(documents(sets=(f"{MODE}=exact",))).changes
    hy.apply_table(documents(sets=(NO_TASK,)))
    assert mode_of(hy) is EXACT, "a task may go"
    hy.drop_table("orders")
    hy.create_table(documents(sets=(NO_TASK,)))
    hy.apply_table(documents())
    assert mode_of(hy) is PINOT, "and come"


def test_what_pinots_clients_are_told(hy: Hybrid) -> None:
    hy.create_table(documents())
    table = hy.table("orders")
    assert table.time_boundary() is None, "no offline rows"
    halves = push(hy, 1000, 2000, boundary=Boundary(None, {KEY: 5}))
    assert table.time_boundary() is None, "history that covers no time"
    halves.commit_offline([], Boundary(5000, {KEY: 5}))
    boundary = table.time_boundary()
    assert boundary is not None and (boundary.time_column, boundary.time_value) == ("ts", "2000")
    for limit, told in ((2000, "1999"), (1500, "1499"), (5000, "2000")):
        halves.commit_offline([], Boundary(5000, {KEY: 5}, EXACT, limit))
        boundary = table.time_boundary()
        assert boundary is not None and boundary.time_value == told


def test_what_pinots_clients_are_told_in_mode_pinot(hy: Hybrid) -> None:
    hy.create_table(documents(sets=(f"{MODE}=pinot",)))
    table = hy.table("orders")
    assert table.time_boundary() is None
    halves = push(hy, 4_000_000, 9_000_000)
    boundary = table.time_boundary()
    assert boundary is not None and boundary.time_value == str(9_000_000 - 3_600_000)
    halves.commit_offline([], replace(halves.offline.boundary, override_ms=9_000_001))
    boundary = table.time_boundary()
    assert boundary is not None and boundary.time_value == "9000000"


def test_what_there_is_no_need_to_do_is_said_and_starts_no_jvm(hy: Hybrid) -> None:
    hy.create_table(documents())
    table = hy.table("orders")
    report = table.set_boundary(None)
    assert (report.committed, report.version) == (False, None)
    assert "mode is exact, and offline rows are visible from their commit on" in report.sentence
    assert "was not set by hand" in table.clear_boundary().sentence
    push(hy, 1000, boundary=Boundary(5000, {KEY: 5}, EXACT, 3000))
    assert "is set to 1970-01-01T00:00:03Z already" in table.set_boundary(3000).sentence
    assert "as far as it is set, 1970-01-01T00:00:03Z" in table.set_boundary(None).sentence
    assert [(run.type, run.state) for run in hy.runs("orders")] == [("boundary", "NOTHING")] * 4


def test_what_cannot_be_set(hy: Hybrid) -> None:
    hy.create_table(documents())
    table = hy.table("orders")
    with pytest.raises(ConflictError, match="its OFFLINE half covers no time yet"):
        table.set_boundary(1000)
    push(hy, 1000, 9000, boundary=Boundary(5000, {KEY: 5}))
    with pytest.raises(ConflictError, match="covers times before 1970-01-01T00:00:05Z, and rows between") as caught:
        table.set_boundary(5001)
    assert caught.value.exit_code == 4
    assert hy.runs("orders")[0].state == "FAILED"
    assert table.half(Half.OFFLINE).version == 1, "nothing was committed"


def test_what_cannot_be_set_in_mode_pinot(hy: Hybrid) -> None:
    hy.create_table(documents(sets=(NO_TASK,)))
    table = hy.table("orders")
    with pytest.raises(NotFoundError, match="no offline rows"):
        table.set_boundary(None)
    push(hy, 1000, 9000)
    with pytest.raises(ConflictError, match=r"covers times before 1970-01-01T00:00:09.001Z"):
        table.set_boundary(9002)


def test_tables_without_a_boundary_of_time(hy: Hybrid) -> None:
    hy.create_table(documents("OFFLINE"))
    for act in (lambda: hy.table("orders").set_boundary(5), hy.table("orders").clear_boundary):
        with pytest.raises(NotFoundError, match="one half only"):
            act()
    hy.drop_table("orders")
    given = documents(sets=("/segmentsConfig/timeColumnName=null",))
    hy.create_table(given)
    with pytest.raises(SpecError, match="no time column"):
        hy.table("orders").set_boundary(5)
    assert hy.table("orders").time_boundary() is None


def test_a_state_of_the_first_version_is_exact(hy: Hybrid) -> None:
    """What older versions wrote has neither mode nor override."""
    hy.create_table(documents(sets=(NO_TASK,)))
    entry = hy.table("orders").layout.half(Half.OFFLINE) / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            state: dict[str, Any] = json.loads(line["commitInfo"]["userMetadata"])
            assert state["boundary"].pop("mode") == "pinot" and state["boundary"].pop("override_ms") is None
            line["commitInfo"]["userMetadata"] = json.dumps(state)
    entry.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    assert open_half(entry.parents[1]).offline.boundary == Boundary()
    assert mode_of(hy) is EXACT


@pytest.mark.slow
def test_a_boundary_that_hides_all_offline_rows_has_to_be_meant(hy: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    hy.create_table(documents())
    first = Row({"order_id": 1, "ts": 1_632_463_200_000}, 1_632_463_200_000, 0, segment="o")
    halves_of(hy).commit_offline([first], Boundary(1_632_470_400_000, {KEY: 1}))
    for time_ms in (-5, 0, 1_632_463_200, 1_632_463_200_000):  # the third is in seconds
        with pytest.raises(ConflictError, match="would hide all of its offline rows, which begin at 2021-09-24T06:00"):
            hy.table("orders").set_boundary(time_ms)
    assert run(["--home", str(hy.home), "boundary", "set", "orders", "--at", "-5"]) == 4
    assert "--yes (if that is meant)" in capsys.readouterr().err
    offline = hy.table("orders").half(Half.OFFLINE)
    decided = decide(hy.spec("orders"), offline, OverrideRequest(0, accepted=True))
    assert decided.after is not None and decided.after.override_ms == 0


@pytest.mark.slow
def test_status_says_that_a_boundary_is_set_by_hand(hy: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    hy.create_table(documents())
    push(hy, 1000, boundary=Boundary(9000, {KEY: 1}))
    at = ["--home", str(hy.home), "status"]
    run([*at, "--json"])
    assert json.loads(capsys.readouterr().out)[0]["override"] is None
    halves_of(hy).commit_offline([], Boundary(9000, {KEY: 1}, override_ms=5000))
    run([*at, "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["override"] == "1970-01-01T00:00:05Z"
    assert "The boundary of 'orders' is set by hand to 1970-01-01T00:00:05Z. `hybrid boundary clear orders`" in err
