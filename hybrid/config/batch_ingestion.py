"""Reads Pinot's batchIngestionConfig: how jobs push to the OFFLINE half."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hybrid.schema.document import Section


class IngestionType(StrEnum):
    """The kind of a push: APPEND adds the data of new times, REFRESH reloads the data of the table."""

    APPEND = "APPEND"
    REFRESH = "REFRESH"


@dataclass(frozen=True)
class BatchIngestion:
    """How jobs push. `hourly`: every hour, else every day. `consistent`: a refresh replaces the whole half."""

    type: IngestionType = IngestionType.APPEND
    hourly: bool = False
    consistent: bool = False

    @property
    def replaces_all(self) -> bool:
        """Whether a job's segments replace the whole half, as in Pinot's consistent push."""
        return self.consistent and self.type is IngestionType.REFRESH


def parse_batch_ingestion(top: Section) -> BatchIngestion:
    """The batch ingestion of the OFFLINE config `top`. Type and frequency have an old and a new place, as in Pinot."""
    batch, older = top.section("ingestionConfig").section("batchIngestionConfig"), top.section("segmentsConfig")
    frequency = batch.doc.get("segmentIngestionFrequency") or older.doc.get("segmentPushFrequency")
    return BatchIngestion(_type(batch, older), str(frequency).upper() == "HOURLY", batch.boolean("consistentDataPush"))


def _type(batch: Section, older: Section) -> IngestionType:
    types = tuple(IngestionType)
    if batch.has("segmentIngestionType"):
        return IngestionType(batch.choice("segmentIngestionType", types))
    return IngestionType(older.choice("segmentPushType", types)) if older.has("segmentPushType") else types[0]
