"""Logs: one write a record, rotation by several processes, and one story read back from all files."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.errors import SpecError
from hybrid.logs import Lasting, Later, LogHandler, log_context, logging_to, read_logs, setup_logging, written_log

LOG = logging.getLogger("hybrid.test")
OWN = ("hybrid.test", "hybrid.later")
WRITER = """
import logging, sys
from pathlib import Path
from hybrid.logs import LogHandler
log = logging.getLogger("hybrid.writer")
log.setLevel(logging.INFO)
log.addHandler(LogHandler(lambda: Path(sys.argv[1]), "cli", size_max=20_000, kept=100))
sys.stdin.read()
for number in range(int(sys.argv[3])):
    log.info("%s %s %s", sys.argv[2], number, "x" * (number % 200))
"""


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Only what these tests log is written: threads that other tests of this process left behind log, too."""
    monkeypatch.setattr(LogHandler, "filter", lambda self, record: record.name.startswith(OWN))
    root = logging.getLogger()
    before, level = list(root.handlers), logging.getLogger("hybrid").level
    yield
    for handler in root.handlers:
        if isinstance(handler, LogHandler):
            handler.close()
    root.handlers = before
    logging.getLogger("hybrid").setLevel(level)


def messages(folder: Path, **wanted: object) -> list[str]:
    return [record["message"] for record in read_logs(folder, **wanted)]  # type: ignore[arg-type]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, *records: dict[str, object] | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def record(second: int, message: str, **more: object) -> dict[str, object]:
    return {"ts": f"2026-11-21T10:00:{second:02}.000Z", "level": "INFO", "message": message, **more}


# Writing


def test_a_record(tmp_path: Path) -> None:
    setup_logging(tmp_path / "logs", "query")
    assert not (tmp_path / "logs").exists() and written_log() is None
    with log_context(table="orders", run_id="run-1"), log_context(request_id="r\n1"):
        LOG.info("moved %d rows \u2028 of 'ä'", 7)
    LOG.debug("too small to be told")
    try:
        raise ValueError("oh\nno")
    except ValueError:
        LOG.exception("failed")
    assert written_log() == tmp_path / "logs" / "query.log"
    first, second = (json.loads(line) for line in (tmp_path / "logs/query.log").read_bytes().split(b"\n")[:2])
    assert first.pop("ts").endswith("Z")
    assert first == {
        "level": "INFO", "role": "query", "logger": "hybrid.test", "message": "moved 7 rows \u2028 of 'ä'",
        "table": "orders", "run_id": "run-1", "request_id": "r\n1",
    }  # fmt: skip
    assert "table" not in second and second["level"] == "ERROR"
    assert second["error"].startswith("Traceback") and second["error"].endswith("ValueError: oh\nno")


def test_records_that_cannot_be_put_into_words_are_kept(tmp_path: Path) -> None:
    logging.getLogger().handlers = []  # pytest's own raise what a record's arguments raise
    setup_logging(tmp_path, "cli")
    LOG.info("%d rows", "no number")
    LOG.info("half a \ud83d character")
    assert messages(tmp_path) == ["%d rows (TypeError in its arguments)", "half a \ud83d character"]


def test_contexts_end_and_are_of_one_thread(tmp_path: Path) -> None:
    setup_logging(tmp_path, "cli")
    with log_context(table="a"):
        other = threading.Thread(target=lambda: LOG.info("other"))
        other.start()
        other.join()
        with log_context(table="b"):
            LOG.info("inner")
        LOG.info("outer")
    LOG.info("none")
    assert [(one["message"], one.get("table")) for one in read_logs(tmp_path)] == [
        ("other", None), ("inner", "b"), ("outer", "a"), ("none", None),
    ]  # fmt: skip


@pytest.mark.slow
def test_records_that_are_written_later(tmp_path: Path) -> None:
    """They bear the time and the context of when they were noted, and are in one write."""
    setup_logging(tmp_path, "query")
    later = Later(logging.getLogger("hybrid.later"))
    with log_context(request_id="r1"):
        later.info("%s of %s", 1, 2)
    noted = time.time()
    time.sleep(0.05)
    later.flush()
    later.info("second")
    time.sleep(1.0)
    first, second = read_logs(tmp_path)
    assert (first["message"], first["request_id"], second["message"]) == ("1 of 2", "r1", "second")
    assert "request_id" not in second
    assert datetime.fromisoformat(first["ts"]).timestamp() <= noted + 0.001


