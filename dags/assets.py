"""Every asset, declared once, shared by producer and consumer."""

from airflow.sdk import Asset, AssetAlias

METRICS = Asset(name="metrics", uri="tidecast://lake/metrics", group="lake")
"""The lake's metrics table; an event means that an ingest stored rows, and carries its counts."""

METRICS_STORED = AssetAlias(name="metrics_stored")
"""Declared by the ingest in place of METRICS, as an ingest that stores nothing must start no training."""

DRIFT = Asset(name="drift", uri="tidecast://lake/drift", group="lake")
"""A load, or the error of its forecasts, has changed for good; an event carries what changed, and when."""

DRIFT_FOUND = AssetAlias(name="drift_found")
"""Declared by the ingest in place of DRIFT, as most ingests find none."""
