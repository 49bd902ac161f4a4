"""Routes `/backups`: backups of the server's home, in directories of its machine."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field

from hybrid.home.accounts import Right
from hybrid.rpc.verbs import VERBS
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown

router = StrictRouter(tags=["backups"])
_PATH_MAX = 4096
Directory = Annotated[str, Query(min_length=1, max_length=_PATH_MAX, description="A folder of the server's machine.")]
_CREATED = {
    "id": "20211121T103800000Z-3f2a1b",
    "directory": "/backups/hybrid",
    "tables": {"orders": "orders[OFFLINE=3 REALTIME=7]"},
    "files": 120,
    "files_new": 14,
    "sentence": "Backed up 1 table as 20211121T103800000Z-3f2a1b in /backups/hybrid.",
}
_VERIFIED = {"sound": True, "findings": [], "sentence": "Verified 2 backups in /backups/hybrid."}


class DirectoryBody(BaseModel):
    """A directory of backups."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"directory": "/backups/hybrid"}]}
    )

    directory: str = Field(min_length=1, max_length=_PATH_MAX)


class BackupBody(DirectoryBody):
    """Where a backup goes, and the tables that it holds; all without `tables`."""

    tables: list[str] | None = Field(default=None, min_length=1, max_length=1000)


class VerificationBody(DirectoryBody):
    """The directory to verify, and one backup of it; all without `backup`."""

    backup: str | None = Field(default=None, max_length=100)


@router.post("/backups", summary="Back up tables", responses=shown(_CREATED))
@needs(Right.ADMIN)
async def create_backup(request: Request, wanted: BackupBody) -> Any:
    """Backs up the home's tables while they are used, and returns the report."""
    return await context_of(request).carried_out("backup_create", wanted.model_dump())


# A POST, because every account may GET, and a directory of the machine is an administrator's.
@router.post("/backups/list", summary="List backups", responses=shown([_CREATED]))
@needs(Right.ADMIN)
def list_backups(request: Request, wanted: DirectoryBody) -> Any:
    """Returns the backups in a directory, newest first."""
    context_of(request).check_directory(wanted.directory)
    return VERBS["backup_list"].call(context_of(request).home, directory=wanted.directory)


@router.post("/backups/verify", summary="Verify backups", responses=shown(_VERIFIED))
@needs(Right.ADMIN)
async def verify_backups(request: Request, wanted: VerificationBody) -> Any:
    """Compares every byte of a backup, or of all in a directory, with its checksum."""
    return await context_of(request).carried_out("backup_verify", wanted.model_dump())


@router.delete("/backups/{backup}", summary="Delete a backup", responses=shown({"sentence": "Deleted backup ID."}))
@needs(Right.ADMIN)
async def delete_backup(request: Request, backup: str, directory: Directory) -> Any:
    """Deletes a backup, and the files that no other backup in its directory needs."""
    return await context_of(request).carried_out("backup_delete", {"directory": directory, "backup": backup})
