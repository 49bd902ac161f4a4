"""The settings file of a home as a backup keeps it."""

from __future__ import annotations

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
