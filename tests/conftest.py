"""Fixtures for every test: a home folder of its own, and one real Kafka broker for the session."""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from hybrid.errors import MachineError
from hybrid.jvm.java import find_java
from hybrid.kafka.topics import create_topic
from hybrid.lake import spark as lake_spark
from hybrid.lake.class_data_archive import with_archive
from hybrid.lake.commit_context import CommitContext
from hybrid.progress import Silent
from tests import unit_run
from tests.examples import UNIT
from tests.exclusive_run import turn
from tests.shared_jvm import INTERPRETED
from tests.unit_queue import FileQueue
from tests.watchdog import running_broker

# Beside the tests of another process a server's Spark would get a tenth of a processor.
os.environ.setdefault("HYBRID_PIPELINE_NICENESS", "0")

# For whoever starts this process's session; the processes of the product that tests start have its own settings.
# Each test has tables of its own: the session need not keep the logs and snapshots of a thousand others. It plans so
# many statements that in a small heap, which grows by collecting all of it, a tenth of its time is garbage collection.
# A sort takes a page of memory at once: by default 16 MiB for a few rows.
_SESSION = {
    **INTERPRETED,
    "spark.databricks.delta.delta.log.cacheSize": "20",
    "spark.driver.memory": "2g",
    "spark.buffer.pageSize": "1m",
}
_SESSION_JVM = "-Xms2g"
_product_configuration = lake_spark._configuration


def _session_configuration(settings: lake_spark.SparkSettings) -> dict[str, str]:
    configuration = {**_product_configuration(settings), **_SESSION}
    options = configuration["spark.driver.extraJavaOptions"]
    return {**configuration, "spark.driver.extraJavaOptions": f"{options} {_SESSION_JVM}"}


lake_spark._configuration = _session_configuration

# What `--unit` leaves out, and `--integration` runs. A module that has one of these marks as a whole is not imported.
_WITH_PROCESS = ("spark", "kafka", "browser", "process")
_NOT_UNIT = (*_WITH_PROCESS, "slow")

# What the user has in the environment must not change what a test sees (the jar cache is shared on purpose).
for _name in ("HYBRID_HOME", "HYBRID_SERVER", "HYBRID_TOKEN", "HYBRID_KAFKA"):
    os.environ.pop(_name, None)

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
settings.register_profile("unit", settings.get_profile("any machine"), max_examples=UNIT)

# What a test takes, in seconds, by its marks: enough to put the long files first. Slow ones with a process are longer.
_SECONDS = {"slow": 1.0, "spark": 5.0, "kafka": 4.0, "process": 3.0, "browser": 2.0}
_SLOW_WITH_PROCESS = 20.0
# What is allowed more time than others takes more: this part of its limit.
_OF_TIMEOUT = 0.1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds what divides the suite, such as `--unit`, `--integration` and `--cluster`, and `--rewrite-snapshots`."""
    marks = ", ".join(_NOT_UNIT)
    parser.addoption("--unit", action="store_true", help=f"only tests marked none of {marks}")
    parser.addoption("--slow", action="store_true", help="with --unit: also the slow tests that start no process")
    parser.addoption("--integration", action="store_true", help=f"only tests marked one of {marks}")
    parser.addoption("--cluster", action="store_true", help="only tests marked cluster; without it, all others")
    parser.addoption("--queue", type=int, metavar="FD", help="with --unit: whose turn a file is (tests/unit_queue.py)")
    rewrite = "write what commands print to tests/cli/snapshots, instead of comparing it"
    parser.addoption("--rewrite-snapshots", action="store_true", help=rewrite)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--unit`, skips modules that have no such test: importing them takes long."""
    if not config.getoption("--unit") or collection_path.suffix != ".py":
        return None
    return None if collection_path in _files(_left_out(config)) else True


@cache
def _files(left_out: Sequence[str]) -> frozenset[Path]:
    """The modules with tests that have none of these marks."""
    whole_module = re.compile(rf"^pytestmark = .*\bmark\.(?:{'|'.join(left_out)})\b", re.MULTILINE)
    modules = Path(__file__).parent.rglob("test_*.py")
    return frozenset(path for path in modules if not whole_module.search(path.read_text(encoding="utf-8")))


def _left_out(config: pytest.Config) -> Sequence[str]:
    """The marks of tests that are not unit tests, or that `--unit --slow` leaves out."""
    return _WITH_PROCESS if config.getoption("--slow") else _NOT_UNIT


