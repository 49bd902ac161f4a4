from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.config.setting_keys import KEYS
from hybrid.config.settings import Settings, load_settings
from hybrid.errors import SpecError
from hybrid.schema.secrets import HIDDEN


def load(home: Path, toml: str = "", env: dict[str, str] | None = None, **flags: str | None) -> Settings:
    home.mkdir(parents=True, exist_ok=True)
    (home / "hybrid.toml").write_text(toml)
    return load_settings(home=home, flags=flags, environ=env or {})


def test_flag_then_environment_then_file_then_default(home: Path) -> None:
    toml = 'kafka = "file:1"\n[spark]\nmaster = "local[4]"\n'
    env = {"HYBRID_KAFKA": "env:1"}
    found = load(home, toml, env, kafka="flag:1")
    assert (found.kafka, found.spark_master, found.spark_driver_memory) == ("flag:1", "local[4]", "2g")
    assert load(home, toml, env, kafka=None).kafka == "env:1"
    assert load(home, toml).kafka == "file:1"
    sources = {one.name: one.source for one in load(home, toml, env).values}
    assert sources["kafka"] == "HYBRID_KAFKA"
    assert sources["spark.master"] == str(home / "hybrid.toml")
    assert sources["lock_timeout_s"] == "default"


def test_spark_section_is_passed_through(home: Path) -> None:
    toml = '[spark]\nsql.shuffle.partitions = 8\n"spark.ui.enabled" = true\ndriver_memory = "4g"\n'
    found = load(home, toml)
    assert found.spark == {"spark.sql.shuffle.partitions": "8", "spark.ui.enabled": "true"}
    assert found.spark_driver_memory == "4g"


@pytest.mark.parametrize(
    ("toml", "name"),
    [
        ('[spark]\nmaster = "local[4]"\nwarehouse = "s3://bucket/prefix"\n', "[spark] warehouse"),
        ("[pinning]\ncopies = 1\ntake_over_after_s = 15\n", "[pinning] take_over_after_s"),
        ('[spark]\ninput_folders = ["/data"]\n', "[spark] input_folders"),
    ],
)
def test_a_top_level_setting_below_a_table_is_refused(home: Path, toml: str, name: str) -> None:
    """Spark would take it as a key of its own: the tables were on the local disk only."""
    with pytest.raises(SpecError) as raised:
        load(home, toml)
    assert f"hybrid.toml: {name}: is a setting of the top level" in str(raised.value)
    assert "above the first [...]" in str(raised.value.hint)


def test_sparks_own_keys_may_begin_as_a_setting(home: Path) -> None:
    found = load(home, "[spark]\nkafka.consumer.cache.capacity = 8\n")
    assert (found.kafka, found.spark) == (None, {"spark.kafka.consumer.cache.capacity": "8"})


def test_lists_are_those_of_the_variables(home: Path) -> None:
    """A list would be Python's text otherwise."""
    found = load(home, 'input_folders = ["/data", "/in, x"]\ns3_buckets = ["a", "b"]\nkafka = ["a:9092", "b:9092"]\n')
    assert found.input_folders == (Path("/data"), Path("/in, x"))
    assert found.s3_buckets == {"a", "b"} and found.kafka == "a:9092,b:9092"
    with pytest.raises(SpecError, match="kafka: must be a text, or a list of texts"):
        load(home, "[kafka]\nbrokers = 'x'\n")


def test_unknown_key_is_a_warning_with_a_suggestion(home: Path) -> None:
    (warning,) = load(home, 'kafak = "x:1"').warnings
    assert "'kafak' is not a setting" in warning and "Did you mean 'kafka'?" in warning


@pytest.mark.parametrize("toml", ["kafka = ", "spark = 1"])
def test_a_broken_file_is_named(home: Path, toml: str) -> None:
    with pytest.raises(SpecError, match=r"hybrid\.toml"):
        load(home, toml)


