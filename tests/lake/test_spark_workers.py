"""What a cluster's workers get from us, what they must have, and what a session for them does not assume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hybrid.config.settings import load_settings
from hybrid.errors import MachineError, SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.spark import SparkSettings, _configuration, is_stopped
from hybrid.lake.spark_workers import WorkerSurvey, package_archive, prepare_workers, survey
from hybrid.lake.workers import run_numbered
from hybrid.progress import Silent

HERE = survey(("pyarrow", "duckdb"), ())


class Context:
    """A session of a cluster: what was sent, and what its only job gives."""

    master, pythonExec, defaultParallelism = "spark://there:7077", "python3", 2

    def __init__(self, *results: WorkerSurvey | Exception, pause: Any = None) -> None:
        self.sent, self._results, self._pause = list[str](), results, pause

    def addPyFile(self, path: str) -> None:
        self.sent.append(path)

    @property
    def sparkContext(self) -> Any:
        return self

    def range(self, end: int, *, numPartitions: int) -> Any:
        return SimpleNamespace(mapInArrow=lambda work, schema: SimpleNamespace(collect=self._collect))

    def _collect(self) -> list[Mapping[str, str]]:
        if self._pause is not None:
            self._pause()
        for result in self._results:
            if isinstance(result, Exception):
                raise result
        return [{"text": json.dumps(asdict(cast("WorkerSurvey", result)))} for result in self._results]


def there(**changes: Any) -> WorkerSurvey:
    return replace(HERE, host="there", executable="/usr/bin/python3", digest="abc", **changes)


def prepare(*results: WorkerSurvey | Exception, **options: Any) -> Context:
    context = Context(*results, **options)
    prepare_workers(cast("Any", context), Path("/x/hybrid-abc.zip"), needs_store=False, wait_s=0.5)
    return context


def test_the_same_sources_give_the_same_archive(tmp_path: Path) -> None:
    one = package_archive(tmp_path / "one")
    first = one.read_bytes()
    other = package_archive(tmp_path / "other")
    assert (one.name, first) == (other.name, other.read_bytes())
    assert package_archive(tmp_path / "one") == one and sorted(tmp_path.joinpath("one").iterdir()) == [one]
    package = tmp_path / "hybrid"
    package.mkdir()
    (package / "__init__.py").write_text("")
    before = package_archive(tmp_path / "small", package)
    (package / "__init__.py").write_text("changed = True")
    assert package_archive(tmp_path / "small", package) != before
    assert zipfile.ZipFile(before).namelist() == ["hybrid/__init__.py", "hybrid/__init__.pyc"]


def imported_file(archive: Path) -> str:
    """The file from which a process imports a module of the archive, and what the module says."""
    words = [sys.executable, "-c", "import hybrid; print(hybrid.__file__, hybrid.said)"]
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=archive.parent, env=environment)
    return done.stdout.strip().removeprefix(f"{archive}/")


@pytest.mark.process
def test_workers_compile_nothing_and_another_python_takes_the_sources(tmp_path: Path) -> None:
    package = tmp_path / "sources" / "hybrid"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("said = 'this'")
    archive = package_archive(tmp_path / "packages", package)
    assert imported_file(archive) == "hybrid/__init__.pyc this"
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(archive) as made, zipfile.ZipFile(other, "w") as changed:
        changed.writestr("hybrid/__init__.py", made.read("hybrid/__init__.py"))
        changed.writestr("hybrid/__init__.pyc", b"xx" + made.read("hybrid/__init__.pyc")[2:])
    assert imported_file(other) == "hybrid/__init__.py this"


@pytest.mark.slow
def test_workers_import_the_package_from_the_archive(tmp_path: Path) -> None:
    archive = package_archive(tmp_path)
    words = "from hybrid.lake.spark_workers import *; from hybrid.lake.spark_workers import _MODULES, asdict\n"
    words += "import json; print(json.dumps(asdict(survey(('pyarrow', 'no_such_package'), _MODULES))))"
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, cwd=tmp_path, check=True,
        env={**os.environ, "PYTHONPATH": str(archive)},
    )  # fmt: skip
    found = WorkerSurvey(**json.loads(done.stdout))
    assert f"hybrid-{found.digest}" == archive.stem and found.packages["pyarrow"] == HERE.packages["pyarrow"]
    assert found.lacking == {"no_such_package": "No module named 'no_such_package'"}


def test_workers_that_have_everything_get_the_package() -> None:
    assert prepare(there(), there()).sent == ["/x/hybrid-abc.zip"]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (there(lacking={"pyarrow": "x", "duckdb": "y"}), r"on there \(/usr/bin/python3, Python 3\S+\) lacks duckdb, "),
        (there(packages={**HERE.packages, "duckdb": "1.0.0"}), "has duckdb 1.0.0, this process"),
        (replace(there(), digest="other"), "imports another version of hybrid, from other"),
        (RuntimeError('Cannot run program "python3": error=2'), "have no Python 'python3'"),
        (RuntimeError("[PYTHON_VERSION_MISMATCH] Python in worker"), "is another version than 3"),
        (RuntimeError("what nobody expects"), "of spark://there:7077 cannot work: what nobody expects"),
    ],
    ids=["lacking", "duckdb", "hybrid", "no-python", "python", "other"],
)  # fmt: skip
def test_what_workers_lack_is_said(found: WorkerSurvey | Exception, words: str) -> None:
    with pytest.raises(MachineError, match=words) as raised:
        prepare(there() if isinstance(found, WorkerSurvey) else found, found)
    assert raised.value.hint


def test_a_cluster_without_a_free_core() -> None:
    held = Event()
    with pytest.raises(MachineError, match=r"No worker of spark://there:7077 has given a core"):
        prepare(there(), pause=lambda: held.wait(5))
    held.set()


def test_a_cluster_gets_no_loopback(tmp_path: Path) -> None:
    local = _configuration(SparkSettings([], tmp_path))
    cluster = _configuration(SparkSettings([], tmp_path, master="spark://there:7077"))
    assert (local["spark.driver.host"], local["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & cluster.keys()
    named = SparkSettings([], tmp_path, master="yarn", extra={"spark.driver.host": "10.0.0.5"})
    assert _configuration(named)["spark.driver.host"] == "10.0.0.5" and not named.is_local


def test_work_that_needs_the_folders_is_refused_and_other_work_gets_the_session() -> None:
    session = cast("Any", SimpleNamespace())
    bench = CommitContext(lambda: session, lambda: 0, Silent(), has_shared_files=False)
    with pytest.raises(SpecError, match="needs workers that share the home's folders"):
        _ = bench.spark
    assert bench.session is session and bench.file_workers is None
    shared = CommitContext(lambda: session, lambda: 0, Silent())
    assert shared.spark is shared.session is shared.file_workers is session


def test_a_session_that_the_cluster_has_ended_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    for is_ended in (False, True):
        java = SimpleNamespace(sc=lambda ended=is_ended: SimpleNamespace(isStopped=lambda: ended))
        monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(_jsc=java))
        assert is_stopped() is is_ended
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    assert not is_stopped()


def test_tasks_without_a_session_run_here_in_their_order() -> None:
    assert run_numbered(None, 5, lambda number: [str(number)] * number) == [str(n) for n in range(5) for _ in range(n)]
    with pytest.raises(ZeroDivisionError):
        run_numbered(None, 2, lambda number: [str(1 // number)])


def test_settings_of_workers(tmp_path: Path) -> None:
    def settings(**environ: str) -> Any:
        return load_settings(home=tmp_path, environ=environ)

    assert settings().workers_share_files and settings().spark_worker_python is None
    store = {"HYBRID_SPARK_WORKER_FILES": "store", "HYBRID_SPARK_WORKER_PYTHON": "/opt/python"}
    found = settings(**store, HYBRID_WAREHOUSE="s3://bucket/x")
    assert (found.workers_share_files, found.spark_worker_python) == (False, "/opt/python")
    with pytest.raises(SpecError, match="'warehouse' is not set"):
        _ = settings(**store).workers_share_files
    with pytest.raises(SpecError, match="'nfs' is not shared or store"):
        settings(HYBRID_SPARK_WORKER_FILES="nfs")


def test_settings_of_a_spark_connect_server(tmp_path: Path) -> None:
    def settings(**environ: str) -> Any:
        return load_settings(
            home=tmp_path, environ={"HYBRID_SPARK_MASTER": "sc://there:15002/;use_ssl=true", **environ}
        )

    store = {"HYBRID_SPARK_WORKER_FILES": "store", "HYBRID_WAREHOUSE": "s3://bucket/x"}
    assert settings(**store).workers_share_files is False and settings().has_spark_connect
    assert settings().spark_connect_url == "sc://there:15002/;use_ssl=true"
    with pytest.raises(SpecError, match="a Spark Connect server, which does not see the home's folders") as raised:
        _ = settings(HYBRID_WAREHOUSE="s3://bucket/x").workers_share_files
    assert 'worker_files = "store" under [spark]' in str(raised.value.hint)
    with pytest.raises(SpecError, match="'warehouse' is not set"):
        _ = settings(HYBRID_SPARK_WORKER_FILES="store").workers_share_files
    with pytest.raises(SpecError, match=r"spark\.master has a token"):
        _ = settings(HYBRID_SPARK_MASTER="sc://there/;token=secret").spark_connect_url
    with pytest.raises(SpecError, match="worker_python does not reach the workers"):
        _ = settings(HYBRID_SPARK_WORKER_PYTHON="/opt/python").spark_connect_url
