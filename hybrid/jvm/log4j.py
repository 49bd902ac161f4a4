"""Logging of the JVMs that we start: warnings and errors to one rolling file, nothing to the terminal."""

from __future__ import annotations

from pathlib import Path

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def write_log4j(path: Path, log: Path, more: str = "") -> Path:
    """Write log4j2 properties that log to the file `log`, followed by the lines `more`. Returns `path`."""
    path.write_text(_LOG4J.format(log=escaped(log)) + more, encoding="ascii")
    return path


def escaped(path: Path) -> str:
    """A path as a value of a Java properties file, which is Latin-1 with escapes."""
    units = str(path).replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)
