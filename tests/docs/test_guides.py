"""docs/guides: each page is found, its documents are valid, its figures are measured, the unit is one for systemd."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.config.job_spec import load_job_spec
from hybrid.config.table_json import parse_table
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Rejected
from tests.docs.pages import ROOT, commands, spans, table, tables

GUIDES = ROOT / "docs" / "guides"
FIRST_TABLE = GUIDES / "first-table.md"
SERVICE = ROOT / "deploy" / "hybrid.service"
# The command of the unit, which is not there where it is checked.
PROGRAM = "/opt/hybrid/bin/hybrid"


def test_the_index_lists_every_guide_and_is_linked() -> None:
    linked = set(re.findall(r"\]\(([a-z-]+\.md)\)", (GUIDES / "README.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in GUIDES.glob("*.md")} - {"README.md"}
    for page in ("how-to.md", "reference/README.md"):
        assert "guides/README.md" in (ROOT / "docs" / page).read_text(encoding="utf-8"), page


def written_files(page: Path, folder: Path) -> list[str]:
    """Write each block of a page that follows a line beginning with its `name` to the folder. Returns the names."""
    found = re.findall(r"^`([\w.]+)`[^\n]*(?:\n[^\n`]+)*\n\n```\w+\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    for name, text in found:
        (folder / name).write_text(text, encoding="utf-8")
    return [name for name, _ in found]


def test_documents_of_a_first_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = written_files(FIRST_TABLE, tmp_path)
    assert len(names) == 8
    monkeypatch.chdir(tmp_path)
    creations = [words[2:] for words in commands(FIRST_TABLE) if words[:2] == ["table", "create"]]
    by_hand = [words for words in creations if not any("/" in word for word in words)]  # `init` writes the others
    assert (len(creations), len(by_hand)) == (5, 3)
    for words in by_hand:
        assert run(["--home", str(tmp_path / "home"), "table", "validate", *words]) == 0
    job = load_job_spec(tmp_path / "readings_job.yml", {})
    assert (job.table_name, job.input_dir) == ("readings", tmp_path / "readings.csv")


def test_a_value_is_repaired_as_the_how_to_says() -> None:
    """The config of the example is refused by nothing, and takes the message of the example, and plain numbers."""
    text = (ROOT / "docs" / "how-to.md").read_text("utf-8").partition("### Repair a value that does not fit\n")[2]
    message = re.search(r"`(\{.*?\})`", text)
    block = re.search(r"^```json\n(.*?)^```$", text, re.M | re.S)
    assert message is not None and block is not None
    orders = ROOT / "data" / "orders"
    schema, config = (json.loads((orders / f"orders_{name}.json").read_text("utf-8")) for name in ("schema", "table"))
    rejecting = Decoder(parse_table(schema, "schema", [(config, "config")]))
    repairing = Decoder(parse_table(schema, "schema", [({**config, **json.loads(f"{{{block[1]}}}")}, "config")]))
    amount = [field["name"] for kind in ("dimension", "metric") for field in schema[f"{kind}FieldSpecs"]].index(
        "amount"
    )
    for sent, stored in (("12,50", 12.5), ("7.25", 7.25), (7.25, 7.25)):
        payload = json.dumps({**json.loads(message[1]), "amount": sent}).encode()
        (outcome,) = repairing.decode_all(payload)
        assert isinstance(outcome, Decoded) and outcome.values[amount] == stored
    (rejected,) = rejecting.decode_all(message[1].encode())
    assert isinstance(rejected, Rejected) and """Column 'amount': "12,50" does not fit.""" in rejected.reason
    assert " ".join(["Column", "'amount':", '"12,50"', "does", "not", "fit."]) in " ".join(text.split())


def test_figures_are_those_that_were_measured() -> None:
    measured = [
        row[-1] for found in tables(GUIDES / "sizing.md") if found.names[-1] == "measured" for row in found.rows
    ]
    figures = {figure for cell in measured for figure in spans(cell)}
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert len(figures) > 20
    shown = r"(?<![\d.,]){}(?!\d)"
    missing = {figure for figure in figures if not re.search(shown.format(re.escape(figure.split()[0])), benchmarks)}
    assert missing == set()


def test_lines_of_the_unit_are_explained() -> None:
    unit = SERVICE.read_text(encoding="utf-8").splitlines()
    explained = [spans(cell)[0] for cell in table(GUIDES / "service.md", "What the unit says").column("line")]
    assert set(explained) <= set(unit)


@pytest.mark.process
def test_the_unit_is_one_for_systemd(tmp_path: Path) -> None:
    """Its commands are replaced by /bin/true, because they are not installed here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing")
    unit = tmp_path / SERVICE.name
    unit.write_text(SERVICE.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", unit], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
