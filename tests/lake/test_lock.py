"""One lock per half: who waits, who gives up, and what becomes of a dead holder's JVM."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hybrid.errors import ConflictError
from hybrid.jvm.process import Process
from hybrid.lake.lock import half_lock

pytestmark = pytest.mark.process
HOLDER = """
import sys, time
from pathlib import Path
from hybrid.lake.lock import half_lock
with half_lock(Path(sys.argv[1]), jvm_pid=None, timeout_s=5, waiting=print):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders" / "REALTIME.lock"


def nobody(message: str) -> None:
    raise AssertionError(f"it waited: {message}")


def take(path: Path, jvm_pid: int | None = None, timeout_s: float = 5.0, waiting=nobody, **options: float):
    return half_lock(path, jvm_pid=jvm_pid, timeout_s=timeout_s, waiting=waiting, **options)


@pytest.fixture
def sleeper():
    """A process that stands for a JVM."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def holder(path: Path) -> dict:
    return json.loads(path.read_text() or "{}")


def test_another_process_waits_then_exits_4_and_changes_nothing(path):
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        said: list[str] = []
        before = path.read_text()
        with pytest.raises(ConflictError) as caught, take(path, timeout_s=0.2, waiting=said.append):
            pass
        assert caught.value.exit_code == 4
        assert f"(pid {other.pid})" in str(caught.value) and "Nothing was changed" in str(caught.value)
        assert said == ["Waiting for another process that works on REALTIME of table 'orders'."]
        assert path.read_text() == before
        other.kill()
        other.wait()
        with take(path):  # a dead holder holds nothing
            pass


def test_it_is_handed_on(path):
    order: list[str] = []

    def second() -> None:
        with take(path, waiting=lambda _: None):
            order.append("second")

    with take(path):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_the_holder_is_written_down_and_wiped(path, sleeper):
    with take(path, jvm_pid=sleeper.pid):
        assert holder(path)["jvm"]["pid"] == sleeper.pid
        assert holder(path)["python"]["pid"] == os.getpid()
    assert "jvm" not in holder(path)


def test_a_holder_that_failed_keeps_its_jvm(path, sleeper):
    """It lives on with other work: the next one must not take its JVM for an orphan."""
    with pytest.raises(ValueError), take(path, jvm_pid=sleeper.pid):
        raise ValueError("a wrong row")
    with take(path, jvm_pid=None):
        pass
    assert sleeper.poll() is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ConnectionResetError()])
def test_a_jvm_out_of_sight_is_ended_first(path, sleeper, error):
    """After an interrupt or a broken connection the JVM may be in the middle of a commit."""
    with pytest.raises(type(error)), take(path, jvm_pid=sleeper.pid):
        raise error
    with take(path, orphan_grace_s=0.1):
        assert Process.of(sleeper.pid) is None


def test_our_own_jvm_is_no_orphan(path, sleeper):
    with pytest.raises(KeyboardInterrupt), take(path, jvm_pid=sleeper.pid):
        raise KeyboardInterrupt
    with take(path, jvm_pid=sleeper.pid):
        assert sleeper.poll() is None


def test_a_stranger_under_the_same_number_is_left_alone(path, sleeper):
    path.parent.mkdir()
    path.write_text(json.dumps({"jvm": {"pid": sleeper.pid, "started": "long ago"}}))
    with take(path):
        assert sleeper.poll() is None


@pytest.mark.parametrize("text", ['{"py', "[]", "7", '{"jvm": 7}', '{"jvm": {"pid": 1}}'])
def test_a_holder_that_died_while_it_wrote(path, text):
    path.parent.mkdir()
    path.write_text(text)
    with take(path):
        pass
