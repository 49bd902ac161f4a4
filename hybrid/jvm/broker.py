"""The local Kafka broker: a real one (KRaft, broker and controller in one process) that needs only Java.

Its data is under `<home>/kafka`, its log is `<home>/logs/kafka.log`, it listens on 127.0.0.1 only. It runs in its own
process group, inherits no pipe of ours, and survives the command that started it. This module blocks while it waits.
"""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from hybrid.errors import ConflictError, MachineError, StreamError
from hybrid.jvm import broker_files
from hybrid.jvm.jars import ensure_jars
from hybrid.jvm.java import find_java
from hybrid.jvm.process import Process, read_record
from hybrid.kafka.topics import cluster_answers
from hybrid.progress import Progress, Silent
from hybrid.runtime.file_lock import file_lock

HOST = "127.0.0.1"
DEFAULT_PORT = 9092
START_TIMEOUT_S = 90.0
STOP_GRACE_S = 15.0
_POLL_S = 0.1
_JVM_FLAGS = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


@dataclass(frozen=True)
class BrokerStatus:
    """The status of a home's broker. `state` is `running`, `silent` (alive, but does not answer) or `stopped`."""

    state: str
    address: str | None
    pid: int | None
    log: Path


class LocalBroker:
    """The broker of one home folder; there is at most one."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(home).absolute() / "kafka"
        self.log = Path(home).absolute() / "logs" / "kafka.log"
        self._record = self.folder / "broker.json"

    def start(self, port: int | None = None, progress: Progress | None = None) -> str:
        """Start it, wait until it answers, and return its address `127.0.0.1:port`.

        Port 0 picks a free port; None the previous port, else 9092. If it runs already, a message says so and its
        address is returned; ConflictError when another port was requested. Raises MachineError when Java or the jars
        are missing, the port is in use, or the broker does not start.
        """
        reporter = progress or Silent()
        with self._one_starter():
            running = self.status()
            if running.state == "running" and running.address is not None:
                if port and running.address != f"{HOST}:{port}":
                    raise ConflictError(
                        f"Kafka runs already at {running.address} (pid {running.pid}), not on port {port}.",
                        hint=f"hybrid kafka stop, then: hybrid kafka start --port {port}",
                    )
                reporter.say(f"Kafka runs already at {running.address} (pid {running.pid})")
                return running.address
            if running.state == "silent":
                self._stop_recorded()
            before = broker_files.port_of(self.folder)
            if port is None:
                port = before or DEFAULT_PORT
            elif before not in (None, port):
                reporter.say(f"Kafka listened on port {before} before: tables that read from there need it again.")
            return self._start(port or free_port(), reporter)

    def stop(self) -> bool:
        """Stop it and wait until it has ended; its data stays. False when it did not run."""
        return self._stop_recorded()

    @property
    def address(self) -> str | None:
        """`127.0.0.1:port` of the broker if its process is alive, whether or not it answers yet."""
        recorded = self._recorded()
        return None if recorded is None else recorded[1]

    def address_to_ask(self) -> str:
        """The address of the broker if its process is alive; the default one when it was never started here.

        StreamError when it is stopped: whatever answers at the default address is another broker.
        """
        address, port = self.address, broker_files.port_of(self.folder)
        if address is None and port is not None:
            raise StreamError(
                f"The local broker is stopped. It listened on {HOST}:{port}.",
                hint="hybrid kafka start starts it there again. Another: hybrid kafka ... --kafka HOST:PORT",
            )
        return address or f"{HOST}:{DEFAULT_PORT}"

    def status(self) -> BrokerStatus:
        """Whether it runs and answers; takes milliseconds when it does."""
        recorded = self._recorded()
        if recorded is None:
            return BrokerStatus("stopped", None, None, self.log)
        process, address = recorded
        return BrokerStatus("running" if cluster_answers(address) else "silent", address, process.pid, self.log)

    def _start(self, port: int, said: Progress) -> str:
        _require_free(port)
        jars = ensure_jars(said).kafka
        controller_port = free_port()
        address = f"{HOST}:{port}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        properties = broker_files.write(self.folder, self.log, port, controller_port)
        said.say(f"Starting Kafka at {address}")
        java = [str(find_java().executable), *_JVM_FLAGS, *broker_files.jvm_flags(self.folder)]
        java += ["-cp", ":".join(map(str, jars))]
        self._format(java, properties)
        self._wait(self._spawn([*java, "kafka.Kafka", str(properties)], address), address)
        said.say(f"Kafka answers at {address}")
        return address

    def _format(self, java: list[str], properties: Path) -> None:
        """Format the data folder with a cluster id, once."""
        if (self.folder / "data" / "meta.properties").exists():
            return
        number = uuid.uuid4().int >> 1  # without the top bit: an id that begins with '-' would be read as an option
        cluster_id = base64.urlsafe_b64encode(number.to_bytes(16)).decode().rstrip("=")
        command = [*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise MachineError(f"Kafka's data folder {self.folder} could not be prepared: {done.stderr.strip()[-500:]}")

    def _spawn(self, command: list[str], address: str) -> Process:
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        child.returncode = 0  # the child outlives us: Popen must not warn that it is still running
        process = Process.of(child.pid)
        if process is None:
            raise self._did_not_start()
        process.save(self._record, address=address)
        return process

    def _wait(self, process: Process, address: str) -> None:
        try:
            self._until_it_answers(process, address)
        except BaseException:  # also Ctrl-C: an aborted start leaves nothing running
            process.stop(STOP_GRACE_S)
            self._record.unlink(missing_ok=True)
            raise

    def _until_it_answers(self, process: Process, address: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not cluster_answers(address):
            if not process.is_alive():
                raise self._did_not_start()
            if time.monotonic() > deadline:
                raise StreamError(
                    f"Kafka at {address} did not answer within {START_TIMEOUT_S:.0f} s; it was stopped.",
                    hint=f"read {self.log}",
                )
            time.sleep(_POLL_S)

    def _did_not_start(self) -> MachineError:
        self._record.unlink(missing_ok=True)
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        why = [line for line in lines[-200:] if "ERROR" in line or "FATAL" in line or "Exception" in line]
        return MachineError(
            f"Kafka ended while starting: {(why or lines or ['no reason'])[-1]}", hint=f"read {self.log}"
        )

    def _recorded(self) -> tuple[Process, str] | None:
        """The process recorded in `broker.json` and its address, if that same process is alive and is this home's."""
        record = read_record(self._record, same_path=False)
        return None if record is None else (Process(record["pid"], record["started"]), record["address"])

    def _stop_recorded(self) -> bool:
        recorded = self._recorded()
        if recorded is not None:
            recorded[0].stop(STOP_GRACE_S)
        self._record.unlink(missing_ok=True)
        return recorded is not None

    def _one_starter(self) -> AbstractContextManager[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return file_lock(self.folder / "starting")


def free_port() -> int:
    """A port of 127.0.0.1 that is free at the time of the call."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def _require_free(port: int) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise MachineError(
                f"Port {port} of {HOST} is in use by another program ({error.strerror}).",
                hint="hybrid kafka start --port N (0 takes a free one)",
            ) from error
