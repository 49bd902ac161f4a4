"""Secrets by reference: kept as they were written, read where they are used, refused where they do not belong."""

from pathlib import Path

import pytest

from hybrid.config.connector_delta import parse_delta
from hybrid.config.input_rules import InputRules
from hybrid.config.job_spec import parse_job_spec
from hybrid.config.kafka_security import KafkaSecurity, of_java, of_librdkafka
from hybrid.errors import DataError, RegistryError, RightError, SpecError, StreamError
from hybrid.formats.registry_messages import _user_info
from hybrid.schema.document import Section
from hybrid.schema.references import resolve, without_plain_secrets

SECRET = "s3cr3t-4f1c"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def java(password: str) -> KafkaSecurity:
    line = f'{MODULE} username="ada" password="{password}";'
    doc: dict[str, object] = {
        "stream.kafka.consumer.prop.security.protocol": "SASL_PLAINTEXT",
        "stream.kafka.consumer.prop.sasl.mechanism": "PLAIN",
        "stream.kafka.consumer.prop.sasl.jaas.config": line,
    }
    return of_java(Section(doc, "t.json", "streamConfigs"))


def librdkafka(**changes: str) -> KafkaSecurity:
    doc = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "ada", **changes}
    return of_librdkafka(Section(dict(doc), "t.json", "config"), doc)


def test_a_password_of_kafka_is_read_each_time_a_client_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    found = java("${env:KAFKA_PASSWORD}")
    assert found.password == "${env:KAFKA_PASSWORD}"
    for secret in (SECRET, 'other"\\'):
        monkeypatch.setenv("KAFKA_PASSWORD", secret)
        assert found.for_python()["sasl_plain_password"] == found.for_librdkafka()["sasl.password"] == secret
        escaped = secret.replace("\\", "\\\\").replace('"', '\\"')
        assert f'password="{escaped}";' in found.for_java()["sasl.jaas.config"]
    assert SECRET not in repr(found)


def test_a_variable_that_is_not_set_is_named_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    found = java("${env:KAFKA_PASSWORD}")
    for connect in (found.for_python, found.for_java, found.for_librdkafka):
        with pytest.raises(StreamError, match=r"sasl.jaas.config.* no environment variable 'KAFKA_PASSWORD'"):
            connect()


def test_a_file_is_read_without_its_last_line_end(tmp_path: Path) -> None:
    place = tmp_path / "password"
    place.write_text(f"{SECRET}\n")
    found = librdkafka(**{"sasl.password": f"${{file:{place}}}", "ssl.key.password": f"x${{file:{place}}}"})
    assert found.for_librdkafka()["sasl.password"] == SECRET
    assert found.for_librdkafka()["ssl.key.password"] == f"x{SECRET}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff", "not UTF-8"),
        (b"x" * 65_537, "65536"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None, reason: str) -> None:
    place = tmp_path / "password"
    if content is not None:
        place.write_bytes(content)
    with pytest.raises(StreamError, match=f"password.*: it.*{reason}"):
        resolve(f"${{file:{place}}}", "x")
    with pytest.raises(StreamError, match="it is no file"):
        resolve(f"${{file:{tmp_path}}}", "x")


def test_what_is_referred_to_is_not_read_as_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "${env:B}")
    monkeypatch.setenv("B", SECRET)
    assert resolve("${env:A}", "x") == "${env:B}"


@pytest.mark.parametrize("text", ["${env:}", "${env:A B}", "${ENV:A}", "${file:relative}", "${env:A", "${file:}"])
def test_a_reference_that_is_written_wrongly_is_refused_when_the_table_is_made(text: str) -> None:
    with pytest.raises(SpecError, match=r"config.sasl.password: "):
        librdkafka(**{"sasl.password": text})


def test_only_a_secret_may_be_a_reference() -> None:
    with pytest.raises(SpecError, match=r"config.sasl.username: holds a reference"):
        librdkafka(**{"sasl.username": "${env:A}", "sasl.password": "x"})
    with pytest.raises(SpecError, match="endpoint: holds a reference"):
        delta(aws_endpoint="${env:A}")


def delta(**options: str) -> dict[str, str]:
    doc: dict[str, object] = {"uri": "s3://bucket/t", "mode": "snapshot", **options}
    return parse_delta(Section(doc, "t.json", "config")).resolved_options()


def test_options_of_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_KEY", SECRET)
    options = {"aws_secret_access_key": "${env:AWS_KEY}", "aws_region": "eu"}
    assert delta(**options) == {"aws_secret_access_key": SECRET, "aws_region": "eu"}
    monkeypatch.delenv("AWS_KEY")
    with pytest.raises(DataError, match=r"aws_secret_access_key of the connector to s3://bucket/t .* 'AWS_KEY'"):
        delta(**options)


