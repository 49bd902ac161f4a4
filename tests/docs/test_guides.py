"""docs/guides: each page is found, its documents are valid, its figures are measured, the unit is one for systemd."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.config.job_spec import load_job_spec
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
