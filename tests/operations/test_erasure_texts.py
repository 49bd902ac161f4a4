"""What statements have left of a person is masked: in place in logs, by documents elsewhere. Needs no JVM."""

from __future__ import annotations

import json
from pathlib import Path

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.lake.lineage_archive import keep_acts, kept_acts
from hybrid.lake.log import lineage_acts, open_half
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
    for _, act in (lineage_acts(open_half(offline))[0], kept_acts(offline)[0]):
        assert act.detail["change"] == "where customer = '?'"
        assert [act.detail[name] for name in ("schema", "realtime", "offline")] == [document] * 3
    assert [place.name for place, _ in kept_texts(home.context, ["orders"], MASKS)] == ["REALTIME", "OFFLINE"]
    home.close()


def test_the_command_line_logs_no_condition() -> None:
    from hybrid.cli import error_report

    args = ["erase", "run", "orders", "--where", WHERE, f"--where={WHERE}"]
    assert error_report.without_secret(args) == ["erase", "run", "orders", "--where", "...", "--where=..."]