def test_records_that_are_written_later_go_to_the_log_of_their_time(tmp_path: Path) -> None:
    later = Later(logging.getLogger("hybrid.later"))
    with logging_to(lambda: tmp_path / "first", "cli"):
        later.info("noted")
    with logging_to(lambda: tmp_path / "second", "cli"):
        later.flush()
    assert [record["message"] for record in read_logs(tmp_path / "first")] == ["noted"]
    assert not (tmp_path / "second").exists()


def test_a_condition_that_lasts_is_logged_now_and_then() -> None:
    seldom, always = Lasting(3600), Lasting(0)
    assert [seldom.passes(name) for name in ("a", "a", "b", "a")] == [True, False, True, False]
    assert all(always.passes("a") for _ in range(3))


def test_what_cannot_be_logged_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def no_home() -> Path:
        raise SpecError("no settings")

    (tmp_path / "file").touch()
    for folder in (no_home, lambda: tmp_path / "file", lambda: Path("/proc/nowhere")):
        with logging_to(folder, "cli"):
            LOG.info("lost")
            assert written_log() is None
    assert capsys.readouterr().err == ""


def test_a_log_that_can_be_written_again_goes_on(tmp_path: Path) -> None:
    setup_logging(tmp_path / "logs", "cli")
    (tmp_path / "logs").touch()
    LOG.info("lost")
    (tmp_path / "logs").unlink()
    LOG.info("first")
    (tmp_path / "logs" / "cli.log").unlink()
    LOG.info("second")
    assert messages(tmp_path / "logs") == ["second"]


def test_a_stretch_inside_another_logs_alone(tmp_path: Path) -> None:
    with logging_to(lambda: tmp_path / "outer", "cli"):
        LOG.info("before")
        with logging_to(lambda: tmp_path / "inner", "cli"):
            LOG.info("in")
            setup_logging(tmp_path / "inner", "query")
            LOG.info("in as query")
        LOG.info("after")
    LOG.info("outside")
    assert messages(tmp_path / "outer") == ["before", "after"]
    assert messages(tmp_path / "inner") == ["in", "in as query"]
    assert [one["message"] for one in lines(tmp_path / "inner" / "query.log")] == ["in as query"]


def test_a_torn_end_is_ended(tmp_path: Path) -> None:
    (tmp_path / "cli.log").write_text('{"ts": "2026', encoding="utf-8")
    setup_logging(tmp_path, "cli")
    LOG.info("whole")
    assert messages(tmp_path) == ["whole"]
    assert (tmp_path / "cli.log").read_text().startswith('{"ts": "2026\n{"ts"')


def test_a_line_that_did_not_fit_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup_logging(tmp_path, "cli")
    LOG.info("before")
    really = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: really(descriptor, data[:20]))
        LOG.info("torn")
    LOG.info("after")
    assert messages(tmp_path) == ["before", "after"]


# Rotation


def test_files_move_up_and_the_oldest_goes(tmp_path: Path) -> None:
    handler = LogHandler(lambda: tmp_path, "cli", size_max=400, kept=2)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        for number in range(30):
            LOG.info("record %d", number)
    finally:
        LOG.removeHandler(handler)
        handler.close()
    assert sorted(path.name for path in tmp_path.glob("cli.log*")) == ["cli.log", "cli.log.1", "cli.log.2"]
    assert all(path.stat().st_size <= 400 for path in tmp_path.glob("cli.log*"))
    told = messages(tmp_path)
    assert told == [f"record {number}" for number in range(30 - len(told), 30)] and len(told) > 4


@pytest.mark.process
def test_several_processes_rotate_and_lose_nothing(tmp_path: Path) -> None:
    count = 1500
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(name), str(count)], stdin=subprocess.PIPE) for name in range(4)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()  # all begin at once
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len(list(tmp_path.glob("cli.log.*"))) > 20
    found = list(read_logs(tmp_path))
    told = sorted(tuple(map(int, one["message"].split()[:2])) for one in found)
    assert told == [(name, number) for name in range(4) for number in range(count)]
    assert [one["ts"] for one in found] == sorted(one["ts"] for one in found)


# Reading


def test_all_roles_by_time_without_what_is_no_record(tmp_path: Path) -> None:
    write(tmp_path / "cli.log.2", record(1, "a"))
    write(tmp_path / "cli.log.1", record(2, "b"), "", "plain text", '{"ts": 5}', "[1]", '{"ts": "2026-', record(4, "d"))
    write(tmp_path / "cli.log", record(6, "f"), '{"message": "no time"}')
    write(tmp_path / "serve.log", record(3, "c"), record(7, "g"), record(5, "e"))
    write(tmp_path / "spark.log", record(1, "not ours"))
    (tmp_path / "query.log").write_bytes(b"\xff\xfe\n" + json.dumps(record(8, "h")).encode() + b'\n{"ts": "half')
    (tmp_path / "pipeline.log").mkdir()
    assert messages(tmp_path) == ["a", "b", "c", "d", "e", "f", "g", "h"]
    assert messages(tmp_path, last=2) == ["g", "h"]
    assert messages(tmp_path / "nowhere") == []


