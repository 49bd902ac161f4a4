"""Files of jobs on a real S3 server: what is fetched, what is not, and what cannot be. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.fs as pafs
import pytest

from hybrid.config.job_spec import JobSpec
from hybrid.config.job_store import ObjectStore
from hybrid.errors import DataError
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.objectstore import _inside, fetch
from hybrid.lake.layout import TableLayout
from hybrid.lake.staging import staging_folder
from hybrid.operations.job_input import _fetched, _is_wanted
from hybrid.progress import Silent
from hybrid.replace.inputs import list_inputs
from hybrid.replace.job import _input
from tests.s3_server import S3Server, needs_s3, s3_server

KEYS = ("in/a.json", "in/b/c.json", "in/_SUCCESS", "in/notes.txt", "inner.json")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        put = pafs.S3FileSystem(
            access_key=found.options["aws_access_key_id"],
            secret_key=found.options["aws_secret_access_key"],
            endpoint_override=found.address,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        put.create_dir("bucket")
        for key in KEYS:
            with put.open_output_stream(f"bucket/{key}") as out:
                out.write(b'{"id": 1}\n')
        yield found


def _job(server: S3Server, key: str = "in", **fields: Any) -> JobSpec:
    options = {
        "endpoint": f"http://{server.address}",
        "region": "us-east-1",
        "accessKey": server.options["aws_access_key_id"],
        "secretKey": server.options["aws_secret_access_key"],
    }
    store = ObjectStore("bucket", key, options)
    return JobSpec("job.yml", "SegmentCreation", Path("/"), "t", "json", store=store, **fields)


def _home(folder: Path) -> Any:
    """What fetching needs of a home."""
    bench = SimpleNamespace(progress=Silent(), staging=lambda layout, act_id: staging_folder(layout.staging(act_id)))
    return SimpleNamespace(input_rules=None, bench=bench, layout=lambda name: TableLayout(folder / name))


@pytest.mark.process
@needs_s3
@pytest.mark.parametrize(
    ("key", "fields", "names"),
    [
        ("in", {}, ["a.json", "b/c.json", "notes.txt"]),
        ("in", {"include": "glob:**/*.json"}, ["a.json", "b/c.json"]),
        ("in", {"include": "regex:s3:/bucket/in/.*[.]json", "exclude": "glob:**/b/*"}, ["a.json"]),
        ("in", {"search_recursively": False}, ["a.json", "notes.txt"]),
        ("in", {"include": "glob:**_SUCCESS"}, ["_SUCCESS"]),
        ("in/a.json", {}, ["a.json"]),
        ("", {"include": "glob:*.json"}, ["inner.json"]),
    ],
)
def test_what_is_fetched(tmp_path: Path, server: S3Server, key: str, fields: dict[str, Any], names: list[str]) -> None:
    with _fetched(_home(tmp_path), _job(server, key, **fields)) as ready:
        files = list_inputs(ready)
        assert [path.relative_to(ready.input_dir).as_posix() for path in files] == names
        source = _input(ready, inspect(files[0], DataFormat.JSON))
        address = f"s3://bucket/{key}" if key == "in/a.json" else f"{_job(server, key).store.address}/{names[0]}"  # type: ignore[union-attr]
        assert source["path"] == address and source["bytes"] == 10
        folder = ready.input_dir
    assert not folder.exists()


@pytest.mark.process
@needs_s3
def test_what_cannot_be_fetched(tmp_path: Path, server: S3Server) -> None:
    with pytest.raises(DataError, match=r"no object at s3://bucket/in matches 'glob:\*\*.csv'"):
        _fetched(_home(tmp_path), _job(server, include="glob:**.csv")).__enter__()
    for wrong in (_job(server, "nowhere"), _wrong(_job(server), secretKey="x")):
        assert wrong.store is not None
        with pytest.raises(DataError, match=r"s3://bucket/.* cannot be read: "):
            fetch(wrong.store, partial(_is_wanted, wrong), tmp_path / "to")


def _wrong(job: JobSpec, **options: str) -> JobSpec:
    assert job.store is not None
    return replace(job, store=replace(job.store, options={**job.store.options, **options}))


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/x"])
def test_a_key_does_not_leave_the_folder(key: str) -> None:
    with pytest.raises(DataError, match="cannot be a file's path"):
        _inside(ObjectStore("b", "k"), key)
