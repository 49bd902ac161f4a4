"""Play a recipe end to end in its own home and with its own broker, printing every command and its output."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hybrid.config.setting_keys import KEYS
from hybrid.demo.recipes import LATER_EVENT, LATER_EVENTS, RECIPES, RecipeStep
from hybrid.errors import MachineError
from hybrid.jvm.broker import LocalBroker
from hybrid.progress import Progress

# Settings that name something beside the demo's home and broker: a cluster of Kafka or Spark, a server, a store.
_ELSEWHERE = (
    "kafka", "server", "token", "catalog", "warehouse", "take_over_after_s", "pinning.", "spark.master",
    "spark.worker_files",
)  # fmt: skip


def play(recipe: str, home: Path, run: Callable[[Sequence[str]], None], progress: Progress) -> None:
    """Play `recipe` in the emptied folder `home`. `run` runs one command from its arguments.

    The broker is always stopped at the end. The home is kept for inspection. Variables that name servers and clusters
    do not count: the recipe would be played there.
    """
    with _without_variables():
        _play(recipe, home, run, progress)


@contextmanager
def _without_variables() -> Iterator[None]:
    names = [key.variable for key in KEYS if key.name.startswith(_ELSEWHERE)]
    taken = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)


def _play(recipe: str, home: Path, run: Callable[[Sequence[str]], None], progress: Progress) -> None:
    say = progress.say
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / LATER_EVENT).write_text(LATER_EVENTS.get(recipe, ""), encoding="utf-8")
    broker = LocalBroker(home)
    try:
        say("A local Kafka broker for this demo.")
        address = broker.start(0, progress)
        places = {"kafka": address, "home": str(home), **{name: str(_files(name)) for name in ("data", "job_specs")}}
        steps = RECIPES[recipe]
        for number, step in enumerate(steps, 1):
            _play_step(step, f"{number}/{len(steps)}", places, home, run, say)
    finally:
        broker.stop()
    say(f"\nDone. The broker is stopped. Look around: hybrid --home {home} status")


def _play_step(
    step: RecipeStep,
    place: str,
    places: dict[str, str],
    home: Path,
    run: Callable[[Sequence[str]], None],
    say: Callable[[str], None],
) -> None:
    command = [word.format(**places) for word in step.command]
    say(f"\n[{place}] {step.says}")
    say(f"$ hybrid {shlex.join(command)}")
    run(["--home", str(home), *command])


def _files(name: str) -> Path:
    """Folder of the recipes' files: at the top of a checkout, or inside the package of a wheel."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package.parent / name, package / "_recipes" / name):
        if candidate.is_dir():
            here = Path.cwd()
            return candidate.relative_to(here) if candidate.is_relative_to(here) else candidate
    raise MachineError(f"The recipes' folder '{name}' is neither in {package.parent} nor in {package / '_recipes'}.")
