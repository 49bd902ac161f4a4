"""Hides secrets of configs and job specs wherever they are shown.

The keys of some sections are passed to a client (Kafka, object stores, schema registries). There only listed options
are shown, because nobody can list all secret options of a client. Elsewhere a value is hidden when its key looks
secret, unless the keys are names of columns. Keys of customConfigs are their users' own: no list has them, but their
values are searched for logins and passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

HIDDEN = "********"
# Sections of configs, connectors and job specs whose keys are options of a client or a reader.
_OPTION_SECTIONS = frozenset({
    "streamConfigs", "streamConfigMaps", "batchConfigMaps", "config", "configs", "properties", "storage_options",
    "extraConfigs",
})  # fmt: skip
_FREE_SECTIONS = frozenset({"customConfigs"})
_COLUMN_SECTIONS = frozenset({"partialUpsertStrategies", "columnPartitionMap", "prefixesToRename"})
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
_SHORT_NAMES = frozenset({"pwd", "pass", "auth", "pin"})  # too short to be searched for inside of other words
_CREDENTIAL = re.compile(r"\s*(?:bearer|basic)\s+\S{8,}\s*", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
_NOT_SECRET = frozenset({
    "schema.registry.basic.auth.credentials.source", "anonymousCredentialsProvider", "ssl.key.location",
})  # fmt: skip
_FIELDS = "fields"  # of a plan of generated rows: its keys are names of columns
_OF_COLUMN = ".aggregationType"  # what stands before it is the name of a metric
_OWN = "hybrid."  # begins this system's own keys of customConfigs
# `name=` or `name:` inside of a value.
_NAMED_VALUE = re.compile(r"(?<![A-Za-z0-9_.\-])([A-Za-z0-9_.\-]++)[\"']?\s*+[=:]")
_SHORTEST = 4  # a shorter value occurs in too many words
_NO_LETTERS = re.compile(r"[^a-z0-9]")
# Up to the last @ before the path; also a password with a slash in it, which is not the port of a host.
_USER_INFO = re.compile(r"(?<=://)(?:[^/@\s:]*:(?!\d*(?:/|$))\S*|(?<!http://)(?<!https://)[^/@\s:]*:\S*|[^/\s]*)(?=@)")
_QUERY_STRING = re.compile(r"(?<=\?)\S*")


class Keys(Enum):
    """What the keys of an object are.

    NAMED by the format of the document, OPTIONS of a client, FREE for the users, or names of COLUMNS.
    """

    NAMED = "named"
    OPTIONS = "options"
    FREE = "free"
    COLUMNS = "columns"


def hides(key: object, *, in_options: bool = False) -> bool:
    """Whether the value of a key is never shown. `in_options`: the key is an option of a client."""
    return hides_among(key, Keys.OPTIONS if in_options else Keys.NAMED)


def hides_among(key: object, keys: Keys) -> bool:
    """Whether the value of a key is never shown."""
    name = str(key)
    bare = _PREFIXES.sub("", name)
    if keys is Keys.COLUMNS or (keys is Keys.NAMED and name.endswith(_OF_COLUMN)):
        return False
    if _SECRET_WORDS.search(_NO_LETTERS.sub("", name.lower())) and bare not in _NOT_SECRET:
        return True
    if keys is Keys.FREE and has_short_name(name):
        return True
    is_option = keys is Keys.OPTIONS or (keys is Keys.FREE and bare != name)
    return is_option and bare not in _PUBLIC and not bare.startswith(_PUBLIC_STARTS)


def has_short_name(name: str) -> bool:
    """Whether the last word of a name is a short one of secrets, as in `db.pwd` and `smtpPass`."""
    return _BETWEEN_WORDS.split(name)[-1].lower() in _SHORT_NAMES


def keys_below(key: object) -> Keys:
    """What the keys in the section `key` are."""
    name = str(key)
    if name in _OPTION_SECTIONS:
        return Keys.OPTIONS
    return Keys.FREE if name in _FREE_SECTIONS else Keys.COLUMNS if name in _COLUMN_SECTIONS else Keys.NAMED


def without_secrets(document: object, keys: Keys = Keys.NAMED) -> object:
    """A copy of a document with its secrets hidden.

    Options whose values are documents, such as the plan of generated rows, are shown as they are.
    """
    if isinstance(document, dict):
        return {key: value_without_secrets(key, value, keys) for key, value in document.items()}
    if isinstance(document, list):
        return [without_secrets(item, keys) for item in document]
    if not isinstance(document, str) or keys not in (Keys.OPTIONS, Keys.FREE):
        return document
    return HIDDEN if keys is Keys.FREE and names_secret(document) else without_login(document)


def value_without_secrets(key: object, value: object, keys: Keys = Keys.NAMED) -> object:
    """The value of a key with its secrets hidden."""
    if value in (None, "") or isinstance(value, bool):
        return value
    below, is_document = keys_below(key), isinstance(value, (dict, list))
    if is_document and below is not Keys.NAMED and (below is not Keys.COLUMNS or keys is Keys.NAMED):
        return without_secrets(value, below)
    if hides_among(key, keys):
        return HIDDEN
    if is_document and keys in (Keys.OPTIONS, Keys.COLUMNS):
        return _public_document(value)
    is_own = keys is Keys.FREE and str(key).startswith(_OWN)
    return without_secrets(value, Keys.OPTIONS if is_own else keys)


def names_secret(text: str) -> bool:
    """Whether a text has a secret by its name, as `-Dstore.password=...` and `Pwd=...`, or a credential of HTTP."""
    return _CREDENTIAL.fullmatch(text) is not None or any(
        hides_among(match[1], Keys.FREE) for match in _NAMED_VALUE.finditer(text)
    )


def redacted(text: str, options: Mapping[str, str]) -> str:
    """A message of a library without the secrets among the options that were passed to it."""
    for key, value in options.items():
        if len(value) >= _SHORTEST and hides(key, in_options=True):
            text = text.replace(value, HIDDEN)
    return text


def hidden_place(document: object, path: str = "", *, has_logins: bool = False) -> str | None:
    """The path of a value in a document that was hidden for display; None without any.

    `has_logins`: a part of a text may have been hidden, as below options.
    """
    if isinstance(document, list):
        items = [(f"{path}[{at}]", item, has_logins) for at, item in enumerate(document)]
    elif isinstance(document, dict):
        below = f"{path}." if path else ""
        parts = (Keys.OPTIONS, Keys.FREE)
        items = [(f"{below}{key}", item, has_logins or keys_below(key) in parts) for key, item in document.items()]
    else:
        return path if isinstance(document, str) and HIDDEN in document and (has_logins or document == HIDDEN) else None
    hidden = (hidden_place(item, place, has_logins=logins) for place, item, logins in items)
    return next((place for place in hidden if place is not None), None)


def _public_document(value: object, keys: Keys = Keys.NAMED) -> object:
    """A document at a public option, with its secrets hidden: its keys are no options of a client."""
    if isinstance(value, dict):
        return {key: _public_value(key, item, keys) for key, item in value.items()}
    if isinstance(value, list):
        return [_public_document(item) for item in value]
    return without_login(value) if isinstance(value, str) else value


def _public_value(key: object, value: object, keys: Keys) -> object:
    below = Keys.COLUMNS if key == _FIELDS else Keys.NAMED
    return HIDDEN if hides_among(key, keys) and value else _public_document(value, below)


def without_login(text: str) -> str:
    """An address without its user, password and signature."""
    if "://" not in text:
        return text
    return _QUERY_STRING.sub(HIDDEN, _USER_INFO.sub(HIDDEN, text))
