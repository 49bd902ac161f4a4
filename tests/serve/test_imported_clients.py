"""Threads of a server find kafka-python imported in whole: side by side they would import its circles by halves."""

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
