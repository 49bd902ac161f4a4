"""`hybrid kafka`: the local broker, its topics, and producing to any broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import click

from hybrid.cli.cells import View
from hybrid.cli.command import FINDINGS, Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import confirm, refuse_server, require_home
from hybrid.progress import counted

_TOPICS = View(("name", "partitions", "id"))
_kafka_option = click.option("--kafka", "brokers", metavar="ADDR", help="Brokers, host:port (default: the local one).")


@click.group(cls=HybridGroup, alone="status")
def kafka() -> None:
    """Manage the local Kafka broker and topics, and produce messages."""


@kafka.command()
@click.option("--port", type=click.IntRange(0, 65535), help="0 takes a free one. Default: that of before, else 9092.")
@pass_cli
def start(cli: Cli, port: int | None) -> None:
    """Start the local broker, and wait until it answers."""
    from hybrid.jvm.broker import LocalBroker

    _check_local(cli)
    LocalBroker(cli.home).start(port, cli.progress)
    _emit_status(cli)


@kafka.command()
@pass_cli
def stop(cli: Cli) -> None:
    """Stop the local broker; its data stays."""
    from hybrid.jvm.broker import LocalBroker

    _check_local(cli)
    require_home(cli)
    was_running = LocalBroker(cli.home).stop()
    cli.say("Kafka stopped" if was_running else "Kafka was not running")
    if cli.is_machine_read:
        cli.emit({"state": "stopped", "was_running": was_running})


@kafka.command()
@pass_cli
def status(cli: Cli) -> int:
    """Show whether the local broker runs and answers (exit code 3 when not)."""
    _check_local(cli)
    if not cli.home.is_dir():
        cli.say(f"The home {cli.home} does not exist.")
    return 0 if _emit_status(cli) == "running" else FINDINGS


@kafka.group()
def topic() -> None:
    """List, create and delete topics."""


@topic.command("list")
@_kafka_option
@pass_cli
def list_(cli: Cli, brokers: str | None) -> None:
    """List topics, without Kafka's own."""
    from hybrid.kafka.topics import list_topics

    rows = [
        {"name": entry.name, "partitions": len(entry.partitions), "id": entry.id}
        for entry in list_topics(_brokers(cli, brokers))
    ]
    cli.emit(rows, _TOPICS, empty="There are no topics yet. Create one with: hybrid kafka topic create NAME")


@topic.command()
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1, 10_000), default=1, show_default=True)
@_kafka_option
@pass_cli
def create(cli: Cli, name: str, partitions: int, brokers: str | None) -> None:
    """Create a topic; nothing to do when it exists with as many partitions."""
    from hybrid.kafka.topics import create_topic

    entry, is_new = create_topic(_brokers(cli, brokers), name, partitions)
    cli.say(f"Topic '{name}' created" if is_new else f"Topic '{name}' exists already")
    cli.emit({"name": entry.name, "partitions": len(entry.partitions), "id": entry.id})


@topic.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Delete it without asking.")
@_kafka_option
@pass_cli
def delete(cli: Cli, name: str, yes: bool, brokers: str | None) -> None:
    """Delete a topic and its messages. What tables have read of it stays."""
    from hybrid.kafka.topics import deletable_topic, delete_topic

    address = _brokers(cli, brokers)
    parts = counted(len(deletable_topic(address, name).partitions), "partition")
    confirm(f"Delete topic '{name}' ({parts}) at {address} with all messages, those that no table has read too?", yes)
    entry = delete_topic(address, name)
    cli.say(f"Topic '{name}' deleted")
    if cli.is_machine_read:
        cli.emit({"name": entry.name, "partitions": len(entry.partitions), "id": entry.id})


@kafka.command()
@click.argument("topic")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--partition", type=click.IntRange(0), help="Produce to this partition.")
@_kafka_option
@pass_cli
def produce(cli: Cli, topic: str, file: IO[bytes], partition: int | None, brokers: str | None) -> None:
    """Produce each line of FILE (or of standard input) as one message; empty lines are skipped."""
    from hybrid.kafka import topics

    count = topics.produce(_brokers(cli, brokers), topic, _lines(file), cli.progress, partition=partition)
    cli.say(f"{count} {'message' if count == 1 else 'messages'} produced to topic '{topic}'")
    if cli.is_machine_read:
        cli.emit({"topic": topic, "produced": count})


def _check_local(cli: Cli) -> None:
    refuse_server(cli, "hybrid kafka", "Leave --server out: the broker runs on this machine.", flag_only=True)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    return (line for raw in file if (line := raw.rstrip(b"\r\n")).strip())


def _brokers(cli: Cli, given: str | None) -> str:
    """Brokers: the flag, else the setting, else the local broker: see `LocalBroker.address_to_ask`."""
    from hybrid.config.broker_list import plain_brokers
    from hybrid.jvm.broker import LocalBroker

    hint = (
        "Leave --server out, and name the brokers: hybrid kafka ... --kafka HOST:PORT. Topics are asked of Kafka, from "
        "this machine."
    )
    refuse_server(cli, "hybrid kafka", hint, flag_only=True)
    if given is not None:
        return plain_brokers(given, "--kafka")
    if cli.settings.kafka:
        return plain_brokers(cli.settings.kafka, "the setting 'kafka'")
    return LocalBroker(cli.home).address_to_ask()


def _emit_status(cli: Cli) -> str:
    from hybrid.jvm.broker import LocalBroker

    now = LocalBroker(cli.home).status()
    cli.emit({"state": now.state, "address": now.address, "pid": now.pid, "log": str(now.log)})
    return now.state
