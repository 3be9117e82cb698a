"""Metrics in: read a range of offsets, check quality, write one partition of the lake."""

from pipelines.ingest.run import ingest, refuse_troubles

__all__ = ["ingest", "refuse_troubles"]
