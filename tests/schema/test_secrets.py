"""What of configs and specs is shown: public options by a list, everything else hidden."""

import json

import pytest

from hybrid.config import connector_delta, connector_format, connector_kafka, job_reader, job_store, stream_json
from hybrid.config.connector_delta import parse_delta
from hybrid.errors import SpecError
from hybrid.operations.tables.change import _difference
from hybrid.schema.document import Section
from hybrid.schema.secrets import HIDDEN, hidden_place, hides, redacted, without_secrets

SECRET = "VERYSECRET"
DELTA_SECRETS = (
    "aws_secret_access_key", "aws_access_key_id", "access_key_id", "secret_access_key", "session_token", "sas_token",
    "sas_key", "bearer_token", "azure_client_secret", "azure_storage_account_key", "account_key", "master_key",
    "service_account_key", "google_service_account", "fabric_session_token", "databricks_token", "some_new_option",
)  # fmt: skip
STREAM_SECRETS = (
    "sasl.jaas.config", "stream.kafka.consumer.prop.sasl.jaas.config", "ssl.key.password", "ssl.keystore.key",
    "stream.kafka.decoder.prop.schema.registry.basic.auth.user.info", "schema.registry.bearer.auth.token",
    "stream.kafka.decoder.prop.schema.registry.ssl.keystore.password", "stream.kafka.consumer.prop.made.up",
    "stream.kinesis.secretKey", "sasl.oauthbearer.client.secret",
)  # fmt: skip


@pytest.mark.parametrize("key", DELTA_SECRETS)
def test_options_of_object_stores_are_hidden(key: str) -> None:
    config = {"uri": "s3://lake/orders", "mode": "follow", "aws_region": "eu-west-1", key: SECRET}
    transport = {"name": "delta_table_input", "config": config}
    document = {"connectors": [{"name": "c", "transport": transport}]}
    shown = without_secrets(document)
    assert SECRET not in str(shown) and "eu-west-1" in str(shown) and "s3://lake/orders" in str(shown)
    other = {
        "connectors": [{"name": "c", "transport": {"name": "delta_table_input", "config": {**config, key: "OLD"}}}]
    }
    found = list(_difference("REALTIME", other, document))
    assert found == [f"REALTIME/connectors/c/transport/config/{key}: changed"]
    added = {"connectors": [*document["connectors"], {"name": "d", "transport": {"config": config}}]}
    assert SECRET not in str(list(_difference("REALTIME", document, added)))
    assert SECRET not in repr(parse_delta(Section(config, "f", "config")))


@pytest.mark.parametrize("key", STREAM_SECRETS)
@pytest.mark.parametrize("several", [False, True])
def test_options_of_streams_are_hidden(key: str, several: bool) -> None:
    stream = {"streamType": "kafka", "stream.kafka.topic.name": "orders", key: SECRET}
    document = {"streamConfigMaps": [stream]} if several else {"streamConfigs": stream}
    shown = without_secrets(document)
    assert SECRET not in str(shown) and "orders" in str(shown)
    other = {"streamConfigMaps": [{**stream, key: "OLD"}]} if several else {"streamConfigs": {**stream, key: "OLD"}}
    found = list(_difference("", other, document))
    assert len(found) == 1 and SECRET not in found[0] and "OLD" not in found[0] and "changed" in found[0]


@pytest.mark.parametrize(
    "document",
    [
        {"pinotFSSpecs": [{"scheme": "s3", "configs": {"accessKey": SECRET, "secretKey": SECRET, "region": "r"}}]},
        {"batchConfigMaps": [{"inputDirURI": "s3://b", "input.fs.prop.secretKey": SECRET}]},
        {"format": {"name": "avro", "config": {"registry_password": SECRET, "registry_authorization_token": SECRET}}},
        {"config": {"uri": f"s3://{SECRET}:{SECRET}@lake/a"}},
        {"config": {"uri": f"https://a.blob.core.windows.net/c?sv=1&sig={SECRET}"}},
        {"config": {"registry_urls": [f"http://me:{SECRET}@registry"]}},
        {"anything": {"dbPassword": SECRET, "x": [{"api-key": SECRET}]}},
        {"config": {"unknown": {"a": SECRET}}},
    ],
)
def test_other_places(document: dict[str, object]) -> None:
    assert SECRET not in str(without_secrets(document))
    assert hidden_place(without_secrets(document)) is not None  # and cannot be stored so


