"""Checks of the machine and of the home's folder: settings, Java, jars, disk space, logs."""

from __future__ import annotations

import shutil
import tempfile

from hybrid.doctor.filesystem import check_filesystem
from hybrid.doctor.findings import Checkup, Severity
from hybrid.errors import MachineError
from hybrid.jvm.jars import missing_jars
from hybrid.jvm.java import find_java
from hybrid.runtime.disk import existing, reserve_bytes

_FREE_ERROR = 128 * 1024**2
_FREE_SHARE_MIN = 0.05
_MIB = 1024**2


def check_machine(checkup: Checkup) -> None:
    """Checks what all work depends on beside the tables. Starts no Spark."""
    with checkup.surviving("settings"):
        _check_settings(checkup)
    if not checkup.home.settings.has_spark_connect:
        with checkup.surviving("java"):
            _check_java(checkup)
        with checkup.surviving("jars"):
            _check_jars(checkup)
    with checkup.surviving("disk"):
        _check_disk(checkup)
    with checkup.surviving("filesystem"):
        check_filesystem(checkup)
    with checkup.surviving("modes"):
        _check_modes(checkup)
    with checkup.surviving("logs"):
        _check_logs(checkup)


def _check_settings(checkup: Checkup) -> None:
    for warning in checkup.home.settings.warnings:
        checkup.found(Severity.WARNING, "settings", warning, hint="hybrid config show")


def _check_java(checkup: Checkup) -> None:
    try:
        find_java(starts_it=True)
    except MachineError as error:
        checkup.found(Severity.ERROR, "java", f"{error} Queries work without; operations do not.", hint=error.hint)


def _check_jars(checkup: Checkup) -> None:
    missing = missing_jars()
    if missing:
        count = "1 jar" if len(missing) == 1 else f"{len(missing)} jars"
        message = (
            f"{count} that Spark or Kafka need are not in the cache, e.g. {missing[0]}: "
            "the first operation fetches them."
        )
        checkup.found(Severity.WARNING, "jars", message, hint="hybrid setup")


def _check_disk(checkup: Checkup) -> None:
    folder = existing(checkup.home.home)
    usage = shutil.disk_usage(folder)
    if usage.free < reserve_bytes(checkup.home.home) or usage.free < _FREE_SHARE_MIN * usage.total:
        share = 100 * usage.free / usage.total
        message = (
            f"The disk of {folder} has {usage.free // _MIB} MiB left ({share:.1f} %). Operations fail when it is full."
        )
        severity = Severity.ERROR if usage.free < _FREE_ERROR else Severity.WARNING
        checkup.found(severity, "disk", message, hint="Make room, or move the home to another disk.")


def _check_modes(checkup: Checkup) -> None:
    """Checks that no other user may enter the home: definitions, logs and the catalog hold passwords and rows."""
    home = checkup.home.home
    if home.exists() and home.stat().st_mode & 0o077:
        message = f"Other users of this machine may enter {home} (mode {home.stat().st_mode & 0o777:o})."
        checkup.found(Severity.WARNING, "modes", message, hint=f"chmod 700 {home}")


def _check_logs(checkup: Checkup) -> None:
    folder = checkup.home.settings.logs
    if not checkup.home.home.exists():
        return
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"Nothing can be logged in {folder}: {error.strerror}. Work continues without it."
        checkup.found(Severity.WARNING, "logs", message, hint="Make it a folder that you may write.")
