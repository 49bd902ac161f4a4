"""Decides what queued work may read, by the source of its run."""

from __future__ import annotations

from pathlib import Path

from hybrid.config.input_rules import InputRules, StoreRules
from hybrid.config.settings import Settings
from hybrid.home.accounts import Accounts, Right

# The source of a run whose only input is a file that was uploaded to the server.
UPLOAD = "upload"


def rules_of(settings: Settings, source: str | None) -> InputRules:
    """The rules for a run: `source` is `http`, `cli`, `upload` or `schedule`, with `:account` for an account's.

    An account's work may read the folders and stores in the settings, by default none. An administrator could grant
    itself more, so only the private folders are closed to it. Work without an account comes from the command line on
    the home, or the home has no accounts. In the latter case the folders of the settings are the limit.
    """
    kind, colon, name = (source or "").partition(":")
    folders = settings.input_folders
    if colon:
        is_bounded = not _may_administer(settings.home, name)
    else:
        is_bounded = bool(folders) and not Accounts(settings.home).list()
    return InputRules(
        settings.home,
        folders if is_bounded else None,
        StoreRules(settings.s3_buckets, settings.s3_endpoints) if is_bounded and colon else None,
        is_upload=kind == UPLOAD,
    )


def _may_administer(home: Path, name: str) -> bool:
    """Whether the account is an administrator now: the right may have been revoked since the run was queued."""
    return any(account.name == name and account.right is Right.ADMIN for account in Accounts(home).list())
