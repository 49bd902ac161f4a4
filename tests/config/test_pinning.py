"""Which servers hold which tables, and the settings that say so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hybrid.config.pinning import Pinning, weight
from hybrid.config.settings import load_settings
from hybrid.errors import SpecError

SERVERS = tuple(f"http://q{number}:8099" for number in range(8))
TABLES = [f"table_{number}" for number in range(4000)]
FILE = """
warehouse = "s3://bucket/prefix"
[pinning]
servers = ["http://Q1:8099/", "https://q2"]
self = "http://q1:8099"
copies = 1
together = [["orders", "customers"], ["a", "b"]]
"""


def pinned(count: int, copies: int = 1, together: tuple[tuple[str, ...], ...] = ()) -> Pinning:
    return Pinning(SERVERS[:count], SERVERS[0], copies, together)


def loaded(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> Pinning | None:
    (tmp_path / "hybrid.toml").write_text(text)
    return load_settings(home=tmp_path, environ=environ or {}).pinning


def test_a_weight_is_the_same_everywhere() -> None:
    """Servers of two versions, or machines, must agree: the value is written down."""
    assert weight("http://q1:8099", "orders") == int.from_bytes(bytes.fromhex("6b9c20ae7eeae966"))


def test_each_server_finds_the_same_holders() -> None:
    orders = [Pinning(SERVERS[turn:] + SERVERS[:turn], SERVERS[turn], 3) for turn in range(8)]
    for table in TABLES[:50]:
        holders = {each.holders(table) for each in orders}
        assert len(holders) == 1 and len(set(holders.pop())) == 3


@pytest.mark.parametrize("copies", [1, 2])
def test_a_new_server_moves_its_share_and_nothing_else(copies: int) -> None:
    before, after = pinned(7, copies), pinned(8, copies)
    new, moved = SERVERS[7], 0
    for table in TABLES:
        there, here = before.holders(table), after.holders(table)
        if there == here:
            continue
        moved += 1
        assert new in here, "only the new server gains"
        assert [server for server in here if server != new] == list(there[: copies - 1]), "the others keep their order"
    assert 0.8 < moved / (len(TABLES) * copies / 8) < 1.2


def test_tables_are_spread_evenly() -> None:
    for copies in (1, 2):
        counts = Counter(server for table in TABLES for server in pinned(8, copies).holders(table))
        share = len(TABLES) * copies / 8
        assert all(0.85 < counts[server] / share < 1.15 for server in SERVERS), counts


def test_a_group_is_where_its_first_table_is() -> None:
    apart, together = pinned(8), pinned(8, together=(("table_0", "table_1", "table_2"),))
    assert len({apart.holders(table) for table in TABLES[:3]}) > 1
    assert {together.holders(table) for table in TABLES[:3]} == {apart.holders("table_0")}
    assert together.holders_of_all(TABLES[:3]) == apart.holders("table_0")
    assert [together.holders(table) for table in TABLES[3:]] == [apart.holders(table) for table in TABLES[3:]]


def test_servers_of_several_tables() -> None:
    all_of_them, one = pinned(3, 3), pinned(3, 1)
    assert all_of_them.holders_of_all(TABLES[:9]) == all_of_them.holders(TABLES[0])
    apart = next(table for table in TABLES if one.holders(table) != one.holders(TABLES[0]))
    assert one.holders_of_all([TABLES[0], apart]) == ()


def test_settings_of_a_file_and_of_variables(tmp_path: Path) -> None:
    expected = Pinning(("http://q1:8099", "https://q2:443"), "http://q1:8099", 1, (("orders", "customers"), ("a", "b")))
    assert loaded(tmp_path, FILE) == expected
    environ = {
        "HYBRID_WAREHOUSE": "s3://bucket/prefix",
        "HYBRID_PINNING_SERVERS": "http://q1:8099, https://q2",
        "HYBRID_PINNING_SELF": "HTTP://q1:8099",
        "HYBRID_PINNING_COPIES": "1",
        "HYBRID_PINNING_TOGETHER": "orders,customers; a,b",
    }
    assert loaded(tmp_path, "", environ) == expected
    assert loaded(tmp_path, FILE, {"HYBRID_PINNING_SELF": "https://q2:443"}) is not None
    assert loaded(tmp_path, 'warehouse = "s3://bucket/prefix"') is None


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"https://q2"', '"http://q1:8099"', "pinning.servers: http://q1:8099 is named twice"),
        ('"https://q2"', '"q2:8099"', "pinning.servers: 'q2:8099' is not the URL of a server"),
        ('"https://q2"', '"http://q2:port"', "pinning.servers: 'http://q2:port' is not the URL"),
        ('"https://q2"', '"http://ada:secret@q2"', "pinning.servers: The URL at q2 has more than a host and a port"),
        ('["http://Q1:8099/", "https://q2"]', "[]", "pinning.servers: names no server"),
        ('["http://Q1:8099/", "https://q2"]', "[1, 2]", "pinning.servers: must be a text, or a list of texts"),
        ('self = "http://q1:8099"', 'self = "http://q3:8099"', "pinning.self: http://q3:8099 is not among 'servers'"),
        ('self = "http://q1:8099"', "", "pinning.self: is missing"),
        ('servers = ["http://Q1:8099/", "https://q2"]', "", "pinning.self: is set, but 'servers' is not"),
        ("copies = 1", "copies = 0", "pinning.copies: 0 is not between 1 and 2"),
        ("copies = 1", "copies = 3", "pinning.copies: 3 is not between 1 and 2"),
        ("copies = 1", 'copies = "two"', "pinning.copies: 'two' is not a whole number"),
        ('["a", "b"]', '["a", "orders"]', "pinning.together: orders is named twice"),
        ('["a", "b"]', '["a"]', "pinning.together: a stands alone"),
        ('warehouse = "s3://bucket/prefix"', "", "pinning.servers: is set, but the tables of this home are on"),
        ("[pinning]", "pinning = 1\n[others]", "pinning: must be a table"),
    ],
)  # fmt: skip
def test_wrong_settings(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in FILE
    with pytest.raises(SpecError) as error:
        loaded(tmp_path, FILE.replace(before, after))
    assert words in str(error.value)


def test_an_unknown_key_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "hybrid.toml").write_text(FILE.replace("copies", "copys"))
    warnings = load_settings(home=tmp_path, environ={}).warnings
    assert ["'pinning.copys' is not a setting" in warning for warning in warnings] == [True]
