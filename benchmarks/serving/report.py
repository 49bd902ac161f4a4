"""Results as JSON, and from them the tables and the plot of docs/benchmarks.md."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.serving.measure import CLIENTS, Json
from benchmarks.serving.plot import Bars, svg
from benchmarks.serving.workload import BY_NAME, GROWING, STATEMENTS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "serving.json"
PAGE = ROOT / "docs" / "benchmarks.md"
PLOT = ROOT / "docs" / "serving.svg"
BEGIN, END = "<!-- serving: written by benchmarks/serving -->", "<!-- serving: end -->"
MODES = ("append", "upsert")
SYSTEMS = ("product", "pinot", "questdb", "chdb", "bare")
_NONE = "-"
# How many times as fast as Pinot: the aim, and the floor.
_SCAN, _SMALL, _MIXED = (5, 3), (2, 1), (4, 3)
_BARE_MAX = 1.5


def machine() -> Json:
    """What it was measured on."""
    cpu = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": cpu or platform.machine(),
        "processors": os.cpu_count(),
        "memory_gib": round(memory),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def commit() -> str:
    """What is measured, as git names it."""
    words = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def save(path: Path, parts: Mapping[str, tuple[Json, Json]], versions: Mapping[str, str], commit: str) -> None:
    """Writes the parts that were measured (sizes, results by system); what stands there of others stays."""
    known = load(path) if path.exists() else {}
    versions = {name: versions[name] for name in SYSTEMS if name in versions}
    about = {"at": time.strftime("%Y-%m-%d"), "machine": machine(), "versions": versions, "commit": commit}
    for part, (sizes, systems) in parts.items():
        known[part] = {**about, "sizes": sizes, "systems": systems}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> Json:
    found: Json = json.loads(path.read_text(encoding="utf-8"))
    return found


def write_docs(found: Json) -> None:
    """Puts tables and plot into the documentation, between the two marks of its page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    plot = "" if "latency" not in found else f"![median latency of each statement]({PLOT.name})\n\n"
    PAGE.write_text(f"{before}{BEGIN}\n{plot}{markdown(found)}{END}{rest.split(END)[1]}", encoding="utf-8")
    if plot:
        PLOT.write_text(svg(list(_bars(found["latency"]))), encoding="utf-8")


def markdown(found: Json) -> str:
    """All tables."""
    writers = {
        "latency": _latency,
        "peers": _peers,
        "freshness": _freshness,
        "scenes": _scenes,
        "growth": _growth,
        "restart": _restart,
        "memory": _memory,
    }
    return "".join("\n".join(write(found[part])) + "\n\n" for part, write in writers.items() if part in found)


def _heading(title: str, part: Json, sizes: str) -> list[str]:
    on = part["machine"]
    where = f"{on['cpu']}, {on['processors']} processors, {on['memory_gib']} GiB, {on['system']}"
    versions = ", ".join(version for name, version in part["versions"].items() if name in part["systems"])
    return [
        f"### {title}",
        f"{versions}; commit {part['commit']}, Python {on['python']}; {where}; {part['at']}.",
        sizes,
        "",
    ]


def _latency(part: Json) -> list[str]:
    sizes, systems = part["sizes"], part["systems"]
    text = (
        f"{sizes['rows']:,} events; one client, medians of {sizes['rounds']} rounds after {sizes['warm_rounds']}; "
        f"{CLIENTS} clients for {sizes['mixed_seconds']:g} s."
    )
    lines = _heading("Latency and throughput", part, text)
    for mode in MODES:
        lines += [
            f"{mode.capitalize()} ({_where(systems, mode)}):",
            "",
            _latency_names(part),
            "|---|---|---|---|---|---|---|",
        ]
        lines += [_latency_row(systems, mode, name) for name in BY_NAME]
        lines += [_mixed_row(systems, mode), ""]
    return [*lines, _wrong_answers(part)]


def _wrong_answers(part: Json) -> str:
    wrong = {name: _sum_wrong(result) for name, result in part["systems"].items()}
    said = ", ".join(f"{name} {count:,} of {answers:,}" for name, (count, answers) in wrong.items())
    return f"Wrong answers: {said}."


