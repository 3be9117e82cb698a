"""Names of ours that Airflow keeps: one Airflow has each only once, whoever's DAGs are in it."""

INGEST_DAG = "ingest_metrics"
"""The DAG that reports new metrics and drifts."""
METRICS, DRIFT = "tidecast.metrics", "tidecast.drift"
"""The assets by which it does; a neighbour's asset of the same name would keep ours from being active, and each ingest
from beginning."""
