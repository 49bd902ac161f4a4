"""`connect`: a home of this machine, or a server by its address."""

from __future__ import annotations

import os
from pathlib import Path

from hybrid.api import hybrid as local
from hybrid.errors import UsageError
from hybrid.progress import Progress, Silent


def connect(
    home: str | Path | None = None, *, token: str | None = None, progress: Progress | None = None
) -> local.Hybrid:
    """Opens a home, or connects to a server: `connect("./.hybrid")`, `connect("http://127.0.0.1:9000", token="...")`.

    A home is the folder with warehouse, catalog and logs of an installation. Without `home`, HYBRID_HOME names it, else
    `.hybrid` is searched from the current folder upward. `token` is an account's secret on the server; without it
    HYBRID_TOKEN. A login in the address, `http://NAME:SECRET@HOST:9000`, counts before the variable; beside `token` it
    is a UsageError. `progress` receives messages about long work.
    """
    if isinstance(home, str) and "://" in home:
        from hybrid.rpc.client import ServerAddress
        from hybrid.rpc.remote_hybrid import RemoteHybrid

        if token and ServerAddress.parse(home).login is not None:
            raise UsageError("The server's address has a login, and `token` is another.", hint="Leave out one of them.")
        return RemoteHybrid(home, token or os.environ.get("HYBRID_TOKEN") or None, progress or Silent())
    if token is not None:
        raise UsageError(
            "A token is for a server, and this is a home.", hint='hybrid.connect("http://HOST:9000", token=...)'
        )
    return local.connect(home, progress=progress)
