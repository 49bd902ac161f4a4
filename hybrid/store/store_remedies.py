"""What to do about each kind of failure, by the protocol of the store; and what its failures are called."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.store.store_location import StoreKind

_SENTENCES = {
    "bucket": "The bucket does not exist",
    "region": "The bucket is in another region",
    "permission": "The store does not permit it",
    "credentials": "The store does not accept the keys",
    "expired": "The session token has expired",
    "clock": "The store refuses the request for its time: this machine's clock is wrong",
    "unreachable": "The store does not answer",
    "no-conditions": "The store does not carry out conditional writes",
    "conflict": "Other writers keep the store from carrying out the request",
}
_SENTENCES_OF: Mapping[StoreKind, Mapping[str, str]] = {
    StoreKind.S3: {},
    StoreKind.AZURE: {
        "bucket": "The container does not exist",
        "expired": "The token or the shared access signature has expired",
    },
    StoreKind.GOOGLE: {"expired": "The token has expired"},
}
_REMEDIES = {
    "clock": "Let NTP set the clock of this machine.",
    "conflict": "Repeat it when fewer processes write there.",
}
_REMEDIES_OF: Mapping[StoreKind, Mapping[str, str]] = {
    StoreKind.S3: {
        "bucket": "Create the bucket, or correct its name; AWS_ENDPOINT_URL names a store other than AWS.",
        "region": "Set AWS_REGION to the region of the bucket.",
        "permission": "Permit s3:GetObject, s3:PutObject, s3:DeleteObject below the prefix, and s3:ListBucket.",
        "credentials": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN of temporary keys.",
        "expired": "Fetch new temporary keys, and set all three variables: AWS_SESSION_TOKEN belongs to its keys.",
        "unreachable": "Check AWS_ENDPOINT_URL, the network between, and whether the store is up.",
        "no-conditions": "Use a store, or a version of it, with If-None-Match and If-Match for PutObject.",
    },
    StoreKind.AZURE: {
        "bucket": "Create the container, or correct its name; AZURE_STORAGE_ACCOUNT_NAME names the account.",
        "permission": "Give the role Storage Blob Data Contributor on the container, or a shared access signature with "
        "rcwdl; the account's network rules may refuse this machine, too.",
        "credentials": "Set AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, or "
        "AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID.",
        "expired": "Fetch a new one: AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_TOKEN or AZURE_CLIENT_SECRET.",
        "unreachable": "Check AZURE_STORAGE_ACCOUNT_NAME, which is in the host's name, AZURE_STORAGE_ENDPOINT, the "
        "network between, and whether the store is up.",
        "no-conditions": "Ask the Blob service itself: something in between does not pass on If-None-Match, If-Match.",
    },
    StoreKind.GOOGLE: {
        "bucket": "Create the bucket, or correct its name.",
        "permission": "Give the role Storage Object User on the bucket: storage.objects.get, create, delete and list.",
        "credentials": "Name a service account's key file in GOOGLE_SERVICE_ACCOUNT, or the file of application "
        "default credentials in GOOGLE_APPLICATION_CREDENTIALS.",
        "expired": "Fetch a new one: GOOGLE_BEARER_TOKEN is not renewed.",
        "unreachable": "Check GOOGLE_BASE_URL, the network between, and whether the store is up.",
        "no-conditions": "Ask Cloud Storage itself: something in between does not pass on the generation.",
    },
}


def fault_sentence(kind: StoreKind, fault: str) -> str:
    """The sentence for a kind of failure, one of `hybrid.store.store_faults.Fault`."""
    return _SENTENCES_OF[kind].get(fault) or _SENTENCES.get(fault, "The store refuses the request")


def remedy(kind: StoreKind, fault: str) -> str | None:
    """What would help against a kind of failure; None for none that is known."""
    return _REMEDIES_OF[kind].get(fault) or _REMEDIES.get(fault)
