"""The registrations recipe: an incremental load that has run for a while, then three years of history beside it."""

import contextlib
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hybrid.cli.main import run
from tests.recipes.conftest import ROOT, RecipeHome
from tests.recipes.registrations import registration, write_day, write_year
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

RECIPE = ROOT / "data" / "registrations" / "flows.py"
TABLE = "registration_events_raw"
LIVE = f"{TABLE}_incremental"
BACKFILLS = [f"{TABLE}_backfill_{year}" for year in (2024, 2023, 2022)]
BY_YEAR = f'select substr("timestamp", 0, 4) as y, count(*) from {TABLE} group by 1 order by 1'
# `tests/flow/declared/test_declaring.py` holds that both modules declare the same: this file uses each.
LAKEFLOW = """
import dlt
from pyspark import pipelines as dp

root = spark.conf.get("registration_events_source_root_path")
begin_year = spark.conf.get("begin_year")

@dlt.table(name="registration_events_raw", comment="Raw registration events")
def ingest():
    return (
        spark.readStream.format("cloudFiles")
        .option("cloudFiles.format", "json")
        .option("cloudFiles.inferColumnTypes", "true")
        .option("cloudFiles.maxFilesPerTrigger", 100)
        .option("cloudFiles.schemaEvolutionMode", "addNewColumns")
        .option("modifiedAfter", "2024-12-31T23:59:59.999+00:00")
        .load(f"{root}/*/*/*")
        .where(f"year(timestamp) >= {begin_year}")
    )

def setup_backfill_flow(year):
    @dp.append_flow(target="registration_events_raw", once=True, name=f"registration_events_raw_backfill_{year}")
    def backfill():
        return spark.read.format("json").option("inferSchema", "true").load(f"{root}/year={year}/*/*")

for year in spark.conf.get("backfill_years").split(","):
    setup_backfill_flow(year)
"""
# Two years are enough to see that each of several once-flows is declared.
SPELLED = (2024, 2023)
SQL = """
CREATE OR REFRESH STREAMING LIVE TABLE registration_events_raw COMMENT 'Raw registration events' AS
SELECT * FROM STREAM read_files(
  "${registration_events_source_root_path}/*/*/*",
  format => "json",
  inferColumnTypes => true,
  maxFilesPerTrigger => 100,
  schemaEvolutionMode => "addNewColumns",
  modifiedAfter => "2024-12-31T23:59:59.999+00:00"
) WHERE year(timestamp) >= ${begin_year};
""" + "".join(
    f"""
CREATE FLOW registration_events_raw_backfill_{year} AS INSERT INTO ONCE registration_events_raw BY NAME
SELECT * FROM read_files("${{registration_events_source_root_path}}/year={year}/*/*", format => "json");
"""
    for year in SPELLED
)


class Registrations(RecipeHome):
    """The recipe's files and its table."""

    def __init__(self, folder: Path, capsys) -> None:
        super().__init__(folder / "home", capsys)
        self.root = folder / "files"

    def flow(self, file: Path = RECIPE, *more: str, code: int = 0, years: str = "2024,2023,2022"):
        """Runs a flow file; its reports by the flows' names."""
        found = self.run("flow", "run", str(file), *self.variables(years), *more, code=code)
        return {report["flow"]: report for report in found}

    def variables(self, years: str = "2024,2023,2022") -> list[str]:
        values = {"registration_events_source_root_path": self.root, "begin_year": 2025, "backfill_years": years}
        return [word for name, value in values.items() for word in ("--var", f"{name}={value}")]

    def by_year(self, table: str = TABLE) -> dict[str, int]:
        rows = self.rows(BY_YEAR.replace(TABLE, table))
        return {row["y"]: next(value for name, value in row.items() if name != "y") for row in rows}

    def listed(self) -> dict[str, tuple[str, int, int]]:
        return {one["flow"]: (one["state"], one["rows"], one["refreshes"]) for one in self.run("flow", "list")}

    def alone(self) -> Path:
        """The recipe as it was for months: without its once-flows."""
        text = RECIPE.read_text().partition("def setup_backfill_flow")[0]
        file = self.home.parent / "flows.py"
        file.write_text(text)
        return file


@pytest.fixture
def recipe(tmp_path, capsys):
    return Registrations(tmp_path, capsys)


