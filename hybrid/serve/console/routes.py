"""The routers of the console's pages. A new page adds its own here."""

from __future__ import annotations

from hybrid.serve.console import overview, run_page, sign_in, static_files, table_changes

ROUTERS = (static_files.router, sign_in.router, overview.router, run_page.router, table_changes.router)
