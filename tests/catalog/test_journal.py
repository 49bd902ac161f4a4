"""What is removed from the catalog is in none of SQLite's files afterwards (finding 24)."""

import contextlib
from pathlib import Path

import sqlalchemy as sa

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.catalog.catalog import Catalog
from hybrid.catalog.schema import RUNS
from hybrid.config.settings import load_settings
from hybrid.progress import Silent

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"

SECRET = "ada@example.org"


def bytes_of(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.glob("catalog.db*"))


def test_a_removed_value_is_neither_in_free_pages_nor_in_the_journal(tmp_path: Path) -> None:
    catalog = Catalog.of_home(tmp_path)
    with contextlib.closing(catalog), catalog.runs.recorded("run-1", "orders", "purge", {"where": SECRET * 500}):
        assert SECRET.encode() in bytes_of(tmp_path)
        with catalog._engine.begin() as connection:
            connection.execute(sa.delete(RUNS))
        assert SECRET.encode() in bytes_of(tmp_path), "still in the journal"
        assert catalog.forget_journal()
        assert SECRET.encode() not in bytes_of(tmp_path)


def test_a_home_is_made_for_its_user_alone(tmp_path: Path) -> None:
    Catalog.of_home(tmp_path / "home").close()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_a_table_made_in_python_makes_the_home_private_too(tmp_path: Path) -> None:
    configs = [DATA / "orders_offline_table.json"]
    home = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    home.create_table(TableDocuments.read(DATA / "orders_schema.json", configs))
    home.close()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
