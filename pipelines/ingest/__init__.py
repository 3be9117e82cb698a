"""Metrics in: read a range of offsets, check quality, write one partition of the lake."""

from pipelines.ingest.counts import refuse_troubles
from pipelines.ingest.run import ingest

__all__ = ["ingest", "refuse_troubles"]