def test_the_user_of_a_schema_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY", f"ada:{SECRET}")
    assert _user_info("${env:REGISTRY}") == f"ada:{SECRET}"
    monkeypatch.setenv("REGISTRY", SECRET)
    with pytest.raises(RegistryError, match="is not NAME:SECRET") as found:
        _user_info("${env:REGISTRY}")
    assert SECRET not in str(found.value)


def job(secret: str, **changes: object) -> dict[str, object]:
    return {
        "jobType": "SegmentCreationAndTarPush",
        "inputDirURI": "s3://bucket/folder",
        "pinotFSSpecs": [{"scheme": "s3", "configs": {"accessKey": "k", "secretKey": secret}}],
        "recordReaderSpec": {"dataFormat": "json"},
        "tableSpec": {"tableName": "orders"},
        "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": "x"}},
        **changes,
    }


def test_a_job_of_the_command_line_reads_its_keys_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_KEY", SECRET)
    found = parse_job_spec(job("${env:AWS_KEY}"), "job.yml", Path("/"), {})
    assert found.store is not None and found.store.options["secretKey"] == "${env:AWS_KEY}"
    assert found.store.resolved_options()["secretKey"] == SECRET
    with pytest.raises(SpecError, match=r"inputDirURI: .*is a reference, which only accessKey and secretKey"):
        parse_job_spec(job("x", inputDirURI="s3://bucket/${env:AWS_KEY}"), "job.yml", Path("/"), {})
    with pytest.raises(SpecError, match="endpoint: holds a reference"):
        configs = {"secretKey": "x", "endpoint": "${e}"}
        parse_job_spec(
            job("x", pinotFSSpecs=[{"scheme": "s3", "configs": configs}]), "j", Path("/"), {"e": "${env:AWS_KEY}"}
        )


@pytest.mark.parametrize("variables", [{}, {"key": "${env:HYBRID_TOKEN}"}])
def test_work_that_is_sent_to_a_server_refers_to_nothing_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    monkeypatch.setenv("HYBRID_TOKEN", SECRET)
    found = parse_job_spec(job("${key}" if variables else "${env:HYBRID_TOKEN}"), "job.yml", Path("/"), variables)
    with pytest.raises(RightError, match="a reference would read a variable or a file of the server") as refusal:
        found.check_rules(InputRules(tmp_path))
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "secret", "shown"),
    [
        ("sasl.password", "${env:P}", True),
        ("sasl.password", "${file:/run/p}", True),
        ("sasl.password", SECRET, False),
        ("sasl.password", f"{SECRET}${{env:P}}", False),
        ("sasl.password", f"${{env:P}}{SECRET}", False),
        ("sasl.password", f"${{env:{SECRET}", False),
        ("sasl.jaas.config", f'{MODULE} username="ada" password="${{env:P}}";', True),
        ("sasl.jaas.config", f'{MODULE} username="${{env:U}}" password="${{env:P}}";', True),
        ("sasl.jaas.config", f'{MODULE} username="ada" password="{SECRET}";', False),
        ("sasl.jaas.config", f'{MODULE} username="ada" password="${{env:P}}{SECRET}";', False),
        ("sasl.jaas.config", f'{MODULE} password="{SECRET}" password="${{env:P}}";', False),
        ("sasl.jaas.config", f'{MODULE} username="ada" password="${{env:P}}" other="{SECRET}";', False),
        ("schema.registry.basic.auth.user.info", "ada:${env:P}", True),
        ("schema.registry.basic.auth.user.info", f"ada:{SECRET}", False),
        ("schema.registry.bearer.auth.token", f"{SECRET}:${{env:P}}", False),
        ("aws_secret_access_key", "${env:P}", True),
        ("made.up", "${env:P}", True),
        ("made.up", {"a": [SECRET]}, False),
        ("uri", f"s3://me:{SECRET}@lake", False),
    ],
)
def test_an_export_shows_references_and_no_secret(key: str, secret: object, shown: bool) -> None:
    document = {"connectors": [{"name": "c", "transport": {"config": {key: secret, "topic": "orders"}}}]}
    found, hidden = without_plain_secrets(document)
    assert hidden == ([] if shown else [f"connectors[0].transport.config.{key}"])
    assert (found == document) is shown and SECRET not in str(found) and "orders" in str(found)


def test_lists_and_addresses_keep_what_is_public() -> None:
    found, hidden = without_plain_secrets({"config": {"registry_urls": [f"http://me:{SECRET}@r", "http://s"]}})
    assert found == {"config": {"registry_urls": ["http://********@r", "http://s"]}}
    assert hidden == ["config.registry_urls[0]"]
