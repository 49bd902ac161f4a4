"""Where values could stay on the store, a purge is refused before anything is changed, and says what would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, StoreError
from hybrid.home.home import Home
from hybrid.operations.purge import copies_on_store
from hybrid.operations.tables.drop import drop_table
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.replace.purge.purged_store import PurgedStore
from hybrid.store.object_versions import ObjectVersions
from hybrid.store.store_location import StoreKind, StoreLocation
from tests.operations.warehouse_homes import create, keys, mirror_of, open_home, url
from tests.s3_server import S3Server, needs_s3, s3_server

__all__ = ["open_home", "url"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Its bucket keeps no versions at first."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "versions").mkdir()
    with s3_server(folder / "store", folder / "versions") as found:
        found.create_bucket("bucket")
        yield found


def store_of(home: Home) -> PurgedStore:
    found = PurgedStore.of(home.table_context(home.table("orders")))
    assert found is not None
    return found


def test_azure_and_google_are_refused_by_name(open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_home()
    create(home)
    for kind in (StoreKind.AZURE, StoreKind.GOOGLE):
        monkeypatch.setattr(mirror_of(home).client, "location", StoreLocation("bucket", "x", kind))
        with pytest.raises(ConflictError, match=r"soft delete keeps .* cannot be seen") as refused:
            store_of(home).require_provable()
        assert "retention of the store itself" in str(refused.value.hint)


def test_a_lock_on_objects_is_refused(open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_home()
    create(home)
    monkeypatch.setattr(ObjectVersions, "retention", lambda _: "30 days")
    with pytest.raises(ConflictError, match=r"object lock keeps each object for 30 days. Nothing was changed"):
        store_of(home).require_provable()


def test_versions_without_an_id_in_a_suspended_bucket_are_refused(
    open_home: Callable[..., Home], server: S3Server
) -> None:
    home = open_home()
    half = create(home)
    store_of(home).require_provable()
    mirror = mirror_of(home)
    key = mirror.key_of(half, f"_delta_log/{1:020d}.json")
    content = mirror.client.get(key)
    assert content is not None
    server.keep_versions("bucket")
    mirror.client.upload(key, content.data)
    store_of(home).require_provable()
    server.keep_versions("bucket", "Suspended")
    with pytest.raises(ConflictError, match=r"is suspended, and it keeps .* from before it was on") as refused:
        store_of(home).require_provable()
    assert "Switch versioning on" in str(refused.value.hint)
    server.keep_versions("bucket")
    store = store_of(home)
    store.require_provable()
    store.remove_versions()
    server.keep_versions("bucket", "Suspended")
    store_of(home).require_provable()
    server.keep_versions("bucket")


def test_parts_of_an_upload_are_left_for_an_hour(open_home: Callable[..., Home], server: S3Server) -> None:
    home = open_home()
    half = create(home)
    mirror, store = mirror_of(home), store_of(home)
    prefix = mirror.url.removeprefix("s3:/")
    server.begin_upload(f"{prefix}/{mirror.key_of(half, 'late.parquet')}")
    store.require_provable()
    store.bring()
    halves = {Half.OFFLINE: home.table("orders").half(Half.OFFLINE)}
    store.remove_rest(halves)
    assert [words for words in store.left(halves) if "parts of an upload" in words and "late.parquet" in words]
    store = PurgedStore(home.table_context(home.table("orders")), mirror, unknown_for_s=-60.0)
    store.require_provable()
    store.bring()
    store.remove_rest(halves)
    assert store.left(halves) == () and store.reading().uploads_aborted == 1


def test_halves_of_a_dropped_table_that_no_home_has_are_named(open_home: Callable[..., Home]) -> None:
    home = open_home()
    create(home)
    drop_table(home, "orders")
    create(home)
    known = copies_on_store(home, "orders")
    assert store_of(home).folders_of_nobody(known) == [], "the copy here says what it has"
    other = open_home("b")
    pull_warehouse(other, take_over=True)
    store = store_of(other)
    assert store.folders_of_nobody(set()) == sorted(known) and len(known) == 1
    assert any("of which this home has no copy" in words for words in store.outside(set()))
    store.remove_folder(*known)
    assert not [key for key in keys(other) if set(key.split("/")) & known] and len(keys(other)) > 3
    with pytest.raises(ConflictError, match="written by another home"):
        store_of(home).require_provable()


def test_a_store_that_refuses_the_requests_is_left_as_it_is(
    open_home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    create(home)
    before = keys(home)

    def refused(_: object) -> str:
        raise StoreError("no right")

    monkeypatch.setattr(ObjectVersions, "versioning", refused)
    with pytest.raises(StoreError, match="no right"):
        store_of(home).require_provable()
    assert keys(home) == before