def test_known_options_are_shown() -> None:
    readers = [
        *stream_json._USED, *stream_json._QUIET, *stream_json._AUTO_RESET_LIMITS, *connector_kafka._USED,
        *connector_kafka._QUIET, *connector_delta._USED, *connector_delta._QUIET, *job_store._QUIET - {"ssekmsKeyId"},
        *(key for keys in (*connector_format._KEYS.values(), *job_reader.READER_KEYS.values()) for key in keys),
    ]  # fmt: skip
    secrets = {"registry_password", "registry_authorization_token"}
    assert [key for key in readers if hides(key, in_options=True) and key not in secrets] == []


def test_plans_of_generated_rows_are_shown() -> None:
    plan = {"config": {"plan": [{"limit": 3, "fields": {"amount": {"values": [1, 2]}}}]}}
    assert without_secrets(plan) == plan and hidden_place(plan) is None
    assert list(_difference("", plan, {"config": {"plan": [{"limit": 4}]}})) != []


def test_custom_configs_are_shown_but_for_secrets() -> None:
    free = {
        "d2Name": "xlntBetaPinot", "owner": "data", "note": "Basic statistics of orders", "replicas": 3,
        "wiki": "https://wiki/orders", "ssl.key.location": "/k",
        "hybrid.expectations": json.dumps([{"name": "a", "condition": "secret = 'none' AND token IS NOT NULL"}]),
        "hybrid.boundary": "exact", "stream.kafka.consumer.prop.client.id": "me",
    }  # fmt: skip
    document = {"metadata": {"customConfigs": free}}
    assert without_secrets(document) == document and hidden_place(document) is None
    assert list(_difference("", {"metadata": {"customConfigs": {**free, "owner": "ops"}}}, document)) == [
        "/metadata/customConfigs/owner: ops -> data"
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("db.password", SECRET), ("awsSecretKey", SECRET), ("sasl.jaas.config", SECRET), ("auth.token", SECRET),
        ("stream.kafka.consumer.prop.made.up", SECRET), ("jdbc", f"jdbc:mysql://me:{SECRET}@host/db"),
        ("options", f"user=me;password={SECRET}"), ("options", json.dumps({"clientSecret": SECRET})),
        ("db.pwd", SECRET), ("smtpPass", SECRET), ("auth", f"Basic {SECRET}{SECRET}"),
        ("k", f"Bearer {SECRET}{SECRET}"), ("odbc", f"Server=h;Uid=u;Pwd={SECRET}"),
        ("nested", {"deeper": {"dbPassword": SECRET}}), ("nested", [f"http://me:{SECRET}@host"]),
    ],
)  # fmt: skip
def test_secrets_of_custom_configs_are_hidden(key: str, value: object) -> None:
    document = {"metadata": {"customConfigs": {"owner": "data", key: value}}}
    shown = without_secrets(document)
    assert SECRET not in str(shown) and "data" in str(shown) and hidden_place(shown) is not None
    other = json.loads(json.dumps(document).replace(SECRET, "OLDSECRET"))
    found = list(_difference("", other, document))
    assert len(found) == 1 and "SECRET" not in found[0] and found[0].endswith("changed")


def test_names_of_columns_are_no_secrets() -> None:
    document = {
        "upsertConfig": {"partialUpsertStrategies": {"token": "OVERWRITE"}},
        "task": {"RealtimeToOfflineSegmentsTask": {"token_count.aggregationType": "sum"}},
        "segmentPartitionConfig": {"columnPartitionMap": {"secret_id": {"functionName": "Murmur"}}},
        "complexTypeConfig": {"prefixesToRename": {"token.": ""}},
        "config": {"plan": [{"fields": {"token": {"strategy": "uniform"}}}]},
    }
    assert without_secrets(document) == document and hidden_place(document) is None


@pytest.mark.parametrize(
    "document",
    [
        {"pinotFSSpecs": {"scheme": "s3", "configs": {"secretKey": SECRET}}},
        {"pinotFSSpecs": [["configs", {"secretKey": SECRET}]]},
    ],
)
def test_errors_do_not_repeat_secrets(document: dict[str, object]) -> None:
    with pytest.raises(SpecError) as caught:
        list(Section(document, "f").sections("pinotFSSpecs"))
    assert SECRET not in str(caught.value)
    with pytest.raises(SpecError) as caught:
        parse_delta(Section({"uri": "s3://a", "mode": "follow", "aws_secret_access_key": [SECRET]}, "f"))
    assert SECRET not in str(caught.value)


def test_messages_of_libraries_are_redacted() -> None:
    options = {"aws_secret_access_key": SECRET, "aws_region": "eu-west-1"}
    assert redacted(f"403 for {SECRET} in eu-west-1", options) == f"403 for {HIDDEN} in eu-west-1"
