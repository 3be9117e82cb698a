"""Every metric that is exposed: its name by Prometheus' conventions, its kind, its labels and its one meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """A metric.

    Attributes:
        name: as it is exposed, with its unit, a counter's with `_total`, an information's with `_info`.
        kind: of metric.
        text: what it says, in one sentence.
        labels: names of its labels.
    """

    name: str
    kind: Literal["gauge", "counter", "info"]
    text: str
    labels: tuple[str, ...] = ()


class Sample(NamedTuple):
    """A value of a metric; `labels` has one text for each of its labels."""

    metric: str
    labels: Mapping[str, str]
    value: float


def _of_job(name: str, text: str, *labels: str, kind: Literal["gauge", "counter", "info"] = "gauge") -> Metric:
    return Metric(f"tidecast_job_{name}", kind, text, ("job", *labels))


METRICS = (
    _of_job("contract_valid", "Whether the job's contract can be read: 1 or 0."),
    _of_job("latency_target_seconds", "What the contract promises."),
    _of_job("error_budget_ratio", "Share of the seconds that may be late, by the contract."),
    _of_job("least_executors", "Fewest executors that the contract allows."),
    _of_job("most_executors", "Most executors that the contract allows."),
    _of_job("mode", "1 for the mode that the job's agent is in.", "mode"),
    _of_job("arrival_records_per_second", "Records that producers make, in the newest second that was measured."),
    _of_job("forecast_records_per_second", "Median of the newest forecast for the step that it begins with."),
    _of_job("lag_records", "Records that are produced and not yet processed."),
    _of_job("executors", "Executors that run."),
    _of_job("pending_executors", "Executors that the agent has asked for and that have not come."),
    _of_job("target_executors", "Executors that the standing decision asks for."),
    _of_job("latency_seconds", "Latency of the newest batch's records at a level: 0.5, 0.95, 1 (the worst).", "level"),
    _of_job("window_late_seconds", "Late seconds within the window of the promise."),
    _of_job("error_budget_left_ratio", "Share of the error budget that is left; negative where it is overspent."),
    _of_job("burn_rate", "How many times as fast as allowed the error budget goes, by window: long, short.", "window"),
    _of_job("burn_rate_limit", "The burn rate from which on, in both windows, the budget goes too fast."),
    _of_job("late_seconds_total", "Late seconds since this process began.", kind="counter"),
    _of_job("production_seconds_total", "Seconds of production since this process began.", kind="counter"),
    _of_job("decisions_total", "Decisions since this process began.", kind="counter"),
    _of_job("outcomes_total", "Outcomes of decisions since this process began.", "status", kind="counter"),
    _of_job("shortage", "Whether the newest decision says that the most executors are too few: 1 or 0."),
    _of_job("response_changed", "Whether the newest decision says that the job responds as it did not before: 1 or 0."),
    _of_job("metric_timestamp_seconds", "When the newest metrics were measured."),
    _of_job("decision_timestamp_seconds", "When the newest decision was made."),
    _of_job("forecast_timestamp_seconds", "When the newest forecast was made."),
    _of_job(
        "heartbeat_timestamp_seconds",
        "When decision or forecast was last made or vouched for, or the job's metrics began where that is later.",
        "by",
    ),
    _of_job(
        "unfollowed_timestamp_seconds",
        "Since when an agent that acts has not asked for the executors that are decided; none where it has.",
    ),
    _of_job("champion_info", "The model that made the newest forecast.", "model", "version", "kind", kind="info"),
    _of_job("wanted_executors", "Executors for live records that it asks its pool for.", "pool"),
    _of_job("granted_executors", "Executors for live records that it may have of its pool.", "pool"),
    _of_job("drift_timestamp_seconds", "When the newest lasting change of load or forecast error was reported."),
    _of_job("drift_ratio", "By how much the load or error changed then: 1.3 is 30 % more."),
    Metric("tidecast_pool_cores", "gauge", "Cores that a pool has by its file.", ("pool",)),
    Metric("tidecast_pool_usable_cores", "gauge", "Cores of it that its quotas leave.", ("pool",)),
    Metric("tidecast_pool_granted_cores", "gauge", "Cores of all executors that its jobs may have.", ("pool",)),
    Metric(
        "tidecast_pool_short_cores", "gauge",
        "Cores more that would be enough for what its jobs ask for, now or by their forecasts; 0 where it has them.",
        ("pool",),
    ),
    Metric(
        "tidecast_pool_shortage_timestamp_seconds", "gauge", "From when on it has too few; none where it has enough.",
        ("pool",),
    ),
    Metric(
        "tidecast_pool_division_timestamp_seconds", "gauge", "When the autoscaler last said how it stands.", ("pool",)
    ),
    Metric("tidecast_broker_up", "gauge", "Whether the broker answers: 1 or 0."),
    Metric(
        "tidecast_refused_records_total",
        "counter",
        "Records on the topic `rejects` since this process began; of a job's refused metrics autoscaler and servers "
        "send one per reason and minute.",
        ("by",),
    ),
    Metric("tidecast_ingest_timestamp_seconds", "gauge", "When a topic's newest ingest began.", ("topic",)),
    Metric("tidecast_ingest_stored_records", "gauge", "Records that it stored.", ("topic",)),
    Metric("tidecast_ingest_quarantined_records", "gauge", "Records that it refused.", ("topic",)),
    Metric("tidecast_ingest_waiting_records", "gauge", "Records of a topic that no ingest has taken yet.", ("topic",)),
    Metric("tidecast_lake_size_bytes", "gauge", "Size of a table of the lake, replaced files included.", ("table",)),
    Metric("tidecast_lake_files", "gauge", "Data files of a table of the lake, replaced ones included.", ("table",)),
    Metric(
        "tidecast_lake_day_growth_bytes", "gauge",
        "Data that ingests added to the lake in the 24 hours up to each table's newest; of the last 14 days.",
    ),
    Metric("tidecast_lake_disk_free_bytes", "gauge", "Room that is left where the lake is."),
    Metric("tidecast_webhook_failures_total", "counter", "Messages that a host's webhooks did not take.", ("host",)),
    Metric("tidecast_follower_timestamp_seconds", "gauge", "When this process last looked at what it knows."),
)  # fmt: skip
"""In the order in which they are exposed; times are seconds since 1970."""
BY_NAME = {metric.name: metric for metric in METRICS}
