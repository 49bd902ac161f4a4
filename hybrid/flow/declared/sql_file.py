"""SQL flow files."""

from __future__ import annotations

from pathlib import Path

from hybrid.errors import SpecError
from hybrid.flow.declared.session import FlowSession


def declare_sql(path: Path, text: str, session: FlowSession) -> None:
    """Not yet."""
    raise SpecError(f"{path}: SQL flow files are not built yet.")
