"""Spark's workers on other hosts: our package is sent to them, and what they lack is said before the first batch.

Third-party packages come with the workers' Python, or by `spark.archives`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import marshal
import os
import platform
import re
import socket
import sys
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import MachineError
from hybrid.lake import yarn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# Packages whose absence a worker reports by itself, and modules of ours that workers run. No pandas: only the
# driver asks for it, and a new process imports it longer than all the others.
_PACKAGES, _MODULES = ("pyarrow", "duckdb"), ("hybrid.ingest.read", "hybrid.move.direct")
_STORE_PACKAGE = "obstore"
# Workers divide keys by a hash of DuckDB's, which is the same in one version only.
_SAME = ("duckdb",)
_ENDINGS = {".py", ".lock", ".typed"}
_EPOCH = (1980, 1, 1, 0, 0, 0)
_DIGITS = 16
_UNCHECKED = 0b01
WAIT_S = 120.0
# Of a worker whose Python lacks what Spark itself needs, before it is asked.
_NO_PACKAGE = ("PACKAGE_NOT_INSTALLED", "No module named")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)"')


@dataclass(frozen=True)
class WorkerSurvey:
    """What a worker has: its host and Python, the digest of our package, and versions or errors by package."""

    host: str
    python: str
    executable: str
    digest: str
    packages: Mapping[str, str]
    lacking: Mapping[str, str]


def package_archive(folder: Path, package: Path | None = None) -> Path:
    """A zip of this version of our package for Python's import, named by its content. It is made where it is missing.

    Modules are in it compiled, too: each new process of a worker would compile them again. Another Python ignores that.
    The same content and Python give the same bytes.
    """
    root = package or Path(__file__).parents[1]
    files = sorted(path for path in root.rglob("*") if path.suffix in _ENDINGS and "__pycache__" not in path.parts)
    sources = [(path.relative_to(root.parent).as_posix(), path.read_bytes()) for path in files]
    target = folder / f"hybrid-{_digest([(str(sys.implementation.cache_tag), b''), *sources])}.zip"
    if target.exists():
        return target
    contents = [*sources, *(_compiled(name, source) for name, source in sources if name.endswith(".py"))]
    folder.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    os.replace(part, target)
    return target


def _compiled(name: str, source: bytes) -> tuple[str, bytes]:
    """A module's byte code as a file beside it, which import takes as it is (PEP 552: an unchecked hash)."""
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little") + importlib.util.source_hash(source)
    return f"{name}c", head + marshal.dumps(code)


def _digest(contents: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in contents:
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:_DIGITS]


@dataclass(frozen=True)
class WorkerSide:
    """Workers as errors speak of them: their master, what names their Python, and on YARN the application."""

    master: str
    python_setting: str = "worker_python under [spark], or spark.archives"
    application: str | None = None

    @classmethod
    def of(cls, context: SparkContext) -> WorkerSide:
        """The workers of a context on a cluster."""
        if context.master != yarn.MASTER:
            return cls(str(context.master))
        return cls("YARN", application=str(context.applicationId))


def prepare_workers(session: SparkSession, archive: Path, *, needs_store: bool, wait_s: float = WAIT_S) -> None:
    """Send our package to the workers of a cluster, and look whether they have what our work needs.

    MachineError as from `require_workers`.
    """
    context = session.sparkContext
    context.addPyFile(str(archive))
    tasks = context.defaultParallelism
    require_workers(session, tasks, archive, WorkerSide.of(context), needs_store=needs_store, wait_s=wait_s)


def require_workers(
    session: SparkSession, tasks: int, archive: Path, side: WorkerSide, *, needs_store: bool, wait_s: float = WAIT_S
) -> None:
    """Look, by so many tasks, whether workers have what our work needs. They have been sent our package.

    MachineError with the lack and its remedy; also when no worker offers a core within `wait_s`.
    """
    packages = (*_PACKAGES, *((_STORE_PACKAGE,) if needs_store else ()))
    texts = _within(side, wait_s, lambda: _surveys(session, tasks, packages))
    here = survey(packages, ())
    for found in {text: WorkerSurvey(**json.loads(text)) for text in texts}.values():
        _require(side, found, here, archive.stem.removeprefix("hybrid-"))


