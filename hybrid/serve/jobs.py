"""Routes `/jobs`: run ingestion job specs and follow their runs."""

from __future__ import annotations

import json
from pathlib import Path as Folder
from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.catalog.run_record import RunRecord
from hybrid.config.job_spec import JOB_TYPES
from hybrid.errors import NotFoundError
from hybrid.home.accounts import Right
from hybrid.operations.run_views import run_details
from hybrid.rpc import json_views as views
from hybrid.rpc.verbs import JOB
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import path_table

router = StrictRouter(tags=["jobs"])
SOURCE = "spec"
_TYPES = {JOB, *JOB_TYPES}
_LENGTH_MAX = 200
_JOBS_MAX = 1000
_SPEC: dict[str, Any] = {
    "jobType": "SegmentCreationAndTarPush",
    "inputDirURI": "/data/orders/corrected",
    "recordReaderSpec": {"dataFormat": "json"},
    "tableSpec": {"tableName": "orders"},
    "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": "${segmentName}"}},
}
_RUN = {
    "id": "job_1637491080000",
    "created_at": "2021-11-21T10:38:00Z",
    "finished_at": None,
    "table": "orders",
    "type": "job",
    "state": "QUEUED",
    "result": None,
    "progress": None,
    "report": None,
    "error": None,
    "source": "http",
}


class Job(BaseModel):
    """A job: `spec` is the text of a spec file (YAML), or the same as an object.

    `variables` fill `${name}`, `input` replaces inputDirURI; relative folders start at the server's working directory.
    With `sql`, the rows of that statement are the input. `covers` (FROM/TO, `day`, `all`) removes other segments in
    that time range.
    `dryRun` only shows the difference, `append` lets a new segment overlap others, `allowEmpty` accepts an empty input.
    `expect` lists expectations, each an object or text in the format of `--expect`.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [{"spec": _SPEC, "variables": {"segmentName": "orders_1632463351000_1632467070000_0"}}]
        },
    )

    spec: str | dict[str, Any]
    variables: dict[str, str] = Field(default_factory=dict)
    input: str | None = Field(default=None, min_length=1, max_length=4096)
    covers: str | None = Field(default=None, min_length=1, max_length=200)
    sql: str | None = Field(default=None, min_length=1, max_length=100_000)
    dry_run: bool = Field(default=False, alias="dryRun")
    append: bool = False
    expect: list[str | dict[str, Any]] = Field(default_factory=list, max_length=1000)
    allow_empty: bool = Field(default=False, alias="allowEmpty")
    reason: str | None = Field(default=None, max_length=10_000)
    user: str | None = Field(default=None, max_length=200)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the verb `job_run`."""
        more = self.model_dump(
            include={"variables", "covers", "sql", "dry_run", "append", "allow_empty", "reason", "user"}
        )
        more["expect"] = [
            expectation if isinstance(expectation, str) else json.dumps(expectation) for expectation in self.expect
        ]
        place = {"source": SOURCE, "folder": str(Folder.cwd()), "input_dir": self.input}
        return {"spec": spec_text(self.spec), **place, **more}


def spec_text(spec: str | dict[str, Any]) -> str:
    """Return a job spec as the text of its file."""
    if isinstance(spec, str):
        return spec
    import yaml

    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True)


@router.post("/jobs", summary="Run a job spec", responses=shown(_RUN))
@needs(Right.OPERATE)
async def add_job(
    request: Request,
    job: Job,
    wait: Annotated[bool, Query(description="Wait for its end, and answer its report or its error")] = False,
) -> Any:
    """Queues the job and returns its run; an invalid spec is refused at once."""
    context = context_of(request)
    arguments = await run_in_threadpool(job.arguments)
    if wait:
        return await context.carried_out("job_run", arguments)
    return _view(await run_in_threadpool(context.queue, "job_run", arguments))


@router.get("/jobs", summary="List the jobs", responses=shown([_RUN]))
def list_jobs(request: Request, table: Annotated[str | None, Query(examples=["orders"])] = None) -> Any:
    """Returns the jobs among the newest 1000 runs, newest first."""
    context = context_of(request)
    name = path_table(context, table).table.name if table is not None else None
    return [
        views.run_view(run) for run in context.home.context.catalog.runs.list(name, _JOBS_MAX) if run.type in _TYPES
    ]


@router.get("/jobs/{job}", summary="Show a job", responses=shown(_RUN))
def show_job(request: Request, job: Annotated[str, Path(examples=["job_1637491080000"])]) -> Any:
    """Returns the run with its report, or with the error of a failed run."""
    run = context_of(request).home.run(job[:_LENGTH_MAX])
    if run.type not in _TYPES:
        raise NotFoundError(f"Run '{run.id}' is a {run.type}, no job.", hint=f"GET /runs/{run.id}")
    return _view(run)


def _view(run: RunRecord) -> dict[str, Any]:
    return {**views.run_view(run), **run_details(run)}
