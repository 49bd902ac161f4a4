"""The settings file of a home as a backup keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.config.settings import load_settings
from hybrid.operations.backups.home_settings import portable_settings


def test_settings_without_secrets() -> None:
    text = (
        'kafka = "b:1"\nserver = "s"\ntoken = "t"\n[spark]\nserver = "x"\nsql.shuffle.partitions = 8\na.password = "p"'
    )
    rest, left_out = portable_settings(text)
    assert rest == 'kafka = "b:1"\n[spark]\nserver = "x"\nsql.shuffle.partitions = 8'
    assert left_out == ["server", "token", "a.password"]
    assert portable_settings('[spark]\na.password = """\nx\n"""')[0] is None
    assert portable_settings('spark = { "a.password" = "p" }') == ("", ["spark"])


def test_secrets_in_comments_and_values_of_settings() -> None:
    text = (
        '# token = "old"\nkafka = "b:1" # password: x\nname = "a # b"\n\nother = \'#\' # c\n[spark] # d\n'
        'options = "-Dstore.password=x"\nurl = "postgresql://u:p@h/d"\njaas = "sasl.jaas.config=Login"\n'
        'plain = "-Da=b"\n'
    )
    rest, left_out = portable_settings(text)
    assert rest == 'kafka = "b:1"\nname = "a # b"\n\nother = \'#\'\n[spark]\nplain = "-Da=b"\n'
    assert left_out == ["options", "url", "jaas"]
    for spread in (
        'a = [\n  { "b.password" = "p" },\n]',
        'a = [\n  "x", "-Dstore.password=p",\n]',
        'a = """\nx -Dstore.password=p\n"""',
        'a = """\n# token = p\n"""',
        "a = '''\nhttps://u:p@h\n'''",
    ):
        assert portable_settings(spread)[0] is None, spread
    assert portable_settings('a = [\n  "x", # token=p\n]') == ('a = [\n  "x",\n]', [])
    assert portable_settings('a = """\n# b\n"""')[0] == 'a = """\n# b\n"""'


@pytest.mark.parametrize(
    ("text", "rest", "left_out"),
    [
        (
            'warehouse = "s3://b/p"\nkafka = "b:1"\n[pinning]\nservers = ["http://q1:8099"]\nself = "http://q1:8099"\n'
            'together = [\n  ["a", "b"],\n]\n[spark]\nmaster = "spark://m:7077"\nworker_files = "store"\nx = "1"',
            'kafka = "b:1"\n[spark]\nx = "1"',
            ["warehouse", "pinning", "spark.master", "spark.worker_files"],
        ),
        (
            '[spark]\nworker_files = "store"\nmaster = "sc://m:15002"\ndriver_memory = "1g"',
            '[spark]\ndriver_memory = "1g"',
            ["spark.worker_files", "spark.master"],
        ),
        (
            'spark.worker_files = "store"\npinning.servers = [\n"a"\n]\nx = 1',
            "x = 1",
            ["spark.worker_files", "pinning"],
        ),
        ('spark = { worker_files = "store", x = 1 }\ny = 1', "y = 1", ["spark"]),
        (
            '[spark]\n\nmaster = "sc://c"\n\n\'kubernetes.label.app/name\' = "x"\nmemory = "2g"',
            '[spark]\n\n\n\'kubernetes.label.app/name\' = "x"\nmemory = "2g"',
            ["spark.master"],
        ),
        (
            '[spark]\nmaster = "local[4]"\nworker_files = "store"',
            '[spark]\nmaster = "local[4]"',
            ["spark.worker_files"],
        ),
        (
            '[spark]\nmaster = "spark://m:7077"\nworker_files = "shared"',
            '[spark]\nmaster = "spark://m:7077"\nworker_files = "shared"',
            [],
        ),
    ],
)
def test_what_needs_the_store_of_the_tables_goes_with_it(
    text: str, rest: str, left_out: list[str], tmp_path: Path
) -> None:
    """The tables of a restored home are in its folder: these settings would keep it from serving and committing."""
    assert portable_settings(text) == (rest, left_out)
    (tmp_path / "hybrid.toml").write_text(rest)
    settings = load_settings(home=tmp_path, environ={})
    assert settings.pinning is None and settings.workers_share_files
