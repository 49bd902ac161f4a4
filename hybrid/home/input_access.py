"""Decides what queued work may read, by the source of its run. Part of the API's layer."""

from __future__ import annotations

from pathlib import Path

from hybrid.config.input_rules import InputRules, StoreRules
from hybrid.config.settings import Settings
from hybrid.home.accounts import Accounts, Right

# The source of a run whose one input is a file that the server received itself.
UPLOAD = "upload"


def rules_of(settings: Settings, source: str | None) -> InputRules:
    """The rules for a run: `source` is `http`, `cli`, `upload` or `schedule`, with `:account` when one asked.

    Work of an account reads the folders and stores that the settings list, and none by default. An account that may
    administer the home could give itself more; the private folders alone are closed to it. Work without an account
    comes from the command line on the home, or the home has no accounts. The folders of the settings bound the second.
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
    """Whether the account has that right now: it may have been taken away since the run was queued."""
    return any(one.name == name and one.right is Right.ADMIN for one in Accounts(home).list())
