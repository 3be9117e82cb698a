"""Every alert: its condition, how long that has to hold, what is said, what helps. Rules and webhooks follow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from models.alerts.condition import Comparison, Condition

KEEP_S = 60
"""Seconds for which an alert stands on after its condition has ceased to hold, so that it does not flicker."""
SILENT_S = 60.0
"""Seconds without metrics, or without a sign of the autoscaler, which come every second and every 10 s at most."""
UNSERVED_S = 120.0
"""Seconds without a sign of serving, which comes every 10 s at most, in which its server may be started again."""
SILENT, UNSERVED = "TidecastJobSilent", "TidecastJobNotForecast"
"""The alerts that no metrics come, and that serving says nothing: each also of what was heard long ago."""
INGEST_S = 3600.0
"""Seconds between two runs of the DAG `ingest_metrics`."""


@dataclass(frozen=True)
class Alert:
    """An alert.

    Attributes:
        name: by Prometheus' conventions.
        severity: "page" if somebody has to act now, "ticket" if within a day or so.
        condition: of the metrics.
        text: what is said; `{job}`, `{pool}`, `{topic}` and `{table}` stand for labels, `{value}` for the told value.
        unit: of the value: "s" for seconds, "times" for a rate, "share" for a part of a whole, "number" for a count.
        remedy: what helps.
        for_s: seconds for which the condition has to hold first.
    """

    name: str
    severity: Literal["page", "ticket"]
    condition: Condition
    text: str
    unit: Literal["s", "times", "share", "number"]
    remedy: str
    for_s: float = 0.0


def _when(*all: Comparison) -> Condition:
    return Condition(all)


_BROKER = Comparison("tidecast_broker_up", "==", 1)
_MEASURED = Comparison("tidecast_job_metric_timestamp_seconds", "<=", SILENT_S, age=True)
_BEAT = "tidecast_job_heartbeat_timestamp_seconds"
_DECIDED = Comparison(_BEAT, "<=", SILENT_S, where=(("by", "autoscaler"),), age=True)


def _burns(window: str) -> Comparison:
    return Comparison("tidecast_job_burn_rate", ">=", "tidecast_job_burn_rate_limit", where=(("window", window),))


ALERTS = (
    Alert(
        "TidecastBudgetBurnsFast", "page", _when(_burns("long"), _burns("short"), _MEASURED, _BROKER),
        "{job}: the error budget is being spent {value} times as fast as allowed", "times",
        "`tidecast job show JOB` says in its newest decision what is in the way: executors that have not come, more "
        "load than those there sustain, slow records, or too small a bound in the contract.",
    ),
    Alert(
        "TidecastBudgetSpent", "ticket", _when(Comparison("tidecast_job_error_budget_left_ratio", "<=", 0)),
        "{job}: the error budget is spent and the promise is broken; {value} of the budget is left", "share",
        "`tidecast advise JOB` says what would help most. Or promise only what the job can keep.",
    ),
    Alert(
        "TidecastTooFewExecutors", "ticket", _when(Comparison("tidecast_job_shortage", "==", 1), _DECIDED),
        "{job}: even the most executors that its contract allows are too few for the load, now or soon", "times",
        "The newest decision says how many are needed: raise `executors.max` in the contract and `executors=` of "
        "`attach`.",
        for_s=60,
    ),
    Alert(
        "TidecastPoolTooSmall", "ticket",
        _when(
            Comparison("tidecast_pool_short_cores", ">", 0),
            Comparison("tidecast_pool_division_timestamp_seconds", "<=", SILENT_S, age=True),
        ),
        "pool {pool}: its jobs ask for more cores than it has, now or by their forecasts; {value} more would be enough",
        "number",
        "The console's page of pools says from when until when, and whose promises that costs. Give the pool more "
        "cores, take a job or a replay out of that time, or raise the quota that holds it down.",
        for_s=60,
    ),
    Alert(
        SILENT, "page",
        _when(Comparison("tidecast_job_metric_timestamp_seconds", ">", SILENT_S, age=True), _BROKER),
        "{job}: no metrics for {value}; nothing is decided for it", "s",
        "Does the job run, and does its driver reach the broker? Its log (logger `tidecast`) says so. If the job was "
        "ended for good, remove its contract.",
        for_s=30,
    ),
    Alert(
        "TidecastJobNotDecided", "page",
        _when(Comparison(_BEAT, ">", SILENT_S, where=(("by", "autoscaler"),), age=True), _MEASURED, _BROKER),
        "{job}: for {value} nothing has been decided for it", "s",
        "See that `tidecast autoscale` runs on this broker and prefix, and that the job has a contract there. Then "
        "`tidecast job show JOB` says what is in the way: metrics that are too old as they come, an autoscaler without "
        "room, or two applications.",
        for_s=30,
    ),
    Alert(
        "TidecastDecisionNotFollowed", "page",
        _when(
            Comparison("tidecast_job_unfollowed_timestamp_seconds", ">", 120, age=True), _MEASURED, _DECIDED, _BROKER
        ),
        "{job}: for {value} its agent (mode act) has not asked for the number of executors that was decided", "s",
        "The driver's log says why a decision was refused: narrower `executors=` of `attach`, a missing signature, a "
        "clock that is wrong, or a cluster that refuses.",
    ),
    Alert(
        "TidecastExecutorsMissing", "ticket", _when(Comparison("tidecast_job_pending_executors", ">", 0), _MEASURED),
        "{job}: executors that were asked for and have not come: {value}", "number",
        "The cluster has no room for them, or cannot start them: look at its manager's page. If they usually take so "
        "long, nothing is wrong.",
        for_s=2700,
    ),
    Alert(
        UNSERVED, "ticket",
        _when(Comparison(_BEAT, ">", UNSERVED_S, where=(("by", "serving"),), age=True), _MEASURED, _BROKER),
        "{job}: no sign of serving for {value}; it is planned for without a forecast", "s",
        "See that the DAG `serve_forecasts` runs and is not paused; its log says what stopped it.",
        for_s=30,
    ),
    Alert(
        "TidecastLoadDrifted", "ticket",
        _when(Comparison("tidecast_job_drift_timestamp_seconds", "<", 86_400, age=True)),
        "{job}: its load, or the error of its forecasts, has changed for good (found {value} ago)", "s",
        "The retrain DAG trains on it; see whether its challenger wins (`tidecast models list JOB`).",
    ),
    Alert(
        "TidecastContractWrong", "ticket", _when(Comparison("tidecast_job_contract_valid", "==", 0)),
        "{job}: its contract cannot be read; the one accepted last stays in force", "times",
        "`tidecast contract check JOB` says what is wrong, and in which line.",
        for_s=60,
    ),
    Alert(
        "TidecastIngestStuck", "ticket",
        _when(
            Comparison("tidecast_ingest_timestamp_seconds", ">", INGEST_S, age=True),
            Comparison("tidecast_ingest_waiting_records", ">", 0), _BROKER,
        ),
        "records of the topic {topic} are waiting, and none have been ingested for {value}", "s",
        "In Airflow: is `ingest_metrics` paused, failed or queued? Its log says what stopped it; records stay on the "
        "topic for `kafka.retention_h`.",
        for_s=2 * INGEST_S,  # a topic on which a record is rare has an old ingest, until the next run takes it
    ),
    Alert(
        "TidecastLakeFillsDisk", "ticket",
        _when(Comparison("tidecast_lake_disk_free_bytes", "<=", "tidecast_lake_day_growth_bytes", times=14)),
        "the disk of the lake is full, or will be within two weeks if it grows as it did last", "times",
        "See whether the DAG `maintain_lake` runs, which removes what nobody can read any more. Make room, or move the "
        "lake alone to another disk while no ingest, training or upkeep runs: end the stack first where `make up` "
        "started it, name the folder in `lake.address`, start stack or containers again, and restart "
        "`tidecast metrics`.",
        for_s=600,
    ),
    Alert(
        "TidecastLakeNotMaintained", "ticket", _when(Comparison("tidecast_lake_files", ">", 500)),
        "the lake's table {table} has {value} data files, which nothing merges", "number",
        "Switch the DAG `maintain_lake` on, or see why it failed.",
        for_s=600,
    ),
    Alert(
        "TidecastBrokerAway", "page", _when(Comparison("tidecast_broker_up", "==", 0)),
        "the broker does not answer; nothing is measured, decided or forecast", "times",
        "Bring the broker back; agents keep their executors meanwhile, and what is missed is caught up. If it is "
        "running, the stderr of `tidecast metrics` says why it cannot be reached.",
        for_s=60,
    ),
)  # fmt: skip
"""Those that hold for Prometheus and for webhooks alike."""
BY_NAME = {alert.name: alert for alert in ALERTS}
