"""Finds the Java that runs Spark and the local Kafka broker, or says what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hybrid.errors import MachineError

JAVA_MIN = 17
# Homebrew does not link its JDK into the PATH, and macOS's `java` is a stub that only opens a dialog.
_HOMEBREW = ("/opt/homebrew/opt/openjdk@17", "/usr/local/opt/openjdk@17", "/opt/homebrew/opt/openjdk")
_ANSWER_S = 30


@dataclass(frozen=True)
class Java:
    """A Java that is new enough: executable, major version, and the folder for `JAVA_HOME`."""

    executable: Path
    version: int
    home: Path


def find_java(environ: Mapping[str, str] | None = None, *, starts_it: bool = False) -> Java:
    """The Java of `JAVA_HOME`, else of the PATH. `starts_it`: its version is asked for, which shows that it starts.

    Otherwise the file `release`, which every JDK since 8 has in its folder, tells the version where it can: starting
    Java takes a third of a second of processor time, for each process of ours.

    Raises MachineError, with what to install, when it is missing, does not start, or is older than 17.
    """
    env = os.environ if environ is None else environ
    executable = _candidate(env)
    version = None if starts_it else _released_version(executable)
    if version is None:
        version = _printed_version(executable)
    if version < JAVA_MIN:
        raise MachineError(
            f"Java {version} at {executable} is too old: hybrid needs Java {JAVA_MIN} or newer.", hint=_install_hint()
        )
    return Java(executable, version, executable.resolve().parent.parent)


def _candidate(env: Mapping[str, str]) -> Path:
    home = env.get("JAVA_HOME")
    if home:
        executable = Path(home, "bin", "java")
        if executable.is_file():
            return executable
        raise MachineError(
            f"JAVA_HOME is {home}, but {executable} does not exist.",
            hint="unset JAVA_HOME, or set it to the folder of a Java 17",
        )
    for folder in _HOMEBREW if sys.platform == "darwin" else ():
        if Path(folder, "bin", "java").is_file():
            return Path(folder, "bin", "java")
    java_path = shutil.which("java", path=env.get("PATH", ""))
    if java_path is None:
        raise MachineError(f"Java was not found: hybrid needs Java {JAVA_MIN} or newer.", hint=_install_hint())
    return Path(java_path)


def _released_version(executable: Path) -> int | None:
    """The major version by the file `release` of the Java's folder. None without one, or when it may not be started."""
    if not os.access(executable, os.X_OK):
        return None
    home = executable.resolve().parent.parent
    try:
        match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', (home / "release").read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return None
    return int(match[1]) if match is not None else None


def _printed_version(executable: Path) -> int:
    try:
        answer = subprocess.run(
            [str(executable), "-version"], capture_output=True, text=True, timeout=_ANSWER_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"Java at {executable} does not start: {error}", hint=_install_hint()) from error
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode != 0 or match is None:
        output_lines = (answer.stderr + answer.stdout).strip().splitlines()
        raise MachineError(
            f"Java at {executable} does not say its version: {output_lines[0] if output_lines else 'no answer'}",
            hint=_install_hint(),
        )
    return int(match[1])


def _install_hint() -> str:
    if sys.platform == "darwin":
        return "brew install openjdk@17"
    return "sudo apt-get install openjdk-17-jre-headless (Debian, Ubuntu), or any Java 17 or newer with JAVA_HOME set"
