"""Fetches a fixed list of Maven artifacts with the Ivy that pyspark's wheel ships, without resolving dependencies.

Ivy's built-in settings, which point to Maven Central, are used unchanged.
"""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from hybrid.errors import MachineError
from hybrid.jvm.java import find_java
from hybrid.progress import Progress


@dataclass(frozen=True)
class Dependency:
    """One artifact, and its configuration, which is a folder of the result."""

    conf: str
    group: str
    artifact: str
    version: str


def retrieve(dependencies: list[Dependency], folder: Path, cache: Path, progress: Progress) -> None:
    """Put each artifact at `<folder>/<conf>/<artifact>-<version>.jar`; `cache` is Ivy's own folder.

    Raises MachineError with Ivy's reason when one cannot be fetched.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    ivy_xml = folder / "ivy.xml"
    ivy_xml.write_text(ivy_file(dependencies), encoding="utf-8")
    command = [
        *(str(find_java().executable), f"-Divy.default.ivy.user.dir={cache}", "-jar", str(ivy_jar())),
        *("-cache", str(cache), "-ivy", str(ivy_xml), "-types", "jar", "bundle"),
        *("-retrieve", f"{folder}/[conf]/[artifact]-[revision].[ext]"),
    ]
    _run(command, len(dependencies), cache.with_name("ivy.log"), progress)


def ivy_file(dependencies: Iterable[Dependency]) -> str:
    """The `ivy.xml` of exactly these artifacts, without transitive dependencies."""
    artifacts = list(dependencies)
    confs = "".join(f"<conf name={quoteattr(conf)}/>" for conf in dict.fromkeys(jar.conf for jar in artifacts))
    lines = "\n".join(
        f"    <dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
        f' conf={quoteattr(jar.conf + "->default")} transitive="false"/>'
        for jar in artifacts
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="hybrid" module="jars"/>\n'
        f"  <configurations>{confs}</configurations>\n  <dependencies>\n{lines}\n  </dependencies>\n</ivy-module>\n"
    )


def ivy_jar() -> Path:
    """The Ivy jar of the installed pyspark, located without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or []) if spec else []
    ivy_jars = sorted(Path(places[0], "jars").glob("ivy-*.jar")) if places else []
    if not ivy_jars:
        raise MachineError("pyspark's Ivy jar was not found.", hint="pip install --force-reinstall pyspark")
    return ivy_jars[0]


def _run(command: list[str], total: int, log_file: Path, progress: Progress) -> None:
    """Run Ivy, report how many artifacts it has found and fetched, and write its output to `log_file`."""
    looked_up = fetched = 0
    with (
        log_file.open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
        ) as ivy,
    ):
        for line in ivy.stdout or ():
            log.write(line)
            if line.startswith("\tfound "):
                looked_up += 1
                progress.step("Looking up jars", looked_up, total)
            elif "[SUCCESSFUL ]" in line:
                fetched += 1
                progress.step("Fetching jars", fetched, total)
    if ivy.returncode != 0:
        raise MachineError(
            f"The jars could not be fetched from Maven Central: {_reason(log_file)} (all of it: {log_file})",
            hint="check the network (a proxy goes into JAVA_TOOL_OPTIONS), then: hybrid setup",
        )


def _reason(log_file: Path) -> str:
    """Ivy's first error message, else its last line."""
    lines = [line.strip() for line in log_file.read_text(encoding="utf-8").splitlines() if line.strip(" \t.")]
    complaints = [line for line in lines if "Exception" in line or "not found" in line or "FAILED" in line]
    return (complaints or lines or ["Ivy did not start"])[0]
