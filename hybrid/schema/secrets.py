"""Hides secrets of configs and job specs wherever they are shown.

The keys of some sections are passed to a client (Kafka, object stores, schema registries). There only listed options
are shown, because nobody can list all secret options of a client. Elsewhere a value is hidden when its key looks
secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "********"
# Sections of configs, connectors and job specs whose keys are options of a client or a reader.
_OPTION_SECTIONS = frozenset({
    "streamConfigs", "streamConfigMaps", "batchConfigMaps", "config", "configs", "properties", "storage_options",
    "customConfigs", "extraConfigs",
})  # fmt: skip
_PREFIXES = re.compile(r"(?:stream\.[a-z]+\.|consumer\.prop\.|decoder\.prop\.|input\.fs\.prop\.|output\.fs\.prop\.)+")
_PUBLIC = frozenset({
    # Kafka: brokers, topics, decoders
    "streamType", "topic.name", "broker.list", "decoder.class.name", "consumer.type", "consumer.factory.class.name",
    "zk.broker.url", "hlc.zk.connect.string", "hlc.bootstrap.server", "hlc.group.id", "metadata.populate",
    "fetcher.size", "fetcher.minBytes", "buffer.size", "auto.offset.reset", "isolation.level", "group.id",
    "group.instance.id", "client.id", "client.rack", "bootstrap.servers", "topic", "topics", "partitions",
    "start_from", "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username",
    "ssl.truststore.location", "ssl.truststore.type", "ssl.keystore.location", "ssl.keystore.type",
    "ssl.endpoint.identification.algorithm", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
    "log_level", "group_join_timeout_secs", "poller_threads", "fault_tolerance", "kafka_service", "debug",
    "enabled_events", "retries", "header_filter", "resume_earliest_if_data_expires", "check.crcs",
    "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof", "auto.commit.interval.ms",
    "schema.registry.rest.url", "schema.registry.basic.auth.credentials.source", "schema.registry.schema.name",
    "registry_urls", "registry_schema", "registry_username", "registry_timeout_secs",
    "descriptorFile", "protoClassName",
    # formats
    "schema", "skip_schema_id", "update_format", "json_flavor", "array", "lines", "buffer_size_records", "delimiter",
    "headers", "header", "quote", "escape", "double_quote", "quoting", "comment", "flexible", "trim", "fileFormat",
    "json.fail.invalid.schema", "schema.registry.ssl.ca.location", "trailingDelimiter",
    "multiValueDelimiter", "multiValueDelimiterEnabled", "commentMarker", "escapeCharacter", "quoteCharacter",
    "skipHeader", "skipUnParseableLines", "ignoreEmptyLines", "ignoreSurroundingSpaces", "recordSeparator",
    "nullStringValue", "quoteMode", "extractRawTimeValues", "enableLogicalTypes", "inputFormat", "jsonFormat",
    # Delta tables, files and generated rows
    "uri", "mode", "version", "start_version", "datetime", "start_datetime", "end_version", "filter",
    "snapshot_filter", "timestamp_column", "transaction_mode", "change_feed", "cdc_delete_filter", "cdc_order_by",
    "num_parsers", "max_concurrent_readers", "max_retries", "verbose", "skip_unused_columns", "path", "follow",
    "buffer_size_bytes", "buffer_size_byte", "plan", "seed", "workers", "transaction_size",
    # object stores
    "region", "aws_region", "aws_default_region", "endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url",
    "aws_allow_http", "allow_http", "allow_invalid_certificates", "aws_virtual_hosted_style_request",
    "virtual_hosted_style_request", "skip_signature", "aws_skip_signature", "unsigned_payload", "request_payer",
    "bucket", "bucket_name", "aws_bucket", "container_name", "azure_container_name", "account_name",
    "azure_storage_account_name", "use_emulator", "azure_storage_use_emulator", "connect_timeout", "timeout",
    "retry_timeout", "http1_only", "http2_only", "randomize_addresses", "aws_s3_allow_unsafe_rename",
    "aws_conditional_put", "anonymousCredentialsProvider", "disableAcl", "storageClass", "serverSideEncryption",
    "iamRoleBasedAccessEnabled",
    # batch configs, and this system's own keys among a job's extra configs
    "inputDirURI", "outputDirURI", "includeFileNamePattern", "excludeFileNamePattern", "overwriteOutput", "push.mode",
    "segmentNameGenerator.type", "hybrid.covers", "hybrid.expectations", "stagingDir",
    # this system's own keys of a table config
    "hybrid.boundary", "hybrid.flows", "hybrid.ddl", "hybrid.columns", "hybrid.revertWindow",
    "hybrid.retentionSchedule", "hybrid.optimizeSchedule", "hybrid.vacuumSchedule",
})  # fmt: skip
_PUBLIC_STARTS = (
    "realtime.segment.", "fetch.", "max.", "message.", "receive.", "socket.", "reconnect.", "broker.", "api.",
    "metadata.", "connections.", "connection.", "idle.", "queued.", "queue.", "statistics.", "session.",
    "heartbeat.", "topic.metadata.", "retry.", "log.", "auto.commit.", "allow.", "partition.assignment.", "request.",
    "enable.random.", "client.dns.", "segmentNameGenerator.configs.",
)  # fmt: skip
_SECRET_WORDS = re.compile(
    r"password|passwd|passphrase|secret|token|credential|jaas|bearer|userinfo|apikey|accesskey|accountkey|masterkey"
    r"|privatekey|sharedkey|saskey|sslkey|keypem|serviceaccountkey|connectionstring|authorization"
)
_NOT_SECRET = frozenset({
    "schema.registry.basic.auth.credentials.source", "anonymousCredentialsProvider", "ssl.key.location",
})  # fmt: skip
_SHORTEST = 4  # a shorter value occurs in too many words
_NO_LETTERS = re.compile(r"[^a-z0-9]")
# Up to the last @ before the path; also a password with a slash in it, which is not the port of a host.
_USER_INFO = re.compile(r"(?<=://)(?:[^/@\s:]*:(?!\d*(?:/|$))\S*|(?<!http://)(?<!https://)[^/@\s:]*:\S*|[^/\s]*)(?=@)")
_QUERY_STRING = re.compile(r"(?<=\?)\S*")


def hides(key: object, *, in_options: bool = False) -> bool:
    """Whether the value of a key is never shown. `in_options`: the key is an option of a client."""
    name = str(key)
    bare = _PREFIXES.sub("", name)
    if _SECRET_WORDS.search(_NO_LETTERS.sub("", name.lower())) and bare not in _NOT_SECRET:
        return True
    return in_options and bare not in _PUBLIC and not bare.startswith(_PUBLIC_STARTS)


def opens_options(key: object) -> bool:
    """Whether the keys in the section `key` are options of a client."""
    return str(key) in _OPTION_SECTIONS


def without_secrets(document: object, *, in_options: bool = False) -> object:
    """A copy of a document with its secrets hidden.

    Options whose values are documents, such as the plan of generated rows, are shown as they are.
    """
    if isinstance(document, dict):
        return {key: value_without_secrets(key, value, in_options=in_options) for key, value in document.items()}
    if isinstance(document, list):
        return [without_secrets(item, in_options=in_options) for item in document]
    return without_login(document) if in_options and isinstance(document, str) else document


def value_without_secrets(key: object, value: object, *, in_options: bool = False) -> object:
    """The value of a key with its secrets hidden."""
    if value in (None, "") or isinstance(value, bool):
        return value
    if isinstance(value, (dict, list)) and opens_options(key):
        return without_secrets(value, in_options=True)
    if hides(key, in_options=in_options):
        return HIDDEN
    if in_options and isinstance(value, (dict, list)):
        return _public_document(value)
    return without_secrets(value, in_options=in_options)


def redacted(text: str, options: Mapping[str, str]) -> str:
    """A message of a library without the secrets among the options that were passed to it."""
    for key, value in options.items():
        if len(value) >= _SHORTEST and hides(key, in_options=True):
            text = text.replace(value, HIDDEN)
    return text


def hidden_place(document: object, path: str = "", *, in_options: bool = False) -> str | None:
    """The path of a value in a document that was hidden for display; None without any."""
    if isinstance(document, list):
        items = [(f"{path}[{at}]", item, in_options) for at, item in enumerate(document)]
    elif isinstance(document, dict):
        below = f"{path}." if path else ""
        items = [(f"{below}{key}", item, in_options or opens_options(key)) for key, item in document.items()]
    else:
        return path if isinstance(document, str) and HIDDEN in document and (in_options or document == HIDDEN) else None
    hidden = (hidden_place(item, place, in_options=options) for place, item, options in items)
    return next((place for place in hidden if place is not None), None)


def _public_document(value: object) -> object:
    """A document at a public option, with its secrets hidden: its keys are no options of a client."""
    if isinstance(value, dict):
        return {key: HIDDEN if hides(key) and item else _public_document(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_public_document(item) for item in value]
    return without_login(value) if isinstance(value, str) else value


def without_login(text: str) -> str:
    """An address without its user, password and signature."""
    if "://" not in text:
        return text
    return _QUERY_STRING.sub(HIDDEN, _USER_INFO.sub(HIDDEN, text))
