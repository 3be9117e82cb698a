"""All assets, each declared once and shared by its producers and consumers."""

from airflow.sdk import Asset, AssetAlias

from pipelines.airflow import names

METRICS = Asset(name=names.METRICS, group="lake")
"""The lake's metrics table; an event says that an ingest stored rows, and carries its counts."""

METRICS_STORED = AssetAlias(name=f"{names.METRICS}_stored")
"""Declared by the ingest in place of METRICS, because an ingest that stores nothing must start no training."""

DRIFT = Asset(name=names.DRIFT, group="lake")
"""A load, or the error of its forecasts, has changed for good; an event says what changed and when."""

DRIFT_FOUND = AssetAlias(name=f"{names.DRIFT}_found")
"""Declared by the ingest in place of DRIFT, because most ingests find no drift."""
