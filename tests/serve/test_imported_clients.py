"""Threads find kafka-python imported in whole: side by side they would import its circles by halves."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hybrid

_IMPORT = re.compile(r"^\s*(?:from (kafka[\w.]*) import|import (kafka[\w.]*))", re.MULTILINE)


@pytest.mark.process
def test_all_that_is_imported_later_is_there() -> None:
    files = Path(hybrid.__file__).parent.rglob("*.py")
    names = {name for file in files for found in _IMPORT.findall(file.read_text("utf-8")) for name in found if name}
    code = (
        "import sys; from hybrid.kafka.clients import import_clients; import_clients()\n"
        f"print([name for name in {sorted(names)} if name not in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert len(names) > 3 and said == "[]\n"


_ASK = """
import sys
from types import SimpleNamespace
from hybrid.config.table_config import Half
from hybrid.operations.tables import status

def status_of(home, table, *more):
    import kafka, kafka.admin
    from kafka.protocol.consumer import OffsetSpec

sys.setswitchinterval(1e-6)
status.status_of = status_of
table = SimpleNamespace(spec=SimpleNamespace(halves=[Half.REALTIME]))
print(len(status.statuses_of(SimpleNamespace(), [table] * 8)))
"""


@pytest.mark.process
def test_tables_are_looked_at_side_by_side_in_a_command() -> None:
    """Without the import before them, six of six such processes failed."""
    done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("8\n", 0), done.stderr
