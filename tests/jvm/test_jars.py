from __future__ import annotations

import hashlib
import re
import threading
from pathlib import Path

import pytest

from hybrid.errors import MachineError
from hybrid.jvm import ivy, jars
from hybrid.progress import Progress

BYTES = {"a-1.jar": b"alpha", "b_2.13-2.0.jar": b"beta"}


@pytest.fixture
def lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of two jars, one of them in both sets, in a cache of its own."""
    shas = {name: hashlib.sha256(data).hexdigest() for name, data in BYTES.items()}
    path = tmp_path / "jars.lock"
    path.write_text(
        f"# comment\nspark,kafka org.x:a:1 {shas['a-1.jar']}\nkafka org.x:b_2.13:2.0:bundle {shas['b_2.13-2.0.jar']}\n"
    )
    monkeypatch.setenv("HYBRID_CACHE", str(tmp_path / "cache"))
    return path


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stands in for Ivy: writes BYTES, and remembers what was asked for."""
    asked: list[list[str]] = []

    def retrieve(wanted: list[ivy.Dependency], folder: Path, cache: Path, progress: Progress) -> None:
        asked.append([f"{one.conf}/{one.artifact}" for one in wanted])
        for one in wanted:
            name = f"{one.artifact}-{one.version}.jar"
            (folder / one.conf).mkdir(parents=True, exist_ok=True)
            (folder / one.conf / name).write_bytes(BYTES[name])

    monkeypatch.setattr(ivy, "retrieve", retrieve)
    return asked


def test_fetched_once_then_only_looked_at(lock_file: Path, fetches: list[list[str]], tmp_path: Path) -> None:
    found = jars.ensure_jars(lock_file=lock_file)
    assert jars.ensure_jars(lock_file=lock_file) == found
    assert fetches == [["spark/a", "kafka/a", "kafka/b_2.13"]]
    assert [path.read_bytes() for path in found.kafka] == [b"alpha", b"beta"]
    assert [path.name for path in found.spark] == ["a-1.jar"]
    assert {path.parent.parent for path in found.kafka} == {jars.jar_folder(lock_file)}
    assert not list(tmp_path.glob("cache/jars/*.part"))


def test_a_wrong_hash_is_an_error_and_the_jar_is_gone(
    lock_file: Path, fetches: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as forged:
        forged.setitem(BYTES, "b_2.13-2.0.jar", b"forged")
        with pytest.raises(MachineError, match=r"SHA-256 differs.*deleted: b_2\.13-2\.0\.jar") as caught:
            jars.ensure_jars(lock_file=lock_file)
    assert "hybrid setup" in str(caught.value.hint)
    assert not list(jars.jar_folder(lock_file).rglob("*.jar"))
    assert jars.ensure_jars(lock_file=lock_file).kafka[1].read_bytes() == b"beta"  # the next try fetches it


def test_verify_finds_a_jar_that_changed_on_disk(lock_file: Path, fetches: list[list[str]]) -> None:
    found = jars.ensure_jars(lock_file=lock_file)
    found.spark[0].write_bytes(b"rotten")
    assert jars.ensure_jars(lock_file=lock_file) == found  # a usual start does not hash
    with pytest.raises(MachineError, match=r"deleted: a-1\.jar"):
        jars.ensure_jars(verify=True, lock_file=lock_file)
    jars.ensure_jars(verify=True, lock_file=lock_file)
    assert fetches[1:] == [["spark/a", "kafka/a"]]


def test_two_at_once_fetch_once(lock_file: Path, fetches: list[list[str]]) -> None:
    starters = [threading.Thread(target=jars.ensure_jars, kwargs={"lock_file": lock_file}) for _ in range(4)]
    for one in starters:
        one.start()
    for one in starters:
        one.join()
    assert len(fetches) == 1


@pytest.mark.process
def test_ivy_that_fails_gives_its_reason(lock_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && { echo \'openjdk version "17"\' >&2; exit 0; }\n'
        "echo 'UnknownHostException: no such host'\nexit 1\n"
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MachineError, match=r"could not be fetched.*UnknownHostException") as caught:
        jars.ensure_jars(lock_file=lock_file)
    assert "network" in str(caught.value.hint)


def test_cache_folder() -> None:
    assert jars.cache_root({"HYBRID_CACHE": "/c"}) == Path("/c")
    assert jars.cache_root({"XDG_CACHE_HOME": "/x"}) == Path("/x/hybrid")
    assert jars.cache_root({}) == Path.home() / ".cache" / "hybrid"


def test_the_real_lock_is_well_formed() -> None:
    lock = jars.read_lock()
    assert {name for jar in lock for name in jar.sets} == set(jars.SETS)
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in lock)
    assert len({(name, jar.file_name) for jar in lock for name in jar.sets}) == len(lock)


def test_ivy_resolves_nothing() -> None:
    written = ivy.ivy_file([ivy.Dependency("kafka", "org.x", "a", "1"), ivy.Dependency("spark", "org.x", "b", "2")])
    assert written.count('transitive="false"') == 2
    assert '<conf name="kafka"/><conf name="spark"/>' in written