def _surveys(session: SparkSession, tasks: int, packages: Sequence[str]) -> list[str]:
    """What each worker has. They are asked as ingestion asks them, so that its first batch finds their processes."""

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"text": [json.dumps(asdict(survey(packages, _MODULES)))]})

    numbers = session.range(tasks, numPartitions=tasks)
    return [row["text"] for row in numbers.mapInArrow(look, "text string").collect()]


def survey(packages: Sequence[str], modules: Sequence[str]) -> WorkerSurvey:
    """What this process has of some packages, and which modules cannot be imported."""
    versions, lacking = dict[str, str](), dict[str, str]()
    for name in (*packages, *modules):
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            missing = (error.name or name).partition(".")[0]
            lacking[missing if missing != "hybrid" else name] = str(error)
            continue
        versions[name] = str(getattr(module, "__version__", ""))
    archive = Path(importlib.import_module("hybrid").__file__ or "").parents[1].stem
    digest, python = archive.removeprefix("hybrid-"), platform.python_version()
    return WorkerSurvey(socket.gethostname(), python, sys.executable, digest, versions, lacking)


def _require(side: WorkerSide, found: WorkerSurvey, here: WorkerSurvey, digest: str) -> None:
    place = f"A Spark worker on {found.host} ({found.executable}, Python {found.python})"
    if found.lacking:
        names = ", ".join(sorted(found.lacking))
        raise MachineError(
            f"{place} lacks {names}. Nothing was started.",
            hint=f"pip install 'hybrid[store]' into that Python, or name another: {side.python_setting}.",
        )
    for name in _SAME:
        if found.packages[name] != here.packages.get(name):
            raise MachineError(
                f"{place} has {name} {found.packages[name]}, this process {here.packages.get(name)}: they must be the "
                "same. Nothing was started.",
                hint=f"pip install {name}=={here.packages.get(name)} into that Python.",
            )
    if found.digest != digest:
        raise MachineError(
            f"{place} imports another version of hybrid, from {found.digest}. Nothing was started.",
            hint="Take hybrid off the PYTHONPATH of Spark's workers: this version is sent to them.",
        )


def _within(side: WorkerSide, wait_s: float, work: Callable[[], list[str]]) -> list[str]:
    """The result of a job. MachineError when it has not ended in time, or fails."""
    results, errors = list[list[str]](), list[Exception]()

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # py4j and pyspark have no common base class
            errors.append(error)

    thread = threading.Thread(target=run, name="workers", daemon=True)
    thread.start()
    thread.join(wait_s)
    if results:
        return results[0]
    if errors:
        raise _failed(side, errors[0]) from errors[0]
    raise MachineError(
        f"No worker of {side.master} has given a core within {wait_s:.0f} s.",
        hint=f"yarn application -status {side.application}; and see spark.executor.instances, spark.executor.cores and "
        "spark.executor.memory under [spark]."
        if side.application
        else "See the page of Spark's master for its workers and other applications, and spark.cores.max and "
        "spark.executor.memory under [spark].",
    )


def _failed(side: WorkerSide, error: Exception) -> MachineError:
    """The error of a first job that failed: mostly there is no Python, or another one."""
    from hybrid.jvm.spark_errors import short_words

    text = str(error)
    if (program := _NO_PROGRAM.search(text)) is not None:
        return MachineError(
            f"Spark's workers have no Python '{program[1]}'. Nothing was started.",
            hint=f"pip install 'hybrid[store]' into that Python, or name another: {side.python_setting}.",
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return MachineError(
            f"The Python of Spark's workers is another version than {platform.python_version()} of this process. "
            "Nothing was started.",
            hint=f"Name one of the same first two numbers: {side.python_setting}.",
        )
    if any(words in text for words in _NO_PACKAGE):
        return MachineError(
            f"The Python of Spark's workers lacks a package: {short_words(error)}. Nothing was started.",
            hint=f"pip install 'hybrid[store]' into that Python, or name another: {side.python_setting}.",
        )
    return MachineError(
        f"Spark's workers of {side.master} cannot work: {short_words(error)}",
        hint=f"yarn logs -applicationId {side.application}"
        if side.application
        else "See their logs, on the pages of Spark's master.",
    )
