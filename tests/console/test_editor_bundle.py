"""The editor's bundle: its size, its licences, the lock files, and that the sources of what is built give the bytes."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CONSOLE = Path(__file__).resolve().parents[2] / "hybrid" / "serve" / "console"
SOURCES, STATIC = CONSOLE / "assets" / "editor", CONSOLE / "static"
BUILT = ("editor.js", "editor.LICENSES.txt")
VENDOR = ("htmx.min.js", "htmx.LICENSE.txt", "uPlot.esm.min.js", "uPlot.min.css", "uPlot.LICENSE.txt")
EDITOR_BYTES_MAX = 143_000


def test_the_bundle_is_small_and_names_its_licences() -> None:
    bundle = (STATIC / "editor.js").read_bytes()
    assert len(gzip.compress(bundle, 9)) <= EDITOR_BYTES_MAX
    assert b"eval(" not in bundle and b"new Function" not in bundle
    licences = (STATIC / "editor.LICENSES.txt").read_text(encoding="utf-8")
    locked = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    bundled = {
        path.removeprefix("node_modules/"): entry for path, entry in locked.items() if path and not entry.get("dev")
    }
    for name, entry in bundled.items():
        assert f"{name} {entry['version']} (MIT)" in licences, name
    assert licences.count("Permission is hereby granted") == len(bundled)


@pytest.mark.parametrize("sources", ["editor", "vendor"])
def test_versions_are_pinned_and_the_lock_names_no_host(sources: str) -> None:
    folder = CONSOLE / "assets" / sources
    text = (folder / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in text and text.count('"integrity"') > 2
    package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    versions = {**package["dependencies"], **package["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values()), versions


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.parametrize(("sources", "static", "built"), [("editor", "", BUILT), ("vendor", "vendor", VENDOR)])
def test_the_sources_build_the_same_bytes(tmp_path: Path, sources: str, static: str, built: tuple[str, ...]) -> None:
    copy, target = tmp_path / sources, tmp_path / "static"
    shutil.copytree(CONSOLE / "assets" / sources, copy, ignore=shutil.ignore_patterns("node_modules"))
    target.mkdir()
    installed = subprocess.run(["npm", "ci"], cwd=copy, capture_output=True, text=True, timeout=150)
    if installed.returncode:
        pytest.skip(f"npm could not install the locked packages: {installed.stderr.strip()[:200]}")
    subprocess.run(["node", "build.mjs", str(target)], cwd=copy, check=True, timeout=60)
    for name in built:
        made, committed = ((folder / name).read_bytes() for folder in (target, STATIC / static))
        assert hashlib.sha256(made).hexdigest() == hashlib.sha256(committed).hexdigest(), f"{name}: npm run build"
