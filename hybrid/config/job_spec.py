"""Reads Pinot's ingestion job spec (YAML): the input files, the table and the names of segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hybrid.config.input_files import check_each, files_below
from hybrid.config.input_rules import InputRules
from hybrid.config.job_document import job_document, read_job_file
from hybrid.config.job_names import NameParts, name_parts, name_type, name_warnings
from hybrid.config.job_reader import data_format, reader_configs, reader_warnings
from hybrid.config.job_store import ObjectStore, is_on_store, parse_store, store_warnings
from hybrid.config.table_keys import EXPECTATIONS
from hybrid.config.templates import built_in_dates, fill, names_in
from hybrid.errors import Gathered, NotFoundError, SpecError
from hybrid.expression.path_patterns import PatternError, compile_path_pattern
from hybrid.expression.user_patterns import UserPattern
from hybrid.schema.document import Section, shown

JOB_TYPES = (
    "SegmentCreation", "SegmentTarPush", "SegmentUriPush", "SegmentMetadataPush",
    "SegmentCreationAndTarPush", "SegmentCreationAndUriPush", "SegmentCreationAndMetadataPush",
)  # fmt: skip
# The range of time that a job replaces, other than FROM/TO: the day of its rows, or all that OFFLINE holds.
COVERS_DAY, COVERS_ALL = "day", "all"
_COVERS = "hybrid.covers"

_QUIET_TOP = {
    "executionFrameworkSpec", "outputDirURI", "overwriteOutput", "segmentCreationJobParallelism", "pinotFSSpecs",
    "pinotClusterSpecs", "cleanUpOutputDir", "authToken", "tlsSpec", "createMetadataTarGz",
    "failOnEmptySegment",
}  # fmt: skip
# By path of the section: the keys that are read, and the ignored keys of deployment. Variables are filled in only in
# the keys that are read.
_USED = {
    "": {
        "jobType", "inputDirURI", "includeFileNamePattern", "excludeFileNamePattern", "searchRecursively",
        "recordReaderSpec", "tableSpec", "segmentNameGeneratorSpec", "pushJobSpec",
    },
    "recordReaderSpec": {"dataFormat", "configs"},
    "tableSpec": {"tableName"},
    "segmentNameGeneratorSpec": {"type", "configs"},
    "pushJobSpec": {"pushAttempts"},
}  # fmt: skip
_QUIET = {
    "": _QUIET_TOP,
    "recordReaderSpec": {"className", "configClassName"},
    "tableSpec": {"schemaURI", "tableConfigURI"},
    "segmentNameGeneratorSpec": set(),
    "pushJobSpec": {
        "pushRetryIntervalMillis", "pushParallelism", "copyToDeepStoreForMetadataPush", "segmentUriPrefix",
        "segmentUriSuffix", "batchSegmentUpload", "segmentMetadataGenerationParallelism", "preferMetadataTarGz",
    },
}  # fmt: skip


@dataclass(frozen=True)
class AnsweredStatement:
    """A statement whose rows are a job's input. `revision` is the revision that they were read at.

    `offline_version` is the version of the job's own OFFLINE half that the rows were read from. It has to be the
    newest version when segments are swapped. It is None for other tables, and for a requested revision.
    `seen_version` is then the newest version when the statement was answered: rows that were purged later must not
    return.
    """

    sql: str
    revision: str
    offline_version: int | None
    seen_version: int | None = None


@dataclass(frozen=True)
class JobSpec:
    """An ingestion job. `source` is the spec's file, `input_dir` an absolute folder (or a single file).

    `segment_name` is set for the name type `fixed`; `name_parts` belongs to the other types. `covers` is the range of
    time that the job replaces: FROM/TO, COVERS_DAY, COVERS_ALL or nothing. `statement` gave the rows in its one file.
    `store` holds the files until they are fetched, and `input_dir` is not used until then. `fetched_from` is the
    address that they were fetched from.
    `expectations` is the section of the job's expectations, which are parsed when the table is known. `rules` say
    which files may be read; None: all.
    """

    source: str
    job_type: str
    input_dir: Path
    table_name: str
    data_format: str
    include: str | None = None
    exclude: str | None = None
    search_recursively: bool = True
    reader_configs: Mapping[str, str] = field(default_factory=dict)
    segment_name_type: str = "simple"
    segment_name: str | None = None
    name_parts: NameParts = field(default_factory=NameParts)
    push_attempts: int = 1
    expectations: Section | None = None
    covers: str = ""
    statement: AnsweredStatement | None = None
    store: ObjectStore | None = None
    fetched_from: str = ""
    rules: InputRules | None = None
    warnings: tuple[str, ...] = ()

    def matches(self, relative_path: str, absolute_path: str) -> bool:
        """Whether the job reads the file. Patterns match the whole path, as in Pinot, or the part below `input_dir`."""
        include, exclude = self._patterns
        if not self.search_recursively and "/" in relative_path:
            return False
        paths = (absolute_path, relative_path)
        if include and not any(include.fullmatch(path) for path in paths):
            return False
        return not (exclude and any(exclude.fullmatch(path) for path in paths))

    def address_of(self, path: Path) -> str:
        """Where the user has an input file: its path, or `s3://bucket/key` of an object that was fetched."""
        if not self.fetched_from:
            return path.as_posix()
        return f"{self.fetched_from}/{path.relative_to(self.input_dir).as_posix()}"

    def check_rules(self, rules: InputRules) -> None:
        """RightError when the rules forbid the job's input."""
        if self.store is not None:
            rules.check_store(self.store)
        else:
            rules.check(self.input_dir)

    def files_there(self) -> list[Path]:
        """Every file at or below the input that may be read, in the order of their paths."""
        return files_below(self.input_dir, self.rules)

    def input_files(self) -> list[Path]:
        """The files that the job reads, in the order of their paths.

        NotFoundError when the input does not exist, RightError when the rules forbid a file.
        """
        if self.store is not None:
            message = f"the files at {self.store.address} were not fetched. Run the job with run_job()."
            raise SpecError.at(self.source, "inputDirURI", message)
        if self.rules is not None:
            self.rules.check(self.input_dir)
        if self.input_dir.is_file():
            return [self.input_dir] if self.matches(self.input_dir.name, self.input_dir.as_posix()) else []
        if not self.input_dir.is_dir():
            message = f"Input folder '{self.input_dir}' of {self.source} does not exist."
            raise NotFoundError(message, hint="Give another: hybrid job run SPEC.yml --input DIR")
        below, top = self.files_there(), self.input_dir
        files = [path for path in below if self.matches(path.relative_to(top).as_posix(), path.as_posix())]
        if self.rules is not None:
            check_each(self.rules, files)
        return files

    @cached_property
    def _patterns(self) -> tuple[UserPattern | None, UserPattern | None]:
        include = compile_path_pattern(self.include) if self.include else None
        return include, compile_path_pattern(self.exclude) if self.exclude else None