def test_a_wrong_number_names_its_source(home: Path) -> None:
    with pytest.raises(SpecError, match="HYBRID_LOCK_TIMEOUT_S: lock_timeout_s: 'soon' is not a number"):
        load(home, env={"HYBRID_LOCK_TIMEOUT_S": "soon"})
    assert load(home, "lock_timeout_s = 5").lock_timeout_s == 5.0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("retention_share_max = 50", "retention_share_max: '50' is not within 0 and 1"),
        ("retention_share_max = -0.1", "'-0.1' is not within 0 and 1"),
        ("retention_share_max = nan", "'nan' is not within 0 and 1"),
        ("query_rows_max = 0", "query_rows_max: '0' is not 1 or more"),
        ("job_sql_rows_max = -1", "'-1' is not 1 or more"),
        ("cache_bytes = -1", "cache_bytes: '-1' is not 0 or more"),
        ("query_timeout_ms = 1.5", "'1.5' is not a whole number"),
    ],
)
def test_a_number_out_of_range_is_refused(home: Path, line: str, expected: str) -> None:
    """With a share of 50, taken for percent, a scheduled run would drop everything."""
    with pytest.raises(SpecError) as error:
        load(home, line)
    assert str(error.value).startswith(str(home / "hybrid.toml")) and expected in str(error.value)


def test_defaults_are_in_range() -> None:
    for key in KEYS:
        assert key.default is None or key.value(str(key.default)) == key.default, key.name


def test_a_home_that_is_named_is_asked_itself(home: Path) -> None:
    """HYBRID_SERVER is the server of another home: a trial of a restored one would be answered by it."""
    env = {"HYBRID_SERVER": "http://prod:9000", "HYBRID_KAFKA": "k:9092"}
    assert load(home, env=env).server is None and load(home, env=env).kafka == "k:9092"
    assert load(home, env={**env, "HYBRID_TOKEN": "t"}).token is None and load(home, env={"HYBRID_TOKEN": "t"}).token
    assert load(home, env=env, server="http://other:9000").server == "http://other:9000"
    assert load(home, 'server = "http://own:9000"', env).server == "http://own:9000"
    assert load_settings(environ={**env, "HYBRID_HOME": str(home)}).server == "http://prod:9000"


def test_home_is_searched_upward(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert load_settings(environ={}, cwd=below).home == below / ".hybrid"
    (tmp_path / ".hybrid").mkdir()
    found = load_settings(environ={}, cwd=below)
    assert (found.home, found.home_source) == (tmp_path / ".hybrid", "found")
    assert load_settings(environ={"HYBRID_HOME": "h"}, cwd=below).home == below / "h"
    assert load_settings(home=Path("../x"), environ={"HYBRID_HOME": "h"}, cwd=below).home_source == "flag"


def test_a_percent_sign_in_the_home_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="has a '%' in its path"):
        load_settings(home=tmp_path / "a%20b")


def test_durable_is_on_and_is_switched_by_true_or_false(tmp_path: Path) -> None:
    assert load_settings(home=tmp_path, environ={}).durable
    assert not load_settings(home=tmp_path, environ={"HYBRID_DURABLE": "false"}).durable
    (tmp_path / "hybrid.toml").write_text("durable = false\n")
    assert not load_settings(home=tmp_path, environ={}).durable
    with pytest.raises(SpecError, match="'maybe' is not true or false"):
        load_settings(home=tmp_path, environ={"HYBRID_DURABLE": "maybe"})


def test_secrets_for_spark_are_not_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(
        home, '[spark]\n"hadoop.fs.s3a.secret.key" = "abc"\nsql.x = 8\n"driver.extraJavaOptions" = "-Dp.password=abc"\n'
    )
    assert run(["--home", str(home), "--json", "config", "show"]) == 0
    shown = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    assert shown["spark.sql.x"] == "8" and "abc" not in shown.values()
    assert {shown["spark.hadoop.fs.s3a.secret.key"], shown["spark.driver.extraJavaOptions"]} == {HIDDEN}
