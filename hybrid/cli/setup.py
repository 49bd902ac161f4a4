"""`hybrid setup`: check Java and fetch the jars."""

from __future__ import annotations

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli


@click.command(cls=HybridCommand)
@click.option("--verify", is_flag=True, help="Hash every jar again.")
@pass_cli
def setup(cli: Cli, verify: bool) -> None:
    """Check Java, fetch the jars that Spark and Kafka need, and prepare Spark's start, once.

    Afterwards no network is needed.
    """
    from hybrid.cli.dispatch import refuse_server
    from hybrid.jvm.jars import ensure_jars, jar_folder
    from hybrid.jvm.java import find_java
    from hybrid.lake.class_data_archive import ensure_archive

    refuse_server(cli, "hybrid setup", "Run it on the server's machine.", flag_only=True)
    java = find_java(starts_it=True)
    jars = ensure_jars(cli.progress, verify=verify)
    archive = ensure_archive(java, jars.spark, cli.progress)
    cli.emit(
        {
            "java": str(java.executable),
            "java_version": java.version,
            "jars": len(jars.spark) + len(jars.kafka),
            "folder": str(jar_folder()),
            "verified": verify,
            "archive": str(archive) if archive is not None else None,
        }
    )
