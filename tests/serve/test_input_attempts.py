"""An account that may operate tries, in some hundred ways, to have the server read what it may not read."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hybrid.api.hybrid import TableDocuments
from hybrid.errors import DataError
from hybrid.files.inputs import InputFile
from hybrid.files.reading import read_slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.home.accounts import Accounts, Right
from hybrid.logs import setup_logging
from hybrid.operations.run_views import HIDDEN_ERROR
from hybrid.serve.context import ServerLimits
from tests.serve.app import OFFLINE, SCHEMA, App, Worker

SECRET = "s3cr3t-875d6b49d5f67e"
ALLOWED = "allowed-4b1d"
DAYS = {"from": "1970-01-01T00:00:00Z", "to": "1971-01-01T00:00:00Z"}
OPENED: list[str] = []
_WATCHED: list[str] = []


def _hook(event: str, words: tuple[Any, ...]) -> None:
    if event == "open" and _WATCHED and isinstance(words[0], str):
        path = os.path.realpath(words[0]) if not words[0].startswith("/proc/") else words[0]
        if any(part in path for part in _WATCHED):
            OPENED.append(path)


sys.addaudithook(_hook)


class Place:
    """A served home with one account of each right, an allowed folder full of traps, and secrets outside of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.allowed, self.outside = folder, folder / "allowed", folder / "outside"
        for path in (self.allowed / "deep", self.outside, folder / "allowed-not"):
            path.mkdir(parents=True)
        text = f"order_id,customer,amount,ts\n{SECRET},{SECRET},1,1\n"
        for path in (self.outside / "secret.csv", self.outside / "secret.json", folder / "allowed-not/secret.csv"):
            path.write_text(text)
        (self.allowed / "ok.csv").write_text(text.replace(SECRET, ALLOWED))
        monkeypatch.setenv("HYBRID_TOKEN", SECRET)
        monkeypatch.setenv("HYBRID_INPUT_FOLDERS", str(self.allowed))
        monkeypatch.chdir(self.allowed)
        self.app = App(folder / "home", ServerLimits(run_wait_s=30))
        self.home = folder / "home"
        given = TableDocuments((SCHEMA, "schema"), [(OFFLINE, "offline")])
        self.app.home.create_table(given)
        (self.home / "server.json").write_text(f'{{"secret": "{SECRET}"}}')
        (self.home / "uploads/other").mkdir(parents=True)
        (self.home / "uploads/other/secret.csv").write_text(text)
        self._set_traps()
        accounts = Accounts(self.home)
        self.operate, self.read = (
            {"Authorization": f"Bearer {accounts.add(right.word, right)[1]}"} for right in (Right.OPERATE, Right.READ)
        )

    def _set_traps(self) -> None:
        traps = {
            "file.csv": self.outside / "secret.csv", "dir": self.outside, "home": self.home,
            "env.csv": "/proc/self/environ",
            "chain.csv": "file.csv", "up.csv": "../outside/secret.csv", "deep/server.csv": self.home / "server.json",
            "deep/far.csv": "../../outside/../outside/secret.csv", "proc": "/proc", "root": "/", "loop.csv": "loop.csv",
            "sub": "..",
        }  # fmt: skip
        for name, target in traps.items():
            (self.allowed / name).symlink_to(target)
        os.link(self.home / "server.json", self.allowed / "hard.csv")

    def paths(self) -> list[str]:
        """Where secrets lie, in many spellings."""
        up = os.path.relpath(self.outside, self.allowed)
        places = [
            *(self.outside / "secret.csv", self.outside, self.home / "server.json", self.home, self.folder),
            *(self.home / "uploads/other/secret.csv", self.home / "uploads", self.home / "access.json"),
            *(self.home / "catalog.db", self.home / "warehouse", self.folder / "allowed-not/secret.csv"),
            *(self.allowed / name for name in ("file.csv", "dir", "dir/secret.csv", "home", "home/server.json")),
            *(self.allowed / name for name in ("env.csv", "chain.csv", "up.csv", "deep/server.csv", "deep/far.csv")),
            *(self.allowed / name for name in ("proc/self/environ", "hard.csv", "sub/outside/secret.csv", "loop.csv")),
            self.allowed / "root" / str(self.outside / "secret.csv").lstrip("/"),
        ]
        plain = [str(place) for place in places]
        kernel = ["/proc/self/environ", "//proc/self/environ", "/proc/1/environ", "/proc/self/root/etc/passwd"]
        kernel += ["/dev/stdin", "/dev/fd/0", "/dev/zero", "/sys/kernel", "/etc/passwd", "/etc", "/", "~", "~root/.ssh"]
        relative = [f"{up}/secret.csv", f"./{up}", "dir/secret.csv", "./deep/../file.csv", "../home/server.json"]
        dots = [f"{self.allowed}/../outside/secret.csv", f"{self.allowed}/deep/../../outside", f"/{self.outside}"]
        return [*plain, *kernel, *relative, *dots]

    def close(self) -> None:
        self.app.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    found = Place(tmp_path, monkeypatch)

    def show(files: Sequence[InputFile]) -> Any:
        """Stands for Spark: quotes all that it was given to read."""
        rows = [dict(one.values) for file in files for piece in file.slices for one in read_slice(piece, CsvFormat())]
        raise DataError(f"Does not fit: {rows[:100]}")

    monkeypatch.setattr("hybrid.replace.job.stage", lambda bench, spec, files, *_: show(files))
    monkeypatch.setattr(
        "hybrid.replace.backfill.planning.plan_backfill",
        lambda table, halves, request, plan: show(request.files),
    )
    yield found
    _WATCHED.clear()
    found.close()