def test_the_story(recipe):
    expected = {str(year): write_year(recipe.root, year) for year in (2025, 2022, 2023)}
    expected["2024"] = write_year(recipe.root, 2024, source="web")
    write_day(recipe.root, datetime(2023, 9, 9, tzinfo=UTC), ["{half a line", '{"registration_id": 1, "user_id": 7}'])
    late = write_day(recipe.root, datetime(2025, 6, 1, tzinfo=UTC), [registration(1, datetime(2025, 6, 1, tzinfo=UTC))])
    os.utime(late, (1_600_000_000, 1_600_000_000))

    first = recipe.flow(recipe.alone())
    assert first[LIVE]["sentence"] == "Read 20 rows of 4 files."
    assert "--var backfill_years" not in recipe.messages, "the file reads it"
    assert recipe.by_year() == {"2025": 20}, "files older than modifiedAfter are left out"

    second = recipe.flow()
    assert second[LIVE]["state"] == "NOTHING" and "4 files with 20 rows were read" in second[LIVE]["sentence"]
    assert [second[name]["rows"] for name in BACKFILLS] == [20, 21, 20]
    assert second[BACKFILLS[1]]["rejected"] == 1
    assert {year: rows for year, rows in recipe.by_year().items() if year in expected} == expected
    assert recipe.rows(f"select count(*) from {TABLE}") == [{"count(*)": 81}]
    (bad,) = recipe.run("rejected", "list", TABLE)
    assert bad["value"] == "{half a line" and bad["reason"].endswith("year=2023/month=09/day=09/part-0.json")
    assert recipe.rows(f"select source, count(*) from {TABLE} group by 1 order by 2")[0] == {
        "source": "web",
        "count(*)": 20,
    }
    overlapping = sorted((one["started"], one["ended"]) for one in runs_of(recipe) if one["flow"] in BACKFILLS)
    assert overlapping[1][0] < overlapping[0][1], "they ran in parallel"

    third = recipe.flow()
    assert {report["state"] for report in third.values()} == {"NOTHING"}
    assert f"run it again with --full-refresh {BACKFILLS[0]}" in third[BACKFILLS[0]]["sentence"]
    assert recipe.listed() == {LIVE: ("COMPLETED", 20, 0), **{
        name: ("IDLE", rows, 0) for name, rows in zip(BACKFILLS, (20, 21, 20), strict=True)}}  # fmt: skip

    day = datetime(2025, 7, 7, tzinfo=UTC)
    write_day(recipe.root, day, [registration(9, day, source="app", score=1.5)])
    assert recipe.flow()[LIVE]["sentence"] == "Read 1 row of 1 file."
    assert recipe.rows(f"select source, score from {TABLE} where registration_id = 9") == [
        {"source": "app", "score": 1.5}
    ]
    moved = recipe.run("move", TABLE)
    assert moved["rows_read"] == 21 and recipe.rows(f"select count(*) from {TABLE}") == [{"count(*)": 82}]

    write_day(recipe.root, datetime(2022, 9, 9, tzinfo=UTC), [registration(5, datetime(2022, 9, 9, tzinfo=UTC))])
    assert run(["--home", str(recipe.home), "flow", "run", str(RECIPE), *recipe.variables(), "--full-refresh"]) == 2
    one = recipe.flow(RECIPE, "--full-refresh", BACKFILLS[2], "--yes")
    assert (one[BACKFILLS[2]]["rows"], one[LIVE]["state"], one[BACKFILLS[0]]["state"]) == (21, "NOTHING", "NOTHING")
    every = recipe.flow(RECIPE, "--full-refresh", "--yes")
    assert {name: every[name]["rows"] for name in (LIVE, *BACKFILLS)} == dict(
        zip((LIVE, *BACKFILLS), (21, 20, 21, 21), strict=True)
    )
    assert recipe.rows(f"select count(*) from {TABLE}") == [{"count(*)": 83}]
    assert len(recipe.run("rejected", "list", TABLE)) == 1
    assert {name: state[2] for name, state in recipe.listed().items()} == dict(
        zip((LIVE, *BACKFILLS), (1, 1, 1, 2), strict=True)
    )
    assert recipe.run("move", TABLE)["rows_read"] == 21
    assert recipe.rows(f"select count(*) from {TABLE}") == [{"count(*)": 83}]

    assert recipe.run("status")[0]["rejected"] == 1
    assert [one for one in recipe.run("doctor") if one["severity"] == "error"] == []


def runs_of(recipe):
    from hybrid.catalog.catalog import Catalog

    catalog = Catalog.of_home(recipe.home)
    with contextlib.closing(catalog):
        found = catalog.runs.list(TABLE, kind="flow")
        return [
            {"flow": one.arguments["flow"], "started": one.started_at, "ended": one.finished_at}
            for one in found
            if one.state == "DONE"
        ]


def test_every_spelling_gives_the_same_table(recipe, tmp_path):
    expected = {str(year): write_year(recipe.root, year) for year in (2025, 2023)}
    expected["2024"] = write_year(recipe.root, 2024, source="web")
    columns = 'registration_id, user_id, event, "timestamp", source'
    found = []
    for name, text in {"ours.py": RECIPE.read_text(), "lakeflow.py": LAKEFLOW, "flows.sql": SQL}.items():
        (tmp_path / name).write_text(text)
        recipe.home = tmp_path / f"home-{name}"
        variables = recipe.variables(",".join(map(str, SPELLED)))
        recipe.run("flow", "run", str(tmp_path / name), *variables[: 4 if name == "flows.sql" else None])
        rows = recipe.rows(f"select {columns} from {TABLE} order by registration_id limit 1000")
        assert Counter(row["timestamp"][:4] for row in rows) == expected, name
        found.append(rows)
    assert all(rows == found[0] for rows in found) and len(found[0]) == 60