def load_job_spec(
    path: str | Path, variables: Mapping[str, str], input_dir: str | None = None, now_ms: int | None = None
) -> JobSpec:
    """The job in the YAML file `path`, its `${name}`s filled from `variables`; `today` is the day of `now_ms`.

    `input_dir` replaces inputDirURI. Relative paths start at the spec's folder. A relative `input_dir` that does not
    exist there starts at the working directory. SpecError names place and value of the first mistake, NotFoundError a
    missing file.
    """
    file = Path(path)
    doc = job_document(read_job_file(file), str(path))
    return parse_job_spec(doc, str(path), file.absolute().parent, variables, input_dir, now_ms)


def parse_job_spec(
    doc: dict[str, object],
    source: str,
    folder: Path,
    variables: Mapping[str, str],
    input_dir: str | None = None,
    now_ms: int | None = None,
) -> JobSpec:
    """The job in `doc`; see `load_job_spec`. `folder` is where relative paths start."""
    try:
        return _parse_job_spec(doc, source, folder, variables, input_dir, now_ms)
    except SpecError as error:
        errors = Gathered()
        errors.add(error)
        _find_errors(errors, Section(doc, source), variables, has_input=input_dir is not None, now_ms=now_ms)
        errors.raise_all()
        raise


def _find_errors(
    errors: Gathered, top: Section, variables: Mapping[str, str], *, has_input: bool, now_ms: int | None
) -> None:
    """Adds the further errors of a job spec: those of each of its parts."""
    all_variables = {**(built_in_dates(now_ms) if now_ms is not None else {}), **variables}
    try:
        top = Section(_filled(_used_part(top.doc, top.source, has_input), all_variables, top.source), top.source)
    except SpecError:  # a variable that is not set; what stands in its place is unknown
        return
    readers: tuple[Callable[[], object], ...] = (
        lambda: top.choice("jobType", JOB_TYPES),
        lambda: top.text("inputDirURI", "" if has_input else None),
        lambda: top.section("tableSpec").text("tableName"),
        lambda: data_format(top.section("recordReaderSpec")),
        lambda: _pattern(top, "includeFileNamePattern"),
        lambda: _pattern(top, "excludeFileNamePattern"),
        lambda: top.boolean("searchRecursively"),
        lambda: reader_configs(top.section("recordReaderSpec")),
        lambda: name_parts(top.section("segmentNameGeneratorSpec")),
        lambda: top.section("pushJobSpec").whole("pushAttempts", 1, low=1),
    )
    errors.read_further(readers)


