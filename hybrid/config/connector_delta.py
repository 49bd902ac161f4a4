"""Reads the config of Feldera's `delta_table_input`.

After docs.feldera.com/connectors/sources/delta, and crates/adapters/src/integrated/delta_table/input.rs of
feldera/feldera for the rules that it checks when the connector starts. Here they are checked when a table is created.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from hybrid.config.connector_kafka import plain_text
from hybrid.config.connectors import ChangeFeed, DeltaInput, DeltaMode
from hybrid.errors import suggestion
from hybrid.schema.document import Section
from hybrid.schema.references import check_references
from hybrid.schema.values import millis_of

_USED = {
    "uri", "mode", "version", "start_version", "datetime", "start_datetime", "end_version", "filter", "snapshot_filter",
    "timestamp_column", "transaction_mode", "change_feed",
}  # fmt: skip
_QUIET = {"num_parsers", "max_concurrent_readers", "max_retries", "verbose", "skip_unused_columns"}
_CDC = {"cdc_delete_filter", "cdc_order_by"}
_TRANSACTIONS = ("none", "snapshot", "catchup", "always")
# Options of object stores: the prefixes of their names, and the names without a prefix.
_STORAGE_PREFIXES = re.compile(r"(?:aws|s3|azure|google|gcs|gcp|databricks|unity|http2|proxy|pool|object_store)_\w+")
_STORAGE = {
    "access_key_id", "secret_access_key", "region", "endpoint_url", "endpoint", "session_token", "token",
    "skip_signature", "imdsv1_fallback", "virtual_hosted_style_request", "unsigned_payload", "metadata_endpoint",
    "container_credentials_relative_uri", "container_credentials_full_uri", "container_authorization_token_file",
    "request_payer", "allow_http", "account_name", "access_key", "account_key", "master_key", "client_id",
    "client_secret", "tenant_id", "authority_id", "authority_host", "sas_key", "sas_token", "bearer_token",
    "use_emulator", "use_fabric_endpoint", "identity_endpoint", "msi_endpoint", "object_id", "msi_resource_id",
    "federated_token_file", "fabric_token_service_url", "fabric_workload_host", "fabric_session_token",
    "fabric_cluster_identifier", "service_account", "service_account_path", "service_account_key",
    "allow_invalid_certificates", "connect_timeout", "http1_only", "randomize_addresses", "timeout", "retry_timeout",
    "user_agent", "bucket", "bucket_name", "container_name",
}  # fmt: skip


def parse_delta(config: Section) -> DeltaInput:
    """The input of a `delta_table_input` config."""
    mode = _mode(config)
    version, datetime_ms = _from_version(config), _from_datetime(config)
    delta_input = DeltaInput(
        uri=config.text("uri"),
        mode=mode,
        version=version,
        datetime_ms=datetime_ms,
        end_version=config.whole("end_version", 0) if config.doc.get("end_version") is not None else None,
        filter=config.text("filter") if config.doc.get("filter") is not None else None,
        snapshot_filter=config.text("snapshot_filter") if config.doc.get("snapshot_filter") is not None else None,
        timestamp_column=config.text("timestamp_column") if config.has("timestamp_column") else None,
        storage_options=_storage(config),
        change_feed=ChangeFeed(config.choice("change_feed", tuple(ChangeFeed))) if config.has("change_feed") else None,
    )
    _check_together(config, delta_input)
    return delta_input


def delta_warnings(config: Section) -> Iterator[str]:
    """One warning for each key that has no effect, or that is no known option of an object store."""
    for key in config.doc:
        if key not in _USED | _QUIET | _CDC and not _is_storage(key):
            yield f"{config.source}: {config.at(key)}: this key is not known; it is handed on to the object store."
    if config.has("transaction_mode") and config.doc["transaction_mode"] != "none":
        where = f"{config.source}: {config.at('transaction_mode')}"
        yield f"{where}: has no effect: each batch is one commit, and a query sees all of it or nothing."


def _mode(config: Section) -> DeltaMode:
    mode = config.choice("mode", (*DeltaMode, "cdc"))
    if mode == "cdc":
        config.fail("mode", "'cdc' is not built yet. Use snapshot, follow or snapshot_and_follow.")
    for key in _CDC:
        if config.doc.get(key) is not None:
            config.fail(key, "belongs to the mode cdc, which is not built yet. Remove the key.")
    return DeltaMode(mode)


def _from_version(config: Section) -> int | None:
    key = _one_of(config, "version", "start_version")
    return config.whole(key, 0) if key else None


def _from_datetime(config: Section) -> int | None:
    key = _one_of(config, "datetime", "start_datetime")
    if key is None:
        return None
    text = config.text(key)
    try:
        moment = datetime.fromisoformat(text)
        millis = millis_of(moment.astimezone(UTC)) if moment.tzinfo else None
    except (ValueError, OverflowError):
        config.fail(key, f"'{text}' is not a time of ISO 8601. Write it like 2024-12-09T16:09:53+00:00.")
    if millis is None:
        config.fail(key, f"'{text}' has no zone. Write it like 2024-12-09T16:09:53+00:00.")
    return millis


def _one_of(config: Section, key: str, alias: str) -> str | None:
    names = [name for name in (key, alias) if config.doc.get(name) is not None]
    if len(names) > 1:
        config.fail(alias, f"says the same as {key}. Write one of them.")
    return names[0] if names else None


def _check_together(config: Section, found: DeltaInput) -> None:
    if found.version is not None and found.datetime_ms is not None:
        config.fail("datetime", "is given beside version. Write one of them.")
    if found.end_version is not None and not found.follows:
        config.fail("end_version", f"has no meaning in the mode {found.mode}. Use follow or snapshot_and_follow.")
    if found.end_version is not None and found.version is not None and found.end_version <= found.version:
        config.fail("end_version", f"{found.end_version} must be greater than version, {found.version}.")
    if found.change_feed is not None and not found.follows:
        config.fail("change_feed", f"has no meaning in the mode {found.mode}. Use follow or snapshot_and_follow.")
    if found.snapshot_filter is not None and not found.reads_snapshot:
        config.fail("snapshot_filter", f"has no meaning in the mode {found.mode}. Write filter.")
    if config.has("transaction_mode"):
        config.choice("transaction_mode", _TRANSACTIONS)


def _storage(config: Section) -> dict[str, str]:
    """The options of the object store. A misspelt key of the connector is an error, not an option."""
    own = _USED | _QUIET | _CDC
    options = {}
    for key in config.doc:
        if key in own:
            continue
        near = "" if _is_storage(key) else suggestion(key, own)
        if near:
            config.fail(key, f"is not a key of delta_table_input, nor an option of an object store.{near}")
        options[key] = plain_text(config, key)
        check_references(config, key, options[key])
    return options


def _is_storage(key: str) -> bool:
    return key in _STORAGE or _STORAGE_PREFIXES.fullmatch(key) is not None