def test_filters(tmp_path: Path) -> None:
    write(
        tmp_path / "cli.log",
        record(1, "a", table="orders"),
        record(2, "b", table="orders", level="ERROR"),
        record(3, "c", level="WARNING"),
        record(4, "d", level="LOUD"),
    )
    assert messages(tmp_path, table="orders") == ["a", "b"]
    assert messages(tmp_path, level="WARNING") == ["b", "c", "d"]
    assert messages(tmp_path, table="orders", level="WARNING", last=9) == ["b"]


def test_following_over_rotations(tmp_path: Path) -> None:
    path = tmp_path / "cli.log"
    write(path, record(1, "a"), record(2, "b"))
    found = read_logs(tmp_path, follow=True, last=1)
    assert next(found)["message"] == "b"
    write(path, record(3, "c"))
    with path.open("a") as late:
        path.rename(tmp_path / "cli.log.1")
        write(path, record(5, "e"))
        late.write(json.dumps(record(4, "d")) + "\n")  # by a process that did not see the rotation yet
    assert [next(found)["message"] for _ in range(3)] == ["c", "d", "e"]
    with path.open("a") as half:
        half.write(json.dumps(record(6, "f"))[:20])
        half.flush()
        write(tmp_path / "query.log", record(7, "g"))
        assert next(found)["message"] == "g"
        half.write(json.dumps(record(6, "f"))[20:] + "\n")
    assert next(found)["message"] == "f"
    path.unlink()
    write(path, record(8, "h"))  # perhaps under the same inode
    assert next(found)["message"] == "h"


# The command


@pytest.fixture
def told(home: Path) -> Path:
    path = home / "logs" / "cli.log"
    write(
        path,
        record(1, "one\x1b[31m", role="cli", logger="hybrid", table="orders"),
        record(2, "two", role="cli", logger="hybrid", level="ERROR", error="Traceback\n  oh"),
    )
    return home


def test_lines_for_people(told: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logs", "--home", str(told)]) == 0
    assert capsys.readouterr().out == (
        "2026-11-21 10:00:01.000Z INFO    cli      orders one\\x1b[31m\n"
        "2026-11-21 10:00:02.000Z ERROR   cli      - two\n    Traceback\n      oh\n"
    )
    assert run(["logs", "--table", "orders", "-n", "1", "--home", str(told)]) == 0
    assert "one" in capsys.readouterr().out
    assert run(["logs", "--table", "nosuch", "--home", str(told)]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and "Nothing is logged" in captured.err


def test_objects_for_programs(told: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logs", "--json", "--level", "error", "--home", str(told)]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "ts": "2026-11-21T10:00:02.000Z", "level": "ERROR", "role": "cli", "logger": "hybrid", "message": "two",
            "table": None, "request_id": None, "run_id": None, "error": "Traceback\n  oh", "account": None,
        }
    ]  # fmt: skip
    assert run(["logs", "-f", "--format", "csv", "--home", str(told)]) == 2
    assert "--format jsonl" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize("form", ["table", "jsonl", "json"])
def test_following_until_ctrl_c(told: Path, form: str) -> None:
    code = "from hybrid.cli.main import main; main()"
    command = [sys.executable, "-c", code, "logs", "-f", "-n", "1", "--format", form, "--home", str(told)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert "two" in process.stdout.readline()
        write(told / "logs" / "serve.log", record(3, "three"))
        while "three" not in process.stdout.readline():
            pass
        process.send_signal(2)
        assert process.wait(10) == 0 and process.stderr.read() == ""


def test_a_handler_is_not_closed_while_another_thread_writes(tmp_path: Path) -> None:
    handler = LogHandler(lambda: tmp_path, "query")
    handler.acquire()
    closing = threading.Thread(target=handler.close)
    closing.start()
    closing.join(0.1)
    handler.write(b"one\n")
    assert closing.is_alive() and handler.written == tmp_path / "query.log"
    handler.release()
    closing.join(5)
    assert not closing.is_alive() and (tmp_path / "query.log").read_bytes() == b"one\n"
