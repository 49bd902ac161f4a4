"""Reads a job spec's segmentNameGeneratorSpec: which of Pinot's name generators names the segments of a job.

After Pinot's SegmentGenerationTaskRunner: which keys a generator reads, and which generator is the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.expression.user_patterns import PatternError, compile_user_pattern
from hybrid.schema.document import Section

NAME_TYPES = ("fixed", "simple", "normalizedDate", "inputFile")
# A spec without a type: `simple`, or `normalizedDate` where the time column holds dates as text.
INFERRED = ""
BY_TIMES = frozenset({INFERRED, "simple", "normalizedDate"})  # other files with the same times get the same name

_SEQUENCE = {"use.global.directory.sequence.id", "local.directory.sequence.id"}
_UUID = "append.uuid.to.segment.name"
_WITHOUT_TIMES = ("exclude.time.in.segment.name", "omit.timestamps.in.segment.name")
NAME_KEYS = {
    "fixed": {"segment.name"},
    "simple": {"segment.name.postfix", *_WITHOUT_TIMES, *_SEQUENCE, _UUID},
    "normalizedDate": {"segment.name.prefix", "segment.name.postfix", "exclude.sequence.id", *_SEQUENCE, _UUID},
    "inputFile": {"file.path.pattern", "segment.name.template", _UUID},
}
NAME_KEYS[INFERRED] = NAME_KEYS["simple"] | NAME_KEYS["normalizedDate"]
_JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")


@dataclass(frozen=True)
class NameParts:
    """The parts of a segment's name. `prefix` replaces the table's name; `template` is filled from `file_pattern`.

    `global_sequence` counts all files of the job, else those of each folder. `with_uuid` adds a UUID of the content.
    """

    prefix: str | None = None
    postfix: str | None = None
    without_sequence: bool = False
    without_times: bool = False
    global_sequence: bool = False
    with_uuid: bool = False
    file_pattern: str = ""
    template: str = ""


def name_type(section: Section) -> str:
    """The name generator; INFERRED where the spec names none. SpecError for an unknown generator."""
    text = section.doc.get("type")
    if str(text).lower() == "uploadedrealtime":
        section.fail("type", f"'{text}' names segments of a REALTIME half; jobs write the OFFLINE one. Write 'simple'.")
    return section.choice("type", NAME_TYPES) if text is not None else INFERRED


def name_parts(section: Section) -> NameParts:
    """The name parts in the generator's `configs`. SpecError for a missing key of `inputFile` or an invalid pattern."""
    configs, of_files = section.section("configs"), name_type(section) == "inputFile"
    return NameParts(
        prefix=configs.text("segment.name.prefix") if configs.has("segment.name.prefix") else None,
        postfix=configs.text("segment.name.postfix") if configs.has("segment.name.postfix") else None,
        without_sequence=configs.boolean("exclude.sequence.id"),
        without_times=any(configs.boolean(key) for key in _WITHOUT_TIMES),
        global_sequence=_global_sequence(configs),
        with_uuid=configs.boolean(_UUID),
        file_pattern=_file_pattern(configs) if of_files else "",
        template=configs.text("segment.name.template") if of_files else "",
    )


def name_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that the generator does not read."""
    yield from section.section("configs").unknown(NAME_KEYS[name_type(section)])


def _global_sequence(configs: Section) -> bool:
    """Whether files are counted across folders. The older key says the opposite; the newer one takes precedence."""
    if configs.doc.get("use.global.directory.sequence.id") is not None:
        return configs.boolean("use.global.directory.sequence.id")
    return not configs.boolean("local.directory.sequence.id", default=True)


def _file_pattern(configs: Section) -> str:
    """The regular expression in Python's syntax: Java names groups `(?<name>...)`."""
    text = configs.text("file.path.pattern")
    pattern = _JAVA_GROUP.sub("(?P<", text)
    try:
        compile_user_pattern(pattern)
    except PatternError as error:
        configs.fail(
            "file.path.pattern", f"'{text}' is not a regular expression: {error}. Write it like '.+/(.+)\\.gz'."
        )
    return pattern