def pytest_configure(config: pytest.Config) -> None:
    """Files are dealt out in the order of `pytest_collection_modifyitems`, not those of many tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    unit_run.collect_garbage_seldom()
    unit_run.report_briefly(config)
    unit_run.end_quickly()
    unit_run.leave_unsynced()
    if not config.getoption("--unit"):
        os.environ["JAVA_TOOL_OPTIONS"] = " ".join([*_java_options(), os.environ.get("JAVA_TOOL_OPTIONS", "")])
    elif not config.getoption("numprocesses", None):  # else the workers run the tests
        sys.addaudithook(_refuse_process)
        unit_run.share_what_is_opened()
        unit_run.leave_constants()
        settings.load_profile("unit")
        if (queue := config.getoption("--queue")) is not None:
            config.pluginmanager.register(FileQueue(queue))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With `--dist loadfile` the files of a package go to one worker."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.package_scheduling import PackageScheduling, packages

    return PackageScheduling(config, log, packages(Path(__file__).parent, config.rootpath))


def _java_options() -> tuple[str, ...]:
    """Options for the JVMs of tests, which live for seconds: most tests are a third faster.

    Compiling well costs more than it brings. Many JVMs are started by tests that kill them: with the archive of classes
    in two thirds of the time.
    """
    try:
        archive = with_archive(find_java())
    except MachineError:  # most tests need no Java
        return ()
    # One compiler alone would get a small code cache, which many tests fill, and which the JVM then keeps sweeping.
    return ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC", "-XX:NewRatio=1", *archive)


def _refuse_process(event: str, arguments: Sequence[object]) -> None:
    """Holds the promise of `--unit`: none of its tests starts a process."""
    if event not in {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.system"}:
        return
    is_test = "PYTEST_CURRENT_TEST" in os.environ  # pytest itself starts workers
    if is_test and arguments[0] != "file":  # croniter, when it is imported, asks `file` what Python's architecture is
        pytest.fail("This test starts a process: mark it `process`.")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first: the short ones then fill up both processes, and none is left alone with a long one.

    Before them what measures time: later on it would wait for the end of a long test.
    """
    marks = {item: {mark.name for mark in item.iter_markers()} for item in items}
    others = [item for item in items if ("cluster" in marks[item]) != config.getoption("--cluster")]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in {*others}]
    if config.getoption("--unit") or config.getoption("--integration"):
        marked = {item for item in items if not marks[item].isdisjoint(_left_out(config))}
        others = marked if config.getoption("--unit") else {*items} - marked
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]
    seconds: dict[Path, float] = {}
    for item in items:
        names = marks[item]
        marked = sum(_SECONDS.get(name, 0.0) for name in names)
        more = _SLOW_WITH_PROCESS if "slow" in names and not names.isdisjoint(_WITH_PROCESS) else 0.0
        limit = item.get_closest_marker("timeout")
        more += _OF_TIMEOUT * limit.args[0] if limit is not None and limit.args else 0.0
        seconds[item.path] = seconds.get(item.path, 0.0) + marked + more + 0.03
    place = {path: number for number, path in enumerate(seconds)}
    measuring = {item.path for item in items if "alone" in marks[item]}
    items.sort(key=lambda item: (item.path not in measuring, -seconds[item.path], place[item.path]))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Leaves a fixture of several tests the databases that it borrowed."""
    value = yield
    shared = sys.modules.get("tests.shared_duckdb")
    if shared is not None and fixturedef.scope != "function":
        shared.leave_databases()
    return value


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Empties the databases that a test borrowed."""
    shared = sys.modules.get("tests.shared_duckdb")
    if shared is not None:
        shared.take_back_databases()


def pytest_collection_finish() -> None:
    """Prepares the process for thousands of short tests."""
    unit_run.keep_what_exists()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """What pytest does at the end of the process is short."""
    unit_run.collect_once()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests make room for those that measure time; those without a process share what they open."""
    if item.config.getoption("--unit"):  # none measures time
        return (yield)
    with turn(alone=item.get_closest_marker("alone") is not None), _shared(item):
        return (yield)


def _shared(item: pytest.Item) -> AbstractContextManager[None]:
    if any(item.get_closest_marker(name) for name in _WITH_PROCESS):
        unit_run.share_what_is_opened(False)  # but for statements over files
        return nullcontext()
    return unit_run.in_process()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder that does not exist yet."""
    return tmp_path / ".hybrid"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Kafka broker; stopped at the end of the session. Mark tests that use it with `kafka`."""
    with running_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture
def topic(broker: str) -> str:
    """A new topic of one partition, by a name that no other test uses."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    create_topic(broker, name)
    return name


@pytest.fixture
def compiled_spark(workbench: CommitContext) -> Iterator[None]:
    """The session of `workbench` compiles expressions, as it does for users."""
    conf = workbench.spark.conf
    conf.set("spark.sql.codegen.wholeStage", "true")
    conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    yield
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"):
        conf.set(name, INTERPRETED[name])


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommitContext]:
    """One Spark session for all tests, started at its first use. Mark tests that use it with `spark`.

    A test that needs a clock of its own makes `CommitContext(lambda: workbench.spark, ...)`: that costs nothing.

    It interprets expressions: compiling them takes longer than the few rows of a test. Commands and servers that tests
    start compile, and so do tests with `compiled_spark`.
    """
    from hybrid.clock import wall_clock_ms
    from hybrid.jvm.jars import spark_jars
    from hybrid.lake.spark import SparkSettings, spark_session

    logs = tmp_path_factory.mktemp("spark")
    bench = CommitContext(
        lambda: spark_session(SparkSettings(spark_jars(), logs)),
        wall_clock_ms,
        Silent(),
    )
    yield bench
    bench.end_session()
