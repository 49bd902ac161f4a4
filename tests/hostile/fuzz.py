"""Coverage-guided fuzzing of all targets: `python -m tests.hostile.fuzz --seconds 600`.

Each target gets an equal share of the time, in a process of its own. Inputs that reach new code are kept in
`.fuzz/TARGET` and are where the next run starts. A fault is printed as the line to add to `corpus/TARGET.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

KEPT = Path(".fuzz")


def main() -> int:
    """Runs all targets, or one in this process; 1 when a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--target")
    chosen = parser.parse_args()
    if chosen.target:
        fuzz(chosen.target, chosen.seconds)
        return 0
    from tests.hostile.targets import TARGETS

    faults = [name for name in TARGETS if not _passes(name, max(1, chosen.seconds // len(TARGETS)))]
    print(f"{len(TARGETS) - len(faults)} targets without a fault; faults in: {', '.join(faults) or 'none'}")
    return bool(faults)


def fuzz(name: str, seconds: int) -> None:
    """Fuzzes one target; ends the process."""
    import atheris

    with atheris.instrument_imports(include=["hybrid"]):
        from tests.hostile.targets import TARGETS, corpus

    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(corpus(name)):
        (folder / f"corpus-{number}").write_bytes(case)
    words = [sys.argv[0], f"-max_total_time={seconds}", "-max_len=4000", "-timeout=20", "-rss_limit_mb=2500"]
    atheris.Setup([*words, f"-artifact_prefix={folder}/fault-", "-print_final_stats=1", str(folder)], TARGETS[name])
    atheris.Fuzz()


def _passes(name: str, seconds: int) -> bool:
    print(f"== {name}: {seconds} s", flush=True)
    command = [sys.executable, "-m", "tests.hostile.fuzz", "--target", name, "--seconds", str(seconds)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = ended.stdout.decode(errors="replace").splitlines()
    print("\n".join(line for line in said if line.startswith("stat::number_of_executed_units")), flush=True)
    for fault in (KEPT / name).glob("fault-*"):
        print(f"add to corpus/{name}.jsonl: {json.dumps(fault.read_bytes().decode('utf-8', 'surrogateescape'))}")
    if ended.returncode != 0:
        print("\n".join(said[-40:]))
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