def _parse_job_spec(
    doc: dict[str, object],
    source: str,
    folder: Path,
    variables: Mapping[str, str],
    input_dir: str | None,
    now_ms: int | None,
) -> JobSpec:
    used = _used_part(doc, source, input_dir is not None)
    all_variables = {**(built_in_dates(now_ms) if now_ms is not None else {}), **variables}
    top = Section(_filled(used, all_variables, source), source)
    names = top.section("segmentNameGeneratorSpec")
    generator = name_type(names)
    uri = input_dir if input_dir is not None else top.text("inputDirURI")
    stores = {"pinotFSSpecs": doc.get("pinotFSSpecs")} if is_on_store(uri) else None
    filesystems = Section(_filled(stores, all_variables, source), source) if stores else None
    reader = top.section("recordReaderSpec")
    return JobSpec(
        source=source,
        job_type=top.choice("jobType", JOB_TYPES),
        input_dir=Path("/") if filesystems else _input_dir(top, folder, input_dir),
        store=parse_store(filesystems, uri) if filesystems else None,
        table_name=top.section("tableSpec").text("tableName"),
        data_format=data_format(reader),
        include=_pattern(top, "includeFileNamePattern"),
        exclude=_pattern(top, "excludeFileNamePattern"),
        search_recursively=top.boolean("searchRecursively", default=True),
        reader_configs=reader_configs(reader),
        segment_name_type=generator,
        segment_name=names.section("configs").text("segment.name") if generator == "fixed" else None,
        name_parts=name_parts(names),
        covers=_extra(top).text(_COVERS) if _extra(top).has(_COVERS) else "",
        push_attempts=top.section("pushJobSpec").whole("pushAttempts", 1, low=1),
        expectations=_expectations(doc, all_variables, source),
        warnings=(
            *_key_warnings(doc, source),
            *name_warnings(names),
            *reader_warnings(reader),
            *(store_warnings(filesystems, uri) if filesystems else ()),
            *_variable_warnings(doc, variables, source),
        ),
    )


def _used_part(doc: dict[str, object], source: str, has_input: bool) -> dict[str, object]:
    """The keys of `doc` that are read. A variable in an ignored key need not be set."""
    top = Section(doc, source)
    used = {key: doc[key] for key in _USED[""] if key in doc}
    for path in filter(None, _USED):
        section = top.section(path).doc
        used[path] = {key: section[key] for key in _USED[path] if key in section}
    if has_input:
        used.pop("inputDirURI", None)
    if _extra(top).has(_COVERS):
        used["executionFrameworkSpec"] = {"extraConfigs": {_COVERS: _extra(top).doc[_COVERS]}}
    return used


def _extra(top: Section) -> Section:
    """The section for keys that only this system reads: Pinot allows any key there."""
    return top.section("executionFrameworkSpec").section("extraConfigs")


def _filled(used: dict[str, object], variables: Mapping[str, str], source: str) -> dict[str, object]:
    filled = fill(used, variables, source, "")
    assert isinstance(filled, dict)
    return filled


def _expectations(doc: dict[str, object], variables: Mapping[str, str], source: str) -> Section | None:
    """The section of the job's expectations among Pinot's free keys; None where it has none."""
    extra = Section(doc, source).section("executionFrameworkSpec").section("extraConfigs")
    if not extra.has(EXPECTATIONS):
        return None
    filled = fill(extra.doc[EXPECTATIONS], variables, source, extra.at(EXPECTATIONS))
    return Section({EXPECTATIONS: filled}, source, extra.path)


def _input_dir(top: Section, folder: Path, input_dir: str | None) -> Path:
    text = input_dir if input_dir is not None else top.text("inputDirURI")
    try:
        return _local(top, folder, text, typed=input_dir is not None)
    except (ValueError, RuntimeError, OSError) as error:  # a null byte, `~nobody`, a host in half brackets
        top.fail("inputDirURI", f"{shown(text)} is not a path: {error}.")


def _local(top: Section, folder: Path, text: str, typed: bool) -> Path:
    uri = urlsplit(text)
    if uri.scheme == "file":
        if uri.netloc not in {"", "localhost"}:
            top.fail("inputDirURI", f"'{text}' names another host. Write file:///folder.")
        text = unquote(uri.path)
    elif "://" in text:
        hint = "Copy the files to this machine: hybrid job run SPEC.yml --input DIR"
        top.fail(
            "inputDirURI",
            f"'{text}' cannot be read: only local folders are, with file:// or without, and s3://.",
            hint=hint,
        )
    path = Path(text).expanduser()
    beside_spec = (folder / path).resolve()
    # A path in the file is relative to the file. A typed path may also be relative to the working directory.
    return path.resolve() if typed and not beside_spec.exists() and path.exists() else beside_spec


def _pattern(top: Section, key: str) -> str | None:
    text = top.text(key, "")
    if not text:
        return None
    try:
        compile_path_pattern(text)
    except PatternError as error:
        top.fail(key, f"'{text}' is not a pattern: {error}. Write it like 'glob:**/*.json' or 'regex:.*\\.json'.")
    return text


def _key_warnings(doc: dict[str, object], source: str) -> Iterator[str]:
    top = Section(doc, source)
    for path, used in _USED.items():
        section = top.section(path) if path else top
        yield from section.unknown(used | _QUIET[path])
    own = {key: value for key, value in _extra(top).doc.items() if str(key).startswith("hybrid.")}
    yield from Section(own, source, _extra(top).path).unknown({_COVERS, EXPECTATIONS})


def _variable_warnings(doc: dict[str, object], variables: Mapping[str, str], source: str) -> Iterator[str]:
    used = set(names_in(doc))
    for name in variables:
        if name not in used:
            yield f"{source}: --var {name}: the file has no ${{{name}}}."
