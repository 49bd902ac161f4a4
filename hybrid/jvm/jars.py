"""The jars of Spark and of the local Kafka broker: locked, fetched once, checked by SHA-256, then used offline.

They are in `<cache>/jars/<hash of jars.lock>/{spark,kafka}/`. A jar is renamed to its final name only after its hash
was verified. So an existing file is complete, and a start only checks whether the files exist. Ivy (pyspark's wheel
ships it) fetches them in a separate folder; `~/.m2` and `~/.ivy2` are neither read nor written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hybrid.errors import MachineError
from hybrid.jvm import ivy
from hybrid.progress import Progress, Silent
from hybrid.runtime import durable
from hybrid.runtime.file_lock import file_lock

LOCK_FILE = Path(__file__).with_name("jars.lock")
SETS = ("spark", "kafka")


@dataclass(frozen=True)
class LockedJar:
    """One line of the lock: the sets that use the jar, its Maven coordinates, and the SHA-256 of its bytes."""

    sets: tuple[str, ...]
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """`delta-storage-4.4.0.jar`."""
        return f"{self.artifact}-{self.version}.jar"


@dataclass(frozen=True)
class JarSets:
    """The paths of the jars, by the process that needs them."""

    spark: list[Path]
    kafka: list[Path]


def ensure_jars(progress: Progress | None = None, *, verify: bool = False, lock_file: Path = LOCK_FILE) -> JarSets:
    """All jars of the lock, fetched if they are missing; `verify` checks the hashes of existing ones again.

    Raises MachineError when they cannot be fetched, or when a hash differs from the lock (that jar is deleted).
    """
    lock, reporter = read_lock(lock_file), progress or Silent()
    folder = jar_folder(lock_file)
    if verify:
        verify_jars(lock, folder)
    if _missing(lock, folder):
        with _one_process(folder, reporter):
            missing = _missing(lock, folder)  # another process may have fetched them during the wait
            if missing:
                _fetch(missing, folder, reporter)
    return JarSets(spark=_paths(lock, folder, "spark"), kafka=_paths(lock, folder, "kafka"))


def spark_jars() -> list[Path]:
    """The jars that a Spark session needs beside pyspark's own; fetched silently if they are missing."""
    return ensure_jars().spark


def missing_jars() -> list[str]:
    """Names of the locked jars that are not in the cache. Fetches nothing."""
    return [jar.file_name for jar in _missing(read_lock(), jar_folder())]


def read_lock(path: Path = LOCK_FILE) -> list[LockedJar]:
    """The lines of the lock file, without comments. Lines: `set[,set] group:artifact:version[:type] sha256`."""
    jars = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            sets, coordinates, sha256 = line.split()
            group, artifact, version = coordinates.split(":")[:3]
            jars.append(LockedJar(tuple(sets.split(",")), group, artifact, version, sha256))
    return jars


def cache_root(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for files that can be fetched again: `HYBRID_CACHE`, else `hybrid` in the user's cache folder."""
    env = os.environ if environ is None else environ
    if env.get("HYBRID_CACHE"):
        return Path(env["HYBRID_CACHE"]).absolute()
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hybrid"


def jar_folder(path: Path = LOCK_FILE) -> Path:
    """The jar folder of a lock file; each lock file has its own."""
    return cache_root() / "jars" / hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def verify_jars(lock: list[LockedJar], folder: Path) -> None:
    """Check the hash of every existing jar. Deletes jars that differ, then raises MachineError with their names."""
    bad = [path for jar, path in _targets(lock, folder) if path.exists() and _sha256(path) != jar.sha256]
    for path in bad:
        path.unlink()
    if bad:
        names = ", ".join(path.name for path in bad)
        raise MachineError(
            f"Not the bytes that jars.lock names (SHA-256 differs), deleted: {names}.",
            hint="hybrid setup (fetches them again)",
        )


def _fetch(missing: list[LockedJar], folder: Path, progress: Progress) -> None:
    """Download with Ivy into a separate folder, verify, then move each jar to `folder`."""
    staged = folder.with_name(folder.name + ".part")
    shutil.rmtree(staged, ignore_errors=True)
    ivy_cache = folder.parent.parent / "ivy"
    # Ivy's own cache is kept when the network fails, so that the next attempt resumes there.
    dependencies = [ivy.Dependency(name, jar.group, jar.artifact, jar.version) for jar in missing for name in jar.sets]
    ivy.retrieve(dependencies, staged, ivy_cache, progress)
    try:
        _install(missing, staged, folder)
    finally:
        shutil.rmtree(ivy_cache, ignore_errors=True)
        shutil.rmtree(staged, ignore_errors=True)


def _install(jars: list[LockedJar], staged: Path, folder: Path) -> None:
    verify_jars(jars, staged)
    for _, path in _targets(jars, staged):
        target = folder / path.relative_to(staged)
        target.parent.mkdir(parents=True, exist_ok=True)
        durable.sync(path)
        durable.rename(path, target)


def _targets(lock: list[LockedJar], folder: Path) -> Iterator[tuple[LockedJar, Path]]:
    for jar in lock:
        for name in jar.sets:
            yield jar, folder / name / jar.file_name


def _paths(lock: list[LockedJar], folder: Path, name: str) -> list[Path]:
    return [folder / name / jar.file_name for jar in lock if name in jar.sets]


def _missing(lock: list[LockedJar], folder: Path) -> list[LockedJar]:
    absent = [jar for jar, path in _targets(lock, folder) if not path.exists()]
    return list(dict.fromkeys(absent))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _one_process(folder: Path, progress: Progress) -> AbstractContextManager[None]:
    """Lock held while jars are fetched, so that two processes do not fetch them twice."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    waiting = partial(progress.say, "Another process is fetching the jars; waiting for it")
    return file_lock(folder.parent / "fetching", waiting)
