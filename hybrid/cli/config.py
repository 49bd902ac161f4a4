"""`hybrid config`: the settings and their sources."""

from __future__ import annotations

import click

from hybrid.cli.cells import CellKind, View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.config.setting_keys import Value
from hybrid.config.settings import Setting
from hybrid.schema.secret_texts import holds_secret
from hybrid.schema.secrets import HIDDEN, hides, without_login

_SECRET = ("token",)
_SETTINGS = View(("name", "value", "source", "meaning"), below=("source",), kinds={"meaning": CellKind.PROSE})


@click.group(cls=HybridGroup, alone="show")
def config() -> None:
    """Show the settings. Precedence: flag, then HYBRID_*, then hybrid.toml in the home folder, then the default."""


@config.command()
@pass_cli
def show(cli: Cli) -> None:
    """Show every setting, its value and its source."""
    from hybrid.cli.dispatch import refuse_server

    refuse_server(cli, "hybrid config show", "Run it on the server's machine: its settings lie there.", flag_only=True)
    settings = cli.settings
    rows: list[dict[str, object]] = [
        {"name": "home", "value": str(settings.home), "source": settings.home_source, "meaning": "home folder"}
    ]
    rows += [
        {"name": setting.name, "value": _shown(setting), "source": setting.source, "meaning": setting.meaning}
        for setting in settings.values
    ]
    rows += [
        {
            "name": name,
            "value": HIDDEN if hides(name) or holds_secret(value) else value,
            "source": str(settings.home / "hybrid.toml"),
            "meaning": "passed to Spark",
        }
        for name, value in settings.spark.items()
    ]
    cli.emit(rows, _SETTINGS)


def _shown(setting: Setting) -> Value:
    if setting.name in _SECRET and setting.value is not None:
        return "(hidden)"
    if not isinstance(setting.value, str):
        return setting.value
    if setting.name == "server" and "://" not in setting.value:  # as it is taken, http is meant
        return without_login(f"http://{setting.value}").removeprefix("http://")
    return without_login(setting.value)
