"""What an OFFLINE table config says of the jobs that push to it: Pinot's batchIngestionConfig."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hybrid.schema.document import Section


class IngestionType(StrEnum):
    """What a push is: APPEND adds the data of new times, REFRESH gives the data of the table anew."""

    APPEND = "APPEND"
    REFRESH = "REFRESH"


@dataclass(frozen=True)
class BatchIngestion:
    """`hourly`: pushes come by the hour, else by the day. `consistent`: a refresh replaces all the half holds."""

    type: IngestionType = IngestionType.APPEND
    hourly: bool = False
    consistent: bool = False

    @property
    def replaces_all(self) -> bool:
        """Whether a job's segments are all that the half is to hold, as in Pinot's consistent push."""
        return self.consistent and self.type is IngestionType.REFRESH


def parse_batch_ingestion(top: Section) -> BatchIngestion:
    """What the OFFLINE config `top` says; type and frequency stand in two places, as in Pinot."""
    batch, older = top.section("ingestionConfig").section("batchIngestionConfig"), top.section("segmentsConfig")
    frequency = batch.doc.get("segmentIngestionFrequency") or older.doc.get("segmentPushFrequency")
    return BatchIngestion(_type(batch, older), str(frequency).upper() == "HOURLY", batch.boolean("consistentDataPush"))


def _type(batch: Section, older: Section) -> IngestionType:
    known = tuple(IngestionType)
    if batch.has("segmentIngestionType"):
        return IngestionType(batch.choice("segmentIngestionType", known))
    return IngestionType(older.choice("segmentPushType", known)) if older.has("segmentPushType") else known[0]
