"""What statements have left of a person is masked: in place in logs, by documents elsewhere. Needs no JVM."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.erasures import ErasedTable
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.home.query_log import EndedQuery
from hybrid.lake.lineage_archive import keep_acts, kept_acts
from hybrid.lake.log import lineage_acts, open_half
from hybrid.operations.erasure_outside import outside_places
from hybrid.operations.erasure_texts import kept_texts, mask_file, mask_texts
from hybrid.progress import Silent
from hybrid.sql.redaction import Redaction
from tests.operations.erasure_home import NAME, WHERE, new_table
from tests.replace.purge.erasing import holding

MASKS = Redaction.of_conditions([(WHERE, ["customer"])])


def test_a_log_is_overwritten_in_place_while_others_append_to_it(tmp_path: Path) -> None:
    log = tmp_path / "cli.log"
    log.write_text(f'{{"message": "where {WHERE}"}}\n')
    with log.open("a") as writer:
        assert mask_file(log, MASKS) == 1
        writer.write('{"message": "later"}\n')
    lines = [json.loads(line)["message"] for line in log.read_text().splitlines()]
    assert lines == [f"where customer = '{'*' * len(NAME)}'", "later"] and mask_file(log, MASKS) == 0
    (tmp_path / "empty.log").touch()
    assert mask_file(tmp_path / "empty.log", MASKS) == mask_file(tmp_path / "gone.log", MASKS) == 0


def test_a_record_keeps_its_time_and_its_names(tmp_path: Path) -> None:
    """Numbers of a condition are in times too, and keys of a record may be named like its columns."""
    masks = Redaction.of_conditions([("customer_id = 11 AND ts < 1700000000000", ["customer_id", "ts"])])
    log, error = tmp_path / "cli.log", "no '11'\ncustomer_id = 11"
    record = {"ts": "2026-11-26T13:11:00.011Z", "table": "11", "message": "11 rows, ts < 1700000000000", "error": error}
    log.write_text("".join(f"{json.dumps(record)}\n" for _ in range(3)) + "at customer_id\n11 lines\nts 11\n")
    assert mask_file(log, masks) == 1
    *records, _, plain, near = log.read_text().splitlines()
    assert [json.loads(line) for line in records] == [
        {**record, "message": f"11 rows, ts < {'*' * 13}", "error": "no '**'\ncustomer_id = **"}
    ] * 3
    assert (plain, near) == ("11 lines", "ts **")


@pytest.mark.slow
def test_records_of_a_table_lose_the_constants_and_nothing_else(tmp_path: Path) -> None:
    home = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    lab = new_table(home)
    layout, offline = lab.halves.layout, lab.halves.layout.half(Half.OFFLINE)
    lab.halves.commit_entry("backfill", change=f"delete where {WHERE}", result="Corrected 7 rows.", buckets=[])
    keep_acts(offline, lab.offline.table_id, lineage_acts(lab.offline))
    plan = layout.plan("backfill-1")
    plan.mkdir(parents=True)
    (plan / "plan.json").write_text(json.dumps({"id": NAME, "change": f"update a = 1 where {WHERE}", "rows": 3}))
    (layout.root / "purges").mkdir()
    (layout.root / "purges" / "purge-1.json").write_text(json.dumps({"id": "purge-1", "reason": f"{NAME} asked"}))
    runs = home.context.catalog.runs
    with runs.recorded("run-1", "orders", "job", {"where": WHERE}) as run:
        assert mask_texts(home.context, ["orders"], MASKS) == 4, "arguments of a run that goes on stay"
        run.ended(f"Row 7 of '{NAME}'.", did_something=True)
    before = open_half(offline)
    assert mask_texts(home.context, ["orders"], MASKS) == 1 and mask_texts(home.context, ["orders"], MASKS) == 0

    after = open_half(offline)
    assert (after.version, after.state, after.files) == (before.version, before.state, before.files)
    ((_, act),) = lineage_acts(after)
    assert act.detail["change"] == "delete where customer = '?'" and act.detail["result"] == "Corrected 7 rows."
    assert kept_acts(offline)[0][1].detail["change"] == "delete where customer = '?'"
    assert json.loads((plan / "plan.json").read_text()) == {
        "id": NAME, "change": "update a = 1 where customer = '?'", "rows": 3
    }  # fmt: skip
    assert runs.find("run-1").result == "Row 7 of '?'."  # type: ignore[union-attr]
    assert home.context.catalog.forget_journal()
    assert holding(tmp_path, NAME) == [str(plan / "plan.json")], "a name is no free text"
    home.close()


def test_the_query_log_keeps_no_value_of_a_condition(tmp_path: Path) -> None:
    """Also what has not been written yet, in both files, rotated ones too; ages of files stay."""
    home = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    new_table(home)
    log, asked = home.context.query_log, f"select * from orders where {WHERE}"
    yesterday = int(time.time()) - 86_400
    for took_s in (0.001, 60.0):
        log.add(EndedQuery("1", asked, None, f"curl {NAME}", 1000 * yesterday, took_s, "FAILED", error=f"No '{NAME}'"))
    log.flush()
    folder = home.settings.logs
    (folder / "queries.log").rename(folder / "queries.log.1")
    os.utime(folder / "queries.log.1", (yesterday, yesterday))
    with home.context.query_log.recorded(asked, "python") as record:
        assert mask_texts(home.context, ["orders"], MASKS) == 2
        record.answered(7, dict)
    assert (folder / "queries.log.1").stat().st_mtime == yesterday
    later, slow, old = home.queries()
    assert later.statement == asked, "it ended after the erasure, whose certificate names such statements"
    for entry in (slow, old):
        assert entry.statement.startswith("select * from orders where customer = '***") and NAME not in str(entry.error)
    log.add(EndedQuery("2", asked, None, "cli", 1000 * yesterday, 0.001, "DONE"))
    assert mask_texts(home.context, ["orders"], MASKS) == 1, "what waits is written first"
    assert holding(folder, NAME) == []
    home.close()


def test_what_the_product_goes_on_from_stays_and_is_named(tmp_path: Path) -> None:
    """Progress of a connector or flow decides what is read next; the documents of a definition restore it."""
    home = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    lab = new_table(home)
    layout = lab.halves.layout
    assert list(kept_texts(home.context, ["orders"], MASKS)) == []
    progress = {"load": {"filter": f"customer <> '{NAME}'", "path": f"/data/{NAME}/1.json", "schema": f'["{NAME}"]'}}
    lab.halves.commit_realtime([], progress=progress)
    document = {"where": f"customer <> '{NAME}'"}
    lab.halves.commit_entry("evolve", schema=document, realtime=document, offline=document, change=f"where {WHERE}")
    offline = layout.half(Half.OFFLINE)
    keep_acts(offline, lab.offline.table_id, lineage_acts(lab.offline))
    assert mask_texts(home.context, ["orders"], MASKS) == 2

    assert open_half(layout.half(Half.REALTIME)).state.progress == progress
    for _, act in (next(iter(lineage_acts(open_half(offline)))), kept_acts(offline)[0]):
        assert act.detail["change"] == "where customer = '?'"
        assert [act.detail[name] for name in ("schema", "realtime", "offline")] == [document] * 3
    assert [place.name for place, _ in kept_texts(home.context, ["orders"], MASKS)] == ["REALTIME", "OFFLINE"]
    home.close()


def test_statements_of_other_tools_and_what_killed_writers_have_left(tmp_path: Path) -> None:
    """A DELETE of another tool, the digest of a plain purge, documents under their unfinished names, queued runs."""
    home = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    layout = new_table(home).halves.layout
    entry = sorted((layout.half(Half.OFFLINE) / "_delta_log").glob("*.json"))[-1]
    foreign = {"commitInfo": {"operation": "DELETE", "operationParameters": {"predicate": f'["{WHERE}"]'}}}
    entry.with_name("00000000000000000099.json").write_text(json.dumps(foreign, separators=(",", ":")))
    layout.purges.mkdir()
    digests = [hashlib.sha256(where.encode()).hexdigest() for where in (WHERE, "customer = 'b'")]
    for number, digest in enumerate(digests):
        (layout.purges / f"purge-{number}.json").write_text(json.dumps({"condition_sha256": digest}))
    old, fresh = (layout.purges / f"purge-1.json.{name}.part" for name in ("old", "fresh"))
    for part in (old, fresh):
        part.write_text(json.dumps({"reason": NAME}))
    os.utime(old, (0, 0))
    with home.context.catalog.runs.recorded("run-1", "orders", "job", {"where": WHERE}) as run:
        mask_texts(home.context, ["orders"], MASKS)
        table = ErasedTable("orders", ("customer",), "customer = ?", "00", "11")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("hybrid.operations.erasure_outside._held", lambda _: "not asked")
            named = [place["place"] for place in outside_places(home.context, [table], [], MASKS)]
            database = "postgresql://***@host/db"
            patched.setattr(type(home.context.catalog), "server_url", database)
            assert database in {place["place"] for place in outside_places(home.context, [table], [], MASKS)}
        run.ended("Done.", did_something=True)
    assert "run 'run-1'" in named and str(fresh) in named and not old.exists() and fresh.exists()
    kept = [json.loads(path.read_text())["condition_sha256"] for path in sorted(layout.purges.glob("*.json"))]
    assert kept == ["?", digests[1]]
    masked = json.loads(entry.with_name("00000000000000000099.json").read_text())["commitInfo"]
    assert masked["operationParameters"] == {"predicate": "[\"customer = '?'\"]"}
    home.close()


def test_the_command_line_logs_no_condition() -> None:
    from hybrid.cli import error_report

    args = ["erase", "run", "orders", "--where", WHERE, f"--where={WHERE}"]
    assert error_report.without_secret(args) == ["erase", "run", "orders", "--where", "...", "--where=..."]
