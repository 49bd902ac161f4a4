from pathlib import Path

import pytest

from hybrid.config.job_spec import JobSpec, load_job_spec
from hybrid.errors import NotFoundError, SpecError
from hybrid.expression.path_patterns import PatternError, compile_path_pattern

RECIPE = """
executionFrameworkSpec:
  name: 'standalone'
  segmentGenerationJobRunnerClassName: 'org.apache.pinot.SegmentGenerationJobRunner'
segmentNameGeneratorSpec:
  type: fixed
  configs:
    segment.name: ${segmentName}
jobType: SegmentCreationAndTarPush
inputDirURI: '/data'
includeFileNamePattern: 'glob:**/orders.json'
outputDirURI: '/opt/pinot/data/orders/'
overwriteOutput: true
pinotFSSpecs:
  - scheme: file
    className: org.apache.pinot.spi.filesystem.LocalPinotFS
recordReaderSpec:
  dataFormat: 'json'
  className: 'org.apache.pinot.plugin.inputformat.json.JSONRecordReader'
tableSpec:
  tableName: 'orders'
pinotClusterSpecs:
  - controllerURI: '${pinotController}'
pushJobSpec:
  pushAttempts: 2
  pushRetryIntervalMillis: 1000
"""


def load(tmp_path: Path, text: str, input_dir: str | None = None, **variables: str) -> JobSpec:
    file = tmp_path / "job.yml"
    file.write_text(text, encoding="utf-8")
    return load_job_spec(file, variables, input_dir)


def test_reads_the_recipe(tmp_path: Path) -> None:
    spec = load(tmp_path, RECIPE, segmentName="s_0", pinotController="http://c:9000")
    assert (spec.job_type, spec.input_dir, spec.table_name, spec.data_format) == (
        "SegmentCreationAndTarPush", Path("/data"), "orders", "json",
    )  # fmt: skip
    assert (spec.segment_name_type, spec.segment_name, spec.push_attempts) == ("fixed", "s_0", 2)
    assert spec.include == "glob:**/orders.json" and spec.exclude is None and spec.search_recursively
    assert spec.warnings == ()


def test_an_unset_variable_counts_only_where_it_is_used(tmp_path: Path) -> None:
    assert load(tmp_path, RECIPE, segmentName="s").warnings == ()
    with pytest.raises(SpecError) as caught:
        load(tmp_path, RECIPE, segmentname="s")
    message = str(caught.value)
    assert "segmentNameGeneratorSpec.configs.segment.name: ${segmentName} is not set. Is '" in message
    assert str(caught.value.hint).startswith("hybrid job run SPEC.yml --var segmentName=VALUE")
    in_folder = RECIPE.replace("'/data'", "'${folder}'")
    assert load(tmp_path, in_folder, input_dir="x", segmentName="s").input_dir == tmp_path / "x"


DAY_MS = 1_632_463_351_000  # 2021-09-24


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("/in/${ year }/${month}", "/in/2021/09"),
        ("/in/$year/x", "/in/2021/x"),
        ("/in/${today}/${yesterday}", "/in/2021-09-24/2021-09-23"),
        ("/in/${zone ?: 'eu'}/${year ?: \"2020\"}/${empty ?: 'full'}", "/in/eu/2021/full"),
        (r"/in/a\$year", "/in/a$year"),
        ("/in/$1", "/in/$1"),
    ],
)
def test_templates(tmp_path: Path, text: str, filled: str) -> None:
    file = tmp_path / "job.yml"
    file.write_text(RECIPE.replace("'/data'", f"|-\n  {text}"))
    variables = {"segmentName": "s", "year": "2021", "month": "09", "empty": "", "pinotController": ""}
    spec = load_job_spec(file, variables, now_ms=DAY_MS)
    assert spec.input_dir == Path(filled)
    assert load_job_spec(file, {**variables, "today": "x", "yesterday": "y"}, now_ms=DAY_MS).input_dir == Path(
        filled.replace("2021-09-24", "x").replace("2021-09-23", "y")
    )


@pytest.mark.parametrize("code", ["${new Date().format('yyyy')}", "<% for (i in 1..3) { %>", "${year + 1}"])
def test_groovy_is_not_run(tmp_path: Path, code: str) -> None:
    with pytest.raises(SpecError, match=r"inputDirURI: .* is Groovy code, which is not run"):
        load(tmp_path, RECIPE.replace("'/data'", f"|-\n  /in/{code}"), segmentName="s", year="1")
    assert load(tmp_path, RECIPE.replace("'/opt/pinot/data/orders/'", f"|-\n  {code}"), segmentName="s").warnings == ()


