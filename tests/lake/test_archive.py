"""The archive of Spark's classes: one for each Java and installation, and nothing depends on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybrid.jvm.jars import spark_jars
from hybrid.jvm.java import Java, find_java
from hybrid.lake import class_data_archive as archive
from hybrid.lake.class_data_archive import archive_of, ensure_archive, with_archive
from tests.recorded_progress import Heard

JAVA = Java(Path(sys.executable), 17, Path("/somewhere"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "cache_root", lambda: tmp_path)


def test_another_java_has_another_one() -> None:
    other = Java(JAVA.executable, 21, JAVA.home)
    elsewhere = Java(JAVA.executable, 17, Path("/elsewhere"))
    updated = Java(Path(__file__), 17, JAVA.home)
    assert len({archive_of(one) for one in (JAVA, other, elsewhere, updated)}) == 4
    assert with_archive(JAVA) == ()


def test_what_cannot_be_made_is_said_and_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Heard()

    def fails(words: list[str], **_: Any) -> Any:
        Path(words[3]).write_bytes(b"half of it")
        return subprocess.CompletedProcess(words, 1, "", "")

    monkeypatch.setattr(subprocess, "run", fails)
    assert ensure_archive(JAVA, [], told) is None and "starts without it" in told.said[-1]
    assert list(archive_of(JAVA).parent.iterdir()) == []

    def hangs(words: list[str], **_: Any) -> Any:
        raise subprocess.TimeoutExpired(words, 1)

    monkeypatch.setattr(subprocess, "run", hangs)
    assert ensure_archive(JAVA, [], told) is None


def test_it_is_made_once_and_goes_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def makes(words: list[str], **_: Any) -> Any:
        Path(words[3]).write_bytes(b"classes")
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(subprocess, "run", makes)
    folder = archive_of(JAVA).parent
    folder.mkdir()
    ours = archive._spark_home()
    for name, home in (("gone", "/nowhere/pyspark"), ("older", ours), ("there", str(folder))):
        (folder / f"{name}.jsa").write_bytes(b"")
        (folder / f"{name}.txt").write_text(home)
    told = Heard()
    assert ensure_archive(JAVA, [], told) == archive_of(JAVA) and len(told.said) == 1
    assert {path.name for path in folder.glob("*.jsa")} == {"there.jsa", archive_of(JAVA).name}
    monkeypatch.delattr(subprocess, "run")
    assert ensure_archive(JAVA, [], told) == archive_of(JAVA) and len(told.said) == 1
    assert with_archive(JAVA)[0] == f"-XX:SharedArchiveFile={archive_of(JAVA)}"


@pytest.mark.spark
def test_spark_starts_with_one_that_is_damaged(tmp_path: Path) -> None:
    java = find_java()
    archive_of(java).parent.mkdir()
    archive_of(java).write_bytes(b"not an archive")
    script = (
        "import sys; from pathlib import Path; from hybrid.lake.spark import SparkSettings, spark_session\n"
        "session = spark_session(SparkSettings([Path(p) for p in sys.argv[3:]], Path(sys.argv[1]), "
        "java_options=sys.argv[2].split()))\n"
        "print(session.range(3).count()); session.stop()"
    )
    words = [sys.executable, "-c", script, str(tmp_path), " ".join(with_archive(java)), *map(str, spark_jars())]
    env = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}  # without the tests' archive
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "3", done.stderr