def _peers(part: Json) -> list[str]:
    """The append table by the product and every other system; first the cases in which another one is faster."""
    sizes, systems = part["sizes"], part["systems"]
    text = (
        f"{sizes['rows']:,} events, append table; one client, medians of {sizes['rounds']} rounds after "
        f"{sizes['warm_rounds']}; {CLIENTS} clients for {sizes['mixed_seconds']:g} s."
    )
    lines = _heading("Other engines", part, text)
    lines += ["Lost cases, the worst first:", "", *_lost_table(part), ""]
    names = [part["versions"][name] for name in systems]
    lines += [f"| ms | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for case, values in _cases(systems).items():
        cells = (_ms(value) if case in BY_NAME else _count(value) for value in values.values())
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return [*lines, "", _wrong_answers(part)]


def _lost_table(part: Json) -> list[str]:
    lost = lost_cases(part)
    if "product" not in part["systems"]:
        return ["the product was not measured."]
    if not lost:
        return ["none."]
    lines = ["| case | product | faster | its figure | times as fast |", "|---|---|---|---|---|"]
    for times, case, name, ours, theirs in lost:
        shown = _ms if case in BY_NAME else _count
        version = part["versions"][name]
        lines.append(f"| {case} | {shown(ours)} | {version} | {shown(theirs)} | {times:.2f} |")
    return lines


def lost_cases(part: Json) -> list[tuple[float, str, str, float, float]]:
    """Cases in which another system is faster: how many times, the case, the system, our figure and its figure.

    The worst is first.
    """
    lost = []
    for case, values in _cases(part["systems"]).items():
        ours = values.get("product")
        for name, theirs in values.items():
            if ours and theirs and name != "product":
                times = ours / theirs if case in BY_NAME else theirs / ours
                if times > 1:
                    lost.append((times, case, name, ours, theirs))
    return sorted(lost, reverse=True)


def _cases(systems: Json) -> dict[str, dict[str, float]]:
    """By case, the figure of each system: milliseconds, and queries a second of the mixed load."""
    cases = {
        case: {name: float(found["append"]["one"]["ms"][case]["median"]) for name, found in systems.items()}
        for case in BY_NAME
    }
    mixed = {name: float(found["append"]["mixed"]["qps"]) for name, found in systems.items()}
    return {**cases, f"all eight, {CLIENTS} clients, queries a second": mixed}


def _where(systems: Json, mode: str) -> str:
    moved = {"product": "product", "pinot": "Pinot"}
    return "; ".join(f"{moved[name]}: {systems[name][mode]['moved']}" for name in moved if name in systems)


def _latency_names(part: Json) -> str:
    versions = part["versions"]
    peer, bare = versions.get("pinot", "Pinot"), versions.get("bare", "DuckDB")
    return f"| ms | product | {peer} | times as fast | aim, floor | {bare}, bare | product / bare |"


def _latency_row(systems: Json, mode: str, name: str) -> str:
    aim, floor = _SCAN if BY_NAME[name].scan else _SMALL
    ours, peer, bare = (_median(systems, system, mode, name) for system in ("product", "pinot", "bare"))
    faster = None if ours is None or peer is None else peer / ours
    over = None if ours is None or bare is None else ours / bare
    return (
        f"| {name} | {_ms(ours)} | {_ms(peer)} | {_ratio(faster)} | {_against(faster, aim, floor)} | {_ms(bare)} "
        f"| {_ratio(over)}{_over(over)} |"
    )


def _mixed_row(systems: Json, mode: str) -> str:
    ours, peer, bare = (
        systems[system][mode]["mixed"]["qps"] if system in systems else None for system in ("product", "pinot", "bare")
    )
    faster = None if not ours or not peer else ours / peer
    over = None if not ours or not bare else bare / ours
    cells = (
        _count(ours),
        _count(peer),
        _ratio(faster),
        _against(faster, *_MIXED),
        _count(bare),
        _ratio(over) + _over(over),
    )
    return f"| all eight, {CLIENTS} clients, queries a second | {' | '.join(cells)} |"


def _median(systems: Json, system: str, mode: str, name: str) -> float | None:
    return float(systems[system][mode]["one"]["ms"][name]["median"]) if system in systems else None


def _sum_wrong(result: Json) -> tuple[int, int]:
    asked = [result[mode][kind] for mode in MODES if mode in result for kind in ("one", "mixed")]
    return sum(one["wrong"] for one in asked), sum(one["answers"] for one in asked)


def _freshness(part: Json) -> list[str]:
    sizes, systems = part["sizes"], part["systems"]
    text = f"{sizes['samples']:,} rows, one after the other, while others arrive."
    lines = _heading("Freshness: acknowledged by Kafka to visible by HTTP", part, text)
    of_tables = [
        (f"{part['versions'][name]}, {mode}", found) for name, modes in systems.items() for mode, found in modes.items()
    ]
    lines += [
        "| ms | median | p90 | p99 | never seen | seen twice | events arriving a second |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in of_tables:
        ms = found["ms"] or dict.fromkeys(("median", "p90", "p99"))
        times = " | ".join(_ms(ms[key]) for key in ("median", "p90", "p99"))
        counts = f"{found['never']} | {found['twice']} | {found['arriving_per_s']:,}"
        lines.append(f"| {name} | {times} | {counts} |")
    lines += [
        "",
        f"While {sizes['flood']:,} events a second are sent for {sizes['flood_seconds']:g} s, a row each half second:",
        "",
        "| ms | arrived a second | median | worst | never seen within 20 s | all rows counted after the last one, s |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in of_tables:
        flood = found["sustained"]
        times = f"{_ms(flood['ms'].get('median'))} | {_ms(flood['worst_ms'])}"
        after = "not within 120" if flood["all_seen_s"] is None else flood["all_seen_s"]
        after = "keys only" if flood.get("upsert") else after
        lines.append(f"| {name} | {flood['arriving_per_s']:,} | {times} | {flood['never']} | {after} |")
    return lines


def _scenes(part: Json) -> list[str]:
    lines = _heading(
        "Right answers while rows arrive and buckets move",
        part,
        f"{part['sizes']['seconds']:g} s of events, 2 readers of each table, a move asked for each second.",
    )
    lines += [
        "| | table | answers | inconsistent in themselves | fewer than before | readers that saw too many | failed "
        "| rows moved meanwhile |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in part["systems"].items():
        for mode in MODES:
            seen = found["moving"][mode]
            cells = " | ".join(f"{seen[key]:,}" for key in ("answers", "inconsistent", "fewer", "more", "failed"))
            moved = f"{found['moving']['moved']:,}" if mode == "append" else ""
            lines.append(f"| {part['versions'][name]} | {mode} | {cells} | {moved} |")
    lines += [
        "",
        "Rows that arrive after their bucket has moved:",
        "",
        "| | late rows | seen | seen after a further move |",
    ]
    lines += ["|---|---|---|---|"]
    for name, found in part["systems"].items():
        late = found["late"]
        seen = (f"{late['seen']:,}", f"{late['seen_later']:,}") if "seen" in late else (late["note"], _NONE)
        lines.append(f"| {part['versions'][name]} | {late['rows']:,} | {seen[0]} | {seen[1]} |")
    return lines


def _growth(part: Json) -> list[str]:
    sizes, systems = part["sizes"], part["systems"]
    text = f"Append, medians of {sizes['rounds']} rounds after {sizes['warm_rounds']}, ms; half a minute after loading."
    lines = _heading("Growth", part, text)
    names = [part["versions"][system] for system in systems]
    lines += [f"| statement | rows | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for statement in GROWING:
        for rows in sizes["rows"]:
            found = [systems[name].get(str(rows)) for name in systems]
            cells = [_ms(one["one"]["ms"][statement.name]["median"]) if one else _NONE for one in found]
            lines.append(f"| {statement.name} | {rows:,} | {' | '.join(cells)} |")
    for rows in sizes["rows"]:
        found = [systems[name].get(str(rows)) for name in systems]
        cells = [f"{one['warm_s']:.0f} s" if one else _NONE for one in found]
        lines.append(f"| from the first statement until memory answers | {rows:,} | {' | '.join(cells)} |")
    return lines


def _restart(part: Json) -> list[str]:
    rows = part["sizes"]["rows"]
    text = f"An upsert table of {rows:,} events; count and sum of its rows are asked for until they are right."
    lines = _heading("From the start of a server to its first right answer", part, text)
    lines += [
        "| | s | wrong answers before | failed | memory of the table, bytes a key | of that its index |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in part["systems"].items():
        cells = (found["first_s"], found["wrong"], found["failed"])
        taken = [_count(found[one] / found["keys"] if one in found else None) for one in ("bytes", "index_bytes")]
        lines.append(f"| {part['versions'][name]} | {' | '.join(map(str, cells))} | {' | '.join(taken)} |")
    return lines


def _memory(part: Json) -> list[str]:
    """The product's alone."""
    (found,) = part["systems"].values()
    mib = {name: found[name] / 2**20 for name in ("taken", "bound", "at_start", "peak")}
    text = (
        f"The append and the upsert table of {part['sizes']['rows']:,} events take {mib['taken']:,.0f} MiB; the server "
        f"may keep {mib['bound']:,.0f}. Its process that answers had {mib['at_start']:,.0f} MiB at its start, and "
        f"{mib['peak']:,.0f} at most. Medians, ms."
    )
    lines = _heading("A cache with a tenth of its tables' memory", part, text)
    names = [f"{name}, from its files" if one.get("from") == "files" else name for name, one in found["one"].items()]
    lines += [f"| statement | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for statement in STATEMENTS:
        cells = [_ms(one["ms"][statement.name]["median"]) for one in found["one"].values()]
        lines.append(f"| {statement.name} | {' | '.join(cells)} |")
    wrong, answers = (sum(one[what] for one in found["one"].values()) for what in ("wrong", "answers"))
    return [*lines, "", f"Wrong answers: {wrong:,} of {answers:,}."]


def _bars(part: Json) -> Iterator[Bars]:
    names = [(name, part["versions"][name]) for name in ("product", "pinot", "bare") if name in part["systems"]]
    for mode in MODES:
        values = {
            version: [part["systems"][name][mode]["one"]["ms"][one.name]["median"] for one in STATEMENTS]
            for name, version in names
        }
        yield Bars(f"{mode}, {part['sizes']['rows']:,} events: median ms, log scale", [*BY_NAME], values)


def _ms(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _count(value: float | None) -> str:
    return _NONE if value is None else f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    return _NONE if value is None else f"{value:.1f}"


def _against(ratio: float | None, aim: float, floor: float) -> str:
    said = "" if ratio is None else ": aim met" if ratio >= aim else ": floor met" if ratio >= floor else ": **below**"
    return f"{aim}, {floor}{said}"


def _over(ratio: float | None) -> str:
    return "" if ratio is None or ratio <= _BARE_MAX else f" (**over {_BARE_MAX}**)"