def test_the_template_of_names_is_filled_for_each_file(tmp_path: Path) -> None:
    for template in (r"'${filePathPattern:\1}'", r"'\${filePathPattern:\1}'"):
        names = f"type: inputFile\n  configs:\n    file.path.pattern: '.+/(.+)'\n    segment.name.template: {template}"
        text = RECIPE.replace("type: fixed\n  configs:\n    segment.name: ${segmentName}", names)
        assert load(tmp_path, text).name_parts.template == r"${filePathPattern:\1}"


def test_an_unused_variable_is_a_warning(tmp_path: Path) -> None:
    assert "--var extra" in load(tmp_path, RECIPE, segmentName="s", extra="1").warnings[0]


def test_input_folders(tmp_path: Path) -> None:
    spec = load(tmp_path, RECIPE, input_dir="corrected", segmentName="s")
    assert spec.input_dir == tmp_path / "corrected"
    assert load(tmp_path, RECIPE, input_dir="/a/b", segmentName="s").input_dir == Path("/a/b")
    uri = RECIPE.replace("'/data'", "'file:///a%20b'")
    assert load(tmp_path, uri, segmentName="s").input_dir == Path("/a b")
    with pytest.raises(SpecError, match="'gs://bucket/x' cannot be read: only local folders are"):
        load(tmp_path, RECIPE.replace("/data", "gs://bucket/x"), segmentName="s")


STORES = """
pinotFSSpecs:
  - scheme: file
  - scheme: s3
    className: org.apache.pinot.plugin.filesystem.S3PinotFS
    configs: {region: eu, accessKey: '${key}', secretKey: 'x', colour: red}
"""


def test_input_on_an_object_store(tmp_path: Path) -> None:
    spec = load(tmp_path, RECIPE.replace("/data", "s3a://bucket/x/${day}/"), segmentName="s", day="1")
    assert spec.store is not None and (spec.store.bucket, spec.store.key) == ("bucket", "x/1")
    with pytest.raises(SpecError, match="the files at s3://bucket/x/1 were not fetched"):
        spec.input_files()
    older = RECIPE[RECIPE.index("pinotFSSpecs:") : RECIPE.index("recordReaderSpec:")]
    text = RECIPE.replace(older, STORES)
    found = load(tmp_path, text, "s3://bkt", segmentName="s", key="k")
    assert found.store is not None and found.store.options == {"region": "eu", "accessKey": "k", "secretKey": "x"}
    assert "secret" not in repr(found) and "pinotFSSpecs[1].configs.colour" in found.warnings[0]
    assert load(tmp_path, text, segmentName="s").store is None, "the key is not needed for local files"
    for wrong in ("s3:///x", "s3://[x", "s3://a b/x"):
        with pytest.raises(SpecError, match="names no bucket"):
            load(tmp_path, RECIPE, wrong, segmentName="s")