def damaged(recipe, folder, days=2):
    """Two years with a line in each that is no row; the command that loads them, a file a batch."""
    write_year(recipe.root, 2025, days=days)
    write_year(recipe.root, 2024, days=days, source="web")
    day = datetime(2025, 9, 9, tzinfo=UTC)
    write_day(recipe.root, day, ["{half", registration(3, day)])
    write_day(recipe.root, datetime(2024, 9, 9, tzinfo=UTC), ["{half too"])
    return ["flow", "run", str(_one_by_one(folder)), *recipe.variables("2024")]


# Of three commits of files, one after the other; of the once-flow's, whose first keeps rejected rows.
LIVE_DEATHS = ["create.commit.after", "flow.commit.before", *["flow.commit.after"] * 3]
ONCE_DEATHS = ["flow.commit.before", "flow.commit.after", "flow.commit.after@2"]


def test_a_death_between_any_two_commits(recipe, dies, tmp_path):
    """Each death comes on top of the one before: what a process did twice, or took for done, shows in the end."""
    words = damaged(recipe, tmp_path)
    alone = _alone(tmp_path)
    for file, points, rows in ((alone, LIVE_DEATHS, {"2025": 11}), (words[2], ONCE_DEATHS, {"2024": 10, "2025": 11})):
        command, counts = [*words[:2], str(file), *words[3:]], list[int]()
        for point in points:
            with dies(point):
                run(["--home", str(recipe.home), *command])
            if point != "create.commit.after":
                counts.append(sum(recipe.by_year().values()))
        assert counts == sorted(counts) and counts[0] < counts[-1] == sum(rows.values()), "the last one had committed"
        recipe.run(*command)
        assert recipe.by_year() == rows
    check(recipe, {"2024": 10, "2025": 11})


def test_a_death_while_refreshing_and_evolving(recipe, dies, tmp_path):
    words, rows = damaged(recipe, tmp_path, days=1), {"2024": 5, "2025": 6}
    recipe.run(*words)
    for point in ("refresh.commit.before", "refresh.commit.after", "refresh.commit.after@2", "flow.commit.after"):
        with dies(point):
            run(["--home", str(recipe.home), *words, "--full-refresh", "--yes"])
        recipe.run(*words)
        check(recipe, rows)
    made: list[Path] = []
    for number, point in enumerate(("evolve.commit.before", "evolve.commit.after", "evolve.commit.after@2")):
        day = datetime(2025, 10, number + 1, tzinfo=UTC)
        file = write_day(recipe.root, day, [registration(7, day, **{f"more_{number}": 1.5})])
        with dies(point):
            run(["--home", str(recipe.home), *words])
        assert recipe.by_year()["2025"] == 6 + number
        recipe.run(*words)
        assert recipe.by_year() == {"2024": 5, "2025": 7 + number}
        assert recipe.rows(f"select count(*), sum(more_{number}) from {TABLE}")[0][f"sum(more_{number})"] == 1.5
        made.append(file)
    for file in made:
        file.unlink()
    recipe.run(*words, "--full-refresh", LIVE, "--yes")
    check(recipe, rows)


def _one_by_one(folder: Path) -> Path:
    file = folder / "flows.py"
    file.write_text(RECIPE.read_text().replace('"maxFilesPerTrigger", 100', '"maxFilesPerTrigger", 1'))
    return file


def _alone(folder: Path) -> Path:
    """The file of `_one_by_one` without its once-flows."""
    file = folder / "alone.py"
    file.write_text((folder / "flows.py").read_text().partition("def setup_backfill_flow")[0])
    return file


def check(recipe, rows):
    assert recipe.by_year() == rows
    values = sorted(one["value"] for one in recipe.run("rejected", "list", TABLE))
    assert values == ["{half", "{half too"]


def test_kill_9_in_the_middle_of_a_commit(recipe, tmp_path, workbench):
    """Of the second batch of files, then of a once-flow, whose files are there and their entry of the log is not."""
    write_year(recipe.root, 2025, days=2)
    write_year(recipe.root, 2024, days=2)
    words = ["flow", "run", str(_one_by_one(tmp_path)), *recipe.variables("2024")]
    alone = ["flow", "run", str(_alone(tmp_path)), *recipe.variables("2024")]
    worker = "tests.recipes.killed_command"
    die_at("flow.commit.inside@2", workbench, worker, str(recipe.home), *alone)
    assert recipe.by_year() == {"2025": 5}
    recipe.run(*alone)
    assert recipe.by_year() == {"2025": 10}
    die_at("flow.commit.inside", workbench, worker, str(recipe.home), *words)
    assert recipe.by_year() == {"2025": 10}
    recipe.run(*words)
    assert recipe.by_year() == {"2024": 10, "2025": 10}
    again = recipe.flow(tmp_path / "flows.py", years="2024")
    assert {report["state"] for report in again.values()} == {"NOTHING"}
    assert recipe.by_year() == {"2024": 10, "2025": 10}