def spec(uri: str, form: str = "csv", **more: Any) -> dict[str, Any]:
    return {
        "jobType": "SegmentCreationAndTarPush",
        "inputDirURI": uri,
        "recordReaderSpec": {"dataFormat": form},
        "tableSpec": {"tableName": "orders"},
        "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": "x"}},
        **more,
    }


def ways(path: str) -> Iterator[tuple[str, str, Any]]:
    """Requests that name a path."""
    encoded = quote(path)
    uris = [path, f"file://{encoded}", f"FILE:{path}", f"file://localhost{encoded}", f"file:{path.replace('/', '%2f')}"]
    for uri in uris:
        yield "POST", "/jobs?wait=true", {"spec": spec(uri)}
    yield "POST", "/jobs?wait=true", {"spec": spec("${where}"), "variables": {"where": path}}
    yield "POST", "/jobs?wait=true", {"spec": spec("."), "input": path}
    yield "POST", "/backfills", {"table": "orders", "input": path, **DAYS}
    place = "tableNameWithType=orders_OFFLINE&batchConfigMapStr=" + quote('{"inputFormat":"csv"}')
    for uri in uris[1:]:
        yield "POST", f"/ingestFromURI?{place}&sourceURIStr={quote(uri, safe='')}", None
    arguments = {"spec": f"{spec(path)}", "source": "spec", "folder": "/", "variables": {}, "input_dir": path}
    yield "POST", "/verbs/job_run", arguments
    yield "POST", "/verbs/backfill_plan", {"table": "orders", "input": path, "start": DAYS["from"], "end": DAYS["to"]}


def others(place: Place) -> Iterator[tuple[str, str, Any]]:
    """Patterns, templates, statements, buckets and values that name no path of their own."""
    for pattern in (
        "glob:**/*.csv",
        "regex:.*",
        "glob:**",
        "glob:/proc/**",
        "regex:.*(secret|server).*",
        "glob:**/{file,up}.csv",
    ):
        for form in ("csv", "json", "avro"):
            for folder in (place.allowed, place.allowed / "deep"):
                yield "POST", "/jobs?wait=true", {"spec": spec(str(folder), form, includeFileNamePattern=pattern)}
    references = [
        "${HYBRID_TOKEN}",
        "$HYBRID_TOKEN",
        "${env:HYBRID_TOKEN}",
        "${secret:HYBRID_TOKEN}",
        "${ENV.HYBRID_TOKEN}",
    ]
    references += ["<%= System.getenv('HYBRID_TOKEN') %>", "${System.getenv('HYBRID_TOKEN')}", "${env['HYBRID_TOKEN']}"]
    for reference in references:
        yield "POST", "/jobs?wait=true", {"spec": spec(reference)}
        yield "POST", "/jobs?wait=true", {"spec": spec("ok.csv"), "input": reference}
        naming = {"type": "fixed", "configs": {"segment.name": reference}}
        yield "POST", "/jobs?wait=true", {"spec": spec("ok.csv", segmentNameGeneratorSpec=naming)}
        yield "POST", "/backfills", {"table": "orders", "input": reference, **DAYS}
        yield (
            "POST",
            "/backfills",
            {"table": "orders", "update": f"customer = '{reference}'", "expect": [reference], **DAYS},
        )
    secret, environ = place.outside / "secret.csv", "/proc/self/environ"
    statements = [
        f"select * from '{secret}'", f"select * from read_csv('{secret}')", f"select * from read_text('{environ}')",
        "select getenv('HYBRID_TOKEN') x from orders", "select * from duckdb_settings()", "select * from glob('/**')",
        f"copy (select 1) to '{place.allowed}/out.csv'", f"attach '{place.home}/catalog.db'",
        "select current_setting('home')",
        f"select * from sqlite_scan('{place.home}/catalog.db', 'runs')", f"select content from read_blob('{secret}')",
    ]  # fmt: skip
    for statement in statements:
        yield "POST", "/jobs?wait=true", {"spec": spec("."), "sql": statement}
        yield "POST", "/backfills", {"table": "orders", "sql": statement, **DAYS}
        yield "POST", "/query/sql", {"sql": statement}
    for uri in ("s3://secrets/x", "s3a://secrets/x"):
        for configs in (
            {},
            {"endpoint": "http://169.254.169.254"},
            {"accessKey": "a", "secretKey": "b", "endpoint": "http://127.0.0.1:1"},
            {"accessKey": "a", "secretKey": "${env:HYBRID_TOKEN}"},
            {"accessKey": f"${{file:{secret}}}", "secretKey": "b"},
        ):
            filesystems = [{"scheme": uri.partition(":")[0], "configs": configs}]
            yield "POST", "/jobs?wait=true", {"spec": spec(uri, pinotFSSpecs=filesystems)}
    for uri in ("http://127.0.0.1/x", "hdfs://x/y", "gs://x/y", "jar:file:/x!/y", "file://other/x", "data:text/csv,a"):
        yield "POST", "/jobs?wait=true", {"spec": spec(uri)}