def test_lists_input_files(tmp_path: Path) -> None:
    for name in ("in/orders.json", "in/b/orders.json", "in/people.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    spec = load(tmp_path, RECIPE, input_dir="in", segmentName="s")
    assert spec.input_files() == [tmp_path / "in/b/orders.json", tmp_path / "in/orders.json"]
    flat = load(tmp_path, RECIPE + "searchRecursively: false\n", input_dir="in", segmentName="s")
    assert flat.input_files() == [tmp_path / "in/orders.json"]
    without = load(tmp_path, RECIPE + "excludeFileNamePattern: 'glob:**/b/*'\n", input_dir="in", segmentName="s")
    assert without.input_files() == [tmp_path / "in/orders.json"]
    assert load(tmp_path, RECIPE, input_dir="in/people.json", segmentName="s").input_files() == []
    assert len(load(tmp_path, RECIPE, input_dir="in/orders.json", segmentName="s").input_files()) == 1
    with pytest.raises(NotFoundError, match="does not exist"):
        load(tmp_path, RECIPE, input_dir="no", segmentName="s").input_files()


def test_simple_names_and_csv(tmp_path: Path) -> None:
    text = """
jobType: SegmentCreation
inputDirURI: in
recordReaderSpec: {dataFormat: CSV, configs: {delimiter: "|", skipHeader: true, header: "a|b", quote: "x"}}
segmentNameGeneratorSpec: {configs: {segment.name.prefix: p, segment.name.postfix: q}}
tableSpec: {tableName: t}
"""
    spec = load(tmp_path, text)
    assert (spec.segment_name_type, spec.segment_name) == ("", None)
    assert (spec.name_parts.prefix, spec.name_parts.postfix) == ("p", "q")
    assert spec.data_format == "csv" and spec.push_attempts == 1
    assert spec.reader_configs == {"delimiter": "|", "skipHeader": "true", "header": "a|b", "quote": "x"}
    assert [warning.split(": ")[1] for warning in spec.warnings] == ["recordReaderSpec.configs.quote"]
    gzipped = load(tmp_path, text.replace("CSV", "GZIPPED_AVRO").replace("configs: {delimiter", "configs: {x"))
    assert gzipped.data_format == "avro"


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("dataFormat: 'json'", "dataFormat: 'thrift'", "dataFormat: 'thrift' is not known"),
        (
            "dataFormat: 'json'",
            "dataFormat: csv\n  configs: {stopOnError: true}",
            "the rest of a file",
        ),
        ("dataFormat: 'json'", "dataFormat: csv\n  configs: {quoteCharacter: ab}", "'ab' is not one character"),
        ("dataFormat: 'json'", "dataFormat: csv\n  configs: {skipHeader: x}", "is neither true nor false"),
        ("dataFormat: 'json'", "dataFormat: avro\n  configs: {extractRawTimeValues: true}", "the column's own format"),
        ("type: fixed", "type: daily", "Known are: fixed, simple, normalizedDate, inputFile"),
        ("type: fixed", "type: uploadedRealtime", "names segments of a REALTIME half; jobs write the OFFLINE one"),
        ("type: fixed", "type: inputFile", "file.path.pattern: is missing"),
        ("type: fixed\n  configs:", "type: inputFile\n  configs:\n    file.path.pattern: '('", "is not a regular"),
        ("SegmentCreationAndTarPush", "SegmentCreationAndTarPsh", "Did you mean"),
        ("tableName: 'orders'", "tableNam: 'orders'", "tableSpec.tableName: is missing"),
        ("segment.name: ${segmentName}", "a: b", "segment.name: is missing"),
        ("glob:**/orders.json", "glob:{a", "not closed"),
        ("glob:**/orders.json", "regex:(", "is not a pattern"),
        ("pushAttempts: 2", "pushAttempts: x", "pushAttempts: 'x' is not a whole number"),
        ("overwriteOutput: true", "overwriteOutput: [", "this is not YAML"),
        ("overwriteOutput: true", "jobType: SegmentCreation", "jobType: is given twice"),
    ],
)
def test_errors(tmp_path: Path, old: str, new: str, part: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, RECIPE.replace(old, new), segmentName="s")
    assert part in str(caught.value)


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        load_job_spec(tmp_path / "no.yml", {})
    with pytest.raises(SpecError, match="a job spec is expected"):
        load(tmp_path, "- 1")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("glob:**/orders.json", "/x/orders.json", True),
        ("glob:**/orders.json", "/x/y/orders.json", True),
        ("glob:**/orders.json", "orders.json", False),
        ("glob:**/orders.json", "/x/ordersXjson", False),
        ("glob:*.json", "a.json", True),
        ("glob:*.json", "/x/a.json", False),
        ("glob:/x/*.json", "/x/a.json", True),
        ("glob:**.{json,csv}", "/x/a.csv", True),
        ("glob:**.{json,csv}", "/x/a.cs", False),
        ("glob:a?c", "abc", True),
        ("glob:a?c", "a/c", False),
        ("glob:[a-c]x[!0-9]", "bxz", True),
        ("glob:[a-c]x[!0-9]", "bx5", False),
        ("glob:a\\*b", "a*b", True),
        ("glob:a\\*b", "axb", False),
        ("glob:a,b}", "a,b}", True),
        ("regex:.*\\.json", "/x/a.json", True),
        ("regex:a", "ab", False),
    ],
)
def test_path_patterns(pattern: str, path: str, fits: bool) -> None:
    assert bool(compile_path_pattern(pattern).fullmatch(path)) is fits


@pytest.mark.parametrize("pattern", ["glob:", "glob:[a", "glob:{a", "glob:{a{b}}", "glob:a\\", "regex:["])
def test_broken_patterns(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_path_pattern(pattern)
