"""All assets, each declared once and shared by its producers and consumers."""

from airflow.sdk import Asset, AssetAlias

METRICS = Asset(name="metrics", uri="tidecast://lake/metrics", group="lake")
"""The lake's metrics table; an event says that an ingest stored rows, and carries its counts."""

METRICS_STORED = AssetAlias(name="metrics_stored")
"""Declared by the ingest in place of METRICS, because an ingest that stores nothing must start no training."""

DRIFT = Asset(name="drift", uri="tidecast://lake/drift", group="lake")
"""A load, or the error of its forecasts, has changed for good; an event says what changed and when."""

DRIFT_FOUND = AssetAlias(name="drift_found")
"""Declared by the ingest in place of DRIFT, because most ingests find no drift."""
