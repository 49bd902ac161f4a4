"""`JobRequest`: a job spec as a client sends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.config.job_spec import JobSpec
    from hybrid.operations.job_input import GivenToJob


@dataclass(frozen=True)
class JobRequest:
    """The YAML text `spec` of the file `source` in `folder`, with `variables` to fill in.

    `input_dir`, `covers` and `sql` are as in `hybrid.api.hybrid.Hybrid.run_job`.
    """

    spec: str
    source: str
    folder: str
    variables: Mapping[str, str]
    input_dir: str | None = None
    covers: str | None = None
    sql: str | None = None

    @property
    def given(self) -> GivenToJob:
        """The arguments beside the spec."""
        from hybrid.operations.job_input import GivenToJob

        return GivenToJob(self.covers, self.sql)

    def parse(self, now_ms: int) -> JobSpec:
        """The job that it describes. UsageError when both `input_dir` and `sql` are given."""
        from hybrid.config.job_document import job_document
        from hybrid.config.job_spec import parse_job_spec

        document, input_dir = job_document(self.spec, self.source), self.given.input_dir(self.input_dir)
        return parse_job_spec(document, self.source, Path(self.folder), self.variables, input_dir, now_ms)
