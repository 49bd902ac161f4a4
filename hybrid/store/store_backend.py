"""The store of obstore for a location. Keys, account and endpoint come from the environment, as obstore names them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import MachineError, SpecError
from hybrid.store.store_location import StoreKind, StoreLocation, check_endpoint
from hybrid.store.store_remedies import remedy

if TYPE_CHECKING:
    from obstore.store import AzureStore, ClientConfig, GCSStore, S3Config, S3Store

_S3_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_AZURE_EMULATOR = ("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:10000")
_GOOGLE_ENDPOINT = "https://storage.googleapis.com"
_GOOGLE_KEY_FILES = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "SERVICE_ACCOUNT")
# What obstore says of an environment that cannot be, and what is shown of it.
_SETUP_FAULTS = (
    ("Invalid Access Key", "the account's key is not base64"),
    ("Missing component in SAS", "the shared access signature has a damaged part"),
    ("Failed parsing an SAS key", "the shared access signature has a damaged part"),
    ("Unable to open service account file", "the file of the service account cannot be read"),
    ("Unable to decode service account file", "the service account's key is not JSON of the form"),
    ("One of service account path or service account key", "a service account's file and its key are both named"),
)


@dataclass(frozen=True)
class StoreTuning:
    """Seconds: for a connection, for one request, and for an operation that repeats its requests after silence."""

    connect_s: float = 5.0
    request_s: float = 20.0
    patience_s: float = 45.0


@dataclass(frozen=True)
class StoreBackend:
    """A store of obstore. `time_url` gives an address of the server that answers without a signature."""

    store: S3Store | AzureStore | GCSStore
    time_url: Callable[[], str]


def open_backend(location: StoreLocation, tuning: StoreTuning) -> StoreBackend:
    """The store at a location; nothing is requested yet.

    A plain http endpoint is used if it is named as one. obstore repeats nothing: a conditional write is repeated where
    its outcome is compared. SpecError for an environment that cannot be, MachineError without obstore.
    """
    try:
        from obstore.exceptions import BaseError
    except ImportError as error:
        raise MachineError(
            f"The object store {location.url} needs the package obstore, which is not installed.",
            hint="pip install 'hybrid[store]'",
        ) from error
    openers = {StoreKind.S3: _open_s3, StoreKind.AZURE: _open_azure, StoreKind.GOOGLE: _open_google}
    try:
        return openers[location.kind](location, tuning)
    except BaseError as error:  # its text may repeat the values of variables
        cause = next((cause for words, cause in _SETUP_FAULTS if words in str(error)), "obstore refuses them")
    raise SpecError(
        f"{location.url} cannot be opened with these variables of the environment: {cause}.",
        hint=remedy(location.kind, "credentials"),
    )


def _open_s3(location: StoreLocation, tuning: StoreTuning) -> StoreBackend:
    from obstore import sign
    from obstore.store import S3Store

    endpoint = _named_endpoint(_S3_ENDPOINTS) or ""
    store = S3Store(
        location.bucket,
        prefix=location.prefix or None,
        # The rest is in the environment. One object a request: a list of objects to delete has no order.
        config={"conditional_put": "etag", "disable_bulk_delete": True},
        client_options=_client_options(tuning, endpoint),
        retry_config={"max_retries": 0},
    )
    return StoreBackend(store, lambda: sign(store, "GET", "-", timedelta(seconds=1)).partition("?")[0])


def open_s3_at(bucket: str, tuning: StoreTuning, address: str = "") -> S3Store:
    """A bucket of S3 to sign requests for.

    `address`: that of the bucket, which may go on as that of a request; else it is made from the environment.
    """
    from obstore.store import S3Store

    endpoint = address or _named_endpoint(_S3_ENDPOINTS) or ""
    config: S3Config = {"endpoint": address, "virtual_hosted_style_request": True} if address else {}
    return S3Store(bucket, config=config, client_options=_client_options(tuning, endpoint))


def _open_azure(location: StoreLocation, tuning: StoreTuning) -> StoreBackend:
    from obstore.store import AzureStore

    endpoint = _azure_endpoint(location)
    store = AzureStore(
        location.bucket,
        prefix=location.prefix or None,
        config={"endpoint": endpoint},  # the emulator has none, and obstore looks for it by itself
        client_options=_client_options(tuning, endpoint),
        retry_config={"max_retries": 0},
    )
    return StoreBackend(store, lambda: f"{endpoint.rstrip('/')}/{location.bucket}")


def _azure_endpoint(location: StoreLocation) -> str:
    if _is_on("AZURE_STORAGE_USE_EMULATOR"):
        variable, usual = _AZURE_EMULATOR
        return check_endpoint(os.environ.get(variable) or usual, variable)
    account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise SpecError(
            f"{location.url}: the environment does not name the storage account.",
            hint="Set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or another way to sign in.",
        )
    endpoint = _named_endpoint(_AZURE_ENDPOINTS) or f"https://{account}.blob.core.windows.net"
    if _is_on("AZURE_USE_FABRIC_ENDPOINT") or ".fabric.microsoft.com" in endpoint:
        raise SpecError(
            f"{location.url}: OneLake of Microsoft Fabric cannot hold a warehouse.",
            hint="Use a storage account, without AZURE_USE_FABRIC_ENDPOINT and without an endpoint of Fabric.",
        )
    return endpoint


def _open_google(location: StoreLocation, tuning: StoreTuning) -> StoreBackend:
    from obstore.store import GCSStore

    endpoint = _named_endpoint(("GOOGLE_BASE_URL",)) or _endpoint_of_key() or _GOOGLE_ENDPOINT
    store = GCSStore(
        location.bucket,
        prefix=location.prefix or None,
        config={"base_url": endpoint.rstrip("/")},
        client_options=_client_options(tuning, endpoint),
        retry_config={"max_retries": 0},
    )
    return StoreBackend(store, lambda: f"{endpoint.rstrip('/')}/{location.bucket}")


def _endpoint_of_key() -> str:
    """The endpoint that a service account's key names, or nothing; obstore refuses a key that cannot be read."""
    path = next((os.environ[name] for name in _GOOGLE_KEY_FILES if os.environ.get(name)), "")
    try:
        text = Path(path).read_text(encoding="utf-8") if path else os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY", "")
        endpoint = json.loads(text).get("gcs_base_url") if text else None
    except (OSError, ValueError, AttributeError):
        return ""
    return check_endpoint(endpoint, "GOOGLE_BASE_URL") if isinstance(endpoint, str) else ""


def _client_options(tuning: StoreTuning, endpoint: str) -> ClientConfig:
    return {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": timedelta(seconds=tuning.connect_s),
        "timeout": timedelta(seconds=tuning.request_s),
    }


def _named_endpoint(variables: tuple[str, ...]) -> str | None:
    """The endpoint that the first of some variables names, if one does."""
    return next((check_endpoint(os.environ[name], name) for name in variables if os.environ.get(name)), None)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in {"1", "true", "on", "yes", "y"}
