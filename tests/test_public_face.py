"""What users see of the Python API is small, and documented."""

from __future__ import annotations

import inspect
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hybrid
from hybrid.api.table import Table
from hybrid.operations.backfills import Backfills
from hybrid.operations.backups.backups import Backups
from hybrid.operations.connectors.run import TableConnectors
from hybrid.operations.erasures import Erasures
from hybrid.operations.maintenance import Upkeep
from hybrid.operations.segment_replacement import Replacing
from hybrid.progress import Silent
from hybrid.rpc.local_only import LocalOnly
from hybrid.rpc.remote_hybrid import RemoteHybrid
from hybrid.rpc.remote_operations import RemoteConnectors, RemoteReplacing, RemoteUpkeep
from hybrid.rpc.remote_table import RemoteTable
from tests.docs import pages

PYTHON = pages.reference("python")
# For other parts of the product, not for users.
INTERNAL = {
    *("reverting", "take_up", "state", "give_back"),
    *("throw_away", "waiting", "in_progress", "find"),
    *("look", "spec", "now_ms", "pause_offsets", "waits", "run_due"),
}
PARTS = {
    "hy.backfills": Backfills, "hy.backups": Backups, "hy.erasures": Erasures,
    "table.upkeep": Upkeep, "table.connectors": TableConnectors, "table.replacing": Replacing,
}  # fmt: skip


def test_the_package_shows_what_users_call() -> None:
    shown = ["Hybrid", "HybridError", "ResultLimitWarning", "__version__", "connect", "frame_documents"]
    assert dir(hybrid) == shown
    assert hybrid.__getattr__("errors") is hybrid.errors and hybrid.__getattr__("api").Erasure
    assert hybrid.__version__ == version("hybrid")
    page = PYTHON.read_text(encoding="utf-8")
    assert [name for name in shown if name not in page] == []


def test_what_is_shown_is_documented(tmp_path: Path) -> None:
    page, table = PYTHON.read_text(encoding="utf-8"), Table.__new__(Table)
    shown: list[tuple[Any, int]] = [(hybrid.connect(tmp_path), 30), (table, 40)]
    for value, most in shown:
        assert len(dir(value)) <= most
        assert [name for name in dir(value) if name not in page] == []


def test_the_parts_of_a_home_and_of_a_table_are_documented() -> None:
    rows = pages.table(PYTHON, "Calls").rows
    for name, kind in PARTS.items():
        of_part = [" ".join(row) for row in rows if any(span.startswith(name) for span in pages.spans(row[0]))]
        texts = [span.removeprefix(name) for text in of_part for span in pages.spans(text)]
        documented = {found[1] for text in texts if (found := re.match(r"(?:hybrid.*backups)?\.(\w+)\(", text))}
        public = {method for method in vars(kind) if not method.startswith("_")}
        assert documented <= public and public - documented <= INTERNAL, name


def test_what_needs_a_home_of_this_machine_is_listed(tmp_path: Path) -> None:
    text = PYTHON.read_text(encoding="utf-8").partition("These work on a home only")[2].partition("\n\n")[0]
    here: Any = hybrid.connect(tmp_path)
    for name, local, remote in (("hy", here, RemoteHybrid), ("table", Table.__new__(Table), RemoteTable)):
        refused = {method for method in dir(local) if isinstance(vars(remote).get(method), LocalOnly)}
        assert set(re.findall(rf"`{name}\.(\w+)`", text)) == refused

    remote: Any = RemoteHybrid("http://127.0.0.1:1", None, Silent())
    parts = {
        "hy.backfills": (Backfills, type(remote.backfills)),
        "hy.backups": (Backups, type(remote.backups)),
        "table.upkeep": (Upkeep, RemoteUpkeep),
        "table.connectors": (TableConnectors, RemoteConnectors),
        "table.replacing": (Replacing, RemoteReplacing),
    }
    for name, (local, far) in parts.items():
        missing = {method for method in vars(local) if not method.startswith("_")} - INTERNAL - vars(far).keys()
        assert not missing, name
        refused = {method for method, value in vars(far).items() if isinstance(value, LocalOnly)}
        assert set(re.findall(rf"`{name}\.(\w+)`", text)) == refused, name


def test_the_page_names_parameters_as_they_are(tmp_path: Path) -> None:
    """A parameter that is shown with its default may be written so in a call."""
    kinds: dict[str, Any] = {"hy": type(hybrid.connect(tmp_path)), "table": Table, **PARTS}
    checked = set()
    for name, kind in kinds.items():
        rows = [row for row in pages.table(PYTHON, "Calls").rows if row[0].startswith(f"`{name}")]
        for span in (span for row in rows for span in pages.spans(" ".join(row))):
            call = re.fullmatch(r"[\w.]*(?:\(new_home\)\.backups)?\.(\w+)\(([^()]*)\)", span)
            method = getattr(kind, call[1], None) if call else None
            if call is not None and callable(method) and "options" not in (there := parameters_of(method)):
                assert set(re.findall(r"(\w+)=", call[2])) <= there, span
                checked.add(span)
    assert len(checked) > 30


def parameters_of(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)
