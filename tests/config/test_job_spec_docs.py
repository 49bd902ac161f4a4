"""The examples of job specs in Pinot's documentation are read as they stand there.

After docs.pinot.apache.org, reference/configuration-reference/job-specification and basics/data-import; and the specs
of Pinot's quick starts, pinot-tools/src/main/resources/examples/batch.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.config.job_spec import JobSpec, load_job_spec

BASE = """
executionFrameworkSpec:
  name: 'standalone'
  segmentGenerationJobRunnerClassName: 'org.apache.pinot.plugin.ingestion.batch.standalone.SegmentGenerationJobRunner'
  segmentTarPushJobRunnerClassName: 'org.apache.pinot.plugin.ingestion.batch.standalone.SegmentTarPushJobRunner'
  segmentUriPushJobRunnerClassName: 'org.apache.pinot.plugin.ingestion.batch.standalone.SegmentUriPushJobRunner'
  extraConfigs:
    stagingDir: examples/batch/airlineStats/staging
jobType: SegmentCreationAndTarPush
inputDirURI: 'examples/batch/airlineStats/rawdata'
outputDirURI: 'examples/batch/airlineStats/segments'
overwriteOutput: true
pinotFSSpecs:
  - scheme: file
    className: org.apache.pinot.spi.filesystem.LocalPinotFS
tableSpec:
  tableName: 'airlineStats'
  schemaURI: 'http://localhost:9000/tables/airlineStats/schema'
  tableConfigURI: 'http://localhost:9000/tables/airlineStats'
pinotClusterSpecs:
  - controllerURI: 'http://localhost:9000'
pushJobSpec:
  pushParallelism: 2
  pushAttempts: 2
  pushRetryIntervalMillis: 1000
  segmentUriPrefix : 'file://'
  segmentUriSuffix : my-dir/
"""
READERS = {
    "avro": """
includeFileNamePattern: 'glob:**/*.avro'
recordReaderSpec:
  dataFormat: 'avro'
  className: 'org.apache.pinot.plugin.inputformat.avro.AvroRecordReader'
""",
    "csv": """
includeFileNamePattern: 'glob:**/*.csv'
recordReaderSpec:
  dataFormat: 'csv'
  className: 'org.apache.pinot.plugin.inputformat.csv.CSVRecordReader'
  configClassName: 'org.apache.pinot.plugin.inputformat.csv.CSVRecordReaderConfig'
  configs:
    fileFormat: 'default'
    header: 'studentID,firstName,lastName,gender,subject,score,timestampInEpoch'
    delimiter: ','
    multiValueDelimiter: '-'
""",
    "json": """
includeFileNamePattern: 'regex:^.*\\.(json)$'
recordReaderSpec:
  dataFormat: 'json'
  className: 'org.apache.pinot.plugin.inputformat.json.JSONRecordReader'
""",
    "parquet": """
includeFileNamePattern: 'glob:**/*.parquet'
excludeFileNamePattern: 'glob:**/*.avro'
recordReaderSpec:
  dataFormat: 'parquet'
  className: 'org.apache.pinot.plugin.inputformat.parquet.ParquetRecordReader'
  configs: {useParquetAvroRecordReader: true}
""",
    "orc": """
includeFileNamePattern: 'glob:**/*.orc'
recordReaderSpec:
  dataFormat: 'orc'
  className: 'org.apache.pinot.plugin.inputformat.orc.ORCRecordReader'
""",
}
NAMES = {
    "": "",
    "simple": """
segmentNameGeneratorSpec:
  type: simple
  configs:
    segment.name.postfix: 'eu'
    use.global.directory.sequence.id: true
""",
    "normalizedDate": """
segmentNameGeneratorSpec:
  type: normalizedDate
  configs:
    segment.name.prefix: 'airlineStats_batch'
    exclude.sequence.id: true
""",
    "inputFile": """
segmentNameGeneratorSpec:
  type: inputFile
  configs:
    file.path.pattern: '.+/(.+)\\.gz'
    segment.name.template: '\\${filePathPattern:\\1}'
""",
    "fixed": """
segmentNameGeneratorSpec:
  type: fixed
  configs:
    segment.name: 'airlineStats_batch_1'
""",
}


def load(folder: Path, text: str, **variables: str) -> JobSpec:
    file = folder / "job.yml"
    file.write_text(text, encoding="utf-8")
    return load_job_spec(file, variables)


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("reader", READERS)
def test_every_format_with_every_generator(tmp_path: Path, reader: str, names: str) -> None:
    spec = load(tmp_path, BASE + READERS[reader] + NAMES[names])
    assert (spec.data_format, spec.segment_name_type, spec.warnings) == (reader, names, ())
    assert spec.matches(f"a.{reader}", f"/in/a.{reader}") and not spec.matches("a.txt", "/in/a.txt")


def test_a_template_of_dates(tmp_path: Path) -> None:
    dated = "inputDirURI: 'file:///path/to/input/${year}/${month}/${day}/${hour}'"
    text = BASE.replace("inputDirURI: 'examples/batch/airlineStats/rawdata'", dated) + READERS["csv"]
    spec = load(tmp_path, text, year="2020", month="06", day="03", hour="04")
    assert spec.input_dir == Path("/path/to/input/2020/06/03/04")


def test_a_spec_in_json(tmp_path: Path) -> None:
    text = """{"jobType": "SegmentCreationAndTarPush", "inputDirURI": "file:///path/to/input/${ year }",
      "includeFileNamePattern": "glob:**/*.parquet", "outputDirURI": "file:///path/to/output/${year}",
      "recordReaderSpec": {"dataFormat": "parquet"}, "tableSpec": {"tableName": "myTable"}}"""
    assert load(tmp_path, text, year="2020").input_dir == Path("/path/to/input/2020")
