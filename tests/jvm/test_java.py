from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.errors import MachineError
from hybrid.jvm.java import find_java

pytestmark = pytest.mark.process


def fake_java(folder: Path, says: str, exit_code: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "java"
    script.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {exit_code}\n")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('x\njava version "25"', 25),
    ],
)
def test_new_enough(tmp_path: Path, says: str, version: int) -> None:
    script = fake_java(tmp_path / "jdk" / "bin", says)
    found = find_java({"PATH": str(script.parent)})
    assert (found.executable, found.version, found.home) == (script, version, tmp_path / "jdk")


@pytest.mark.parametrize(
    ("says", "version"), [('java version "1.8.0_292"', "8"), ('openjdk version "11.0.2" 2019', "11")]
)
def test_too_old_says_what_to_install(tmp_path: Path, says: str, version: str) -> None:
    script = fake_java(tmp_path, says)
    with pytest.raises(MachineError, match=rf"Java {version} at {script} is too old.*17") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "17" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("release", "version"),
    [
        (b'IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n', 21),
        (b'JAVA_VERSION="1.8.0_292"', 8),
        (b"MODULES=", 17),
        (b"\xff", 17),
    ],
)
def test_the_file_release_tells_the_version_and_java_without_it(tmp_path: Path, release: bytes, version: int) -> None:
    fake_java(tmp_path / "bin", 'openjdk version "17.0.15"')
    (tmp_path / "release").write_bytes(release)
    if version < 17:
        with pytest.raises(MachineError, match=f"Java {version} at .* is too old"):
            find_java({"JAVA_HOME": str(tmp_path)})
    else:
        assert find_java({"JAVA_HOME": str(tmp_path)}).version == version


def test_a_java_that_does_not_start_is_found_by_starting_it(tmp_path: Path) -> None:
    script = fake_java(tmp_path / "bin", "no such library", exit_code=127)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.15"')
    assert find_java({"JAVA_HOME": str(tmp_path)}).version == 17
    with pytest.raises(MachineError, match="does not say its version: no such library"):
        find_java({"JAVA_HOME": str(tmp_path)}, starts_it=True)
    script.chmod(0o644)
    with pytest.raises(MachineError, match="does not start"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home" / "bin", 'openjdk version "21.0.1"')
    fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}).version == 21


def test_java_home_without_a_java(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="JAVA_HOME is"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="Java was not found") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "openjdk" in str(caught.value.hint)


def test_a_stub_that_only_complains(tmp_path: Path) -> None:
    fake_java(tmp_path, "Unable to locate a Java Runtime.", exit_code=1)
    with pytest.raises(MachineError, match="Unable to locate"):
        find_java({"PATH": str(tmp_path)})
