"""docs/reference/http.md lists the paths that the application has, and no other."""

from pathlib import Path

from hybrid.api import Hybrid
from hybrid.progress import Silent
from hybrid.serve.app import build_app
from hybrid.serve.context import Limits
from hybrid.spec.settings import load_settings
from tests.docs.pages import reference, spans, table


def test_paths(tmp_path: Path) -> None:
    home = Hybrid(load_settings(home=tmp_path), Silent())
    document = build_app(home, Limits(), "http://localhost").openapi()
    known = [f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item]
    listed = [spans(cell)[0] for cell in table(reference("http"), "Paths").column("path")]
    assert len(set(listed)) == len(listed)
    assert sorted(listed) == sorted(known)
    home.close()