@pytest.mark.slow
def test_an_account_that_may_operate_reads_nothing_it_may_not(place: Place) -> None:
    attempts = [*(way for path in place.paths() for way in ways(path)), *others(place)]
    assert len(attempts) >= 500
    setup_logging(place.home / "logs", "query")
    answers: list[tuple[int, str, Any]] = []
    with Worker(place.app.home):
        _WATCHED.extend([str(place.outside), str(place.folder / "allowed-not"), "/environ", "uploads/other"])
        for method, path, body in attempts:
            status, answer = place.app.call(method, path, body, headers=place.operate)
            answers.append((status, f"{method} {path} {body}", answer))
        while any(run.incomplete for run in place.app.home.context.catalog.runs.list(limit=5000)):
            threading.Event().wait(0.02)
        runs = place.app.call("GET", "/jobs", headers=place.operate)[1]
        shown = [place.app.call("GET", f"/runs/{run['id']}", headers=place.operate)[1] for run in runs]
        _WATCHED.clear()
    assert OPENED == []
    assert [one for one in answers if one[0] == 500] == []
    assert SECRET not in str([answer for _, _, answer in answers]) + str(shown)
    for run in place.app.home.context.catalog.runs.list(limit=5000):
        assert SECRET not in str(run), run
    assert not (place.allowed / "out.csv").exists()


def test_a_job_refers_to_no_variable_and_no_file_of_the_server(place: Place) -> None:
    for text, variables in (("${env:HYBRID_TOKEN}", {}), ("${key}", {"key": "${env:HYBRID_TOKEN}"})):
        configs = {"accessKey": "a", "secretKey": text}
        job = spec("s3://bucket/x", pinotFSSpecs=[{"scheme": "s3", "configs": configs}])
        body = {"spec": job, "variables": variables}
        status, answer = place.app.call("POST", "/jobs?wait=true", body, headers=place.operate)
        assert status == 403 and "a reference would read a variable or a file of the server" in str(answer)
        assert SECRET not in str(answer)


@pytest.mark.slow
def test_the_allowed_folder_is_read_and_read_accounts_see_no_cell(place: Place) -> None:
    with Worker(place.app.home):
        status, answer = place.app.call("POST", "/jobs?wait=true", {"spec": spec("ok.csv")}, headers=place.operate)
        assert status == 400 and ALLOWED in str(answer), "who operates is shown the cell"
        run = place.app.call("GET", "/jobs", headers=place.operate)[1][0]["id"]
        looks = [("GET", "/jobs", None), ("GET", f"/jobs/{run}", None), ("GET", f"/runs/{run}", None)]
        looks += [("GET", f"/tasks/task/{run}/debug", None), ("POST", "/verbs/run", {"run": run})]
        looks += [("POST", "/verbs/runs", {}), ("POST", "/verbs/status", {}), ("GET", "/tasks/job/debug", None)]
        for method, path, body in looks:
            assert ALLOWED not in str(place.app.call(method, path, body, headers=place.read)[1]), path
        hidden = place.app.call("GET", f"/runs/{run}", headers=place.read)[1]
        assert hidden["error"]["error"] == HIDDEN_ERROR and hidden["error"]["kind"] == "data"


@pytest.mark.slow
def test_an_upload_of_an_account_needs_no_folder(place: Place) -> None:
    from tests.serve.app import form

    body, headers = form("orders.csv", f"order_id,customer,amount,ts\n{ALLOWED},x,1,1\n".encode())
    query = "tableNameWithType=orders_OFFLINE&batchConfigMapStr=" + quote('{"inputFormat":"csv"}')
    with Worker(place.app.home):
        answer = place.app.call("POST", f"/ingestFromFile?{query}", body, headers={**headers, **place.operate})
    assert answer[0] == 400 and ALLOWED in str(answer[1])
