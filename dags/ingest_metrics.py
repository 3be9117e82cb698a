"""Take new metrics, forecasts, decisions and outcomes from Kafka through the quality gate into the lake.

Every hour, or by hand with a partition: an event hour (`2014-10-22T04`) or an interval of event hours
(`2014-09-24T04/2014-10-22T04`). The first run of a partition takes everything that came since the last one; a second
run of the same partition reads the same offsets again and changes nothing. Records that break a rule go to the table
`quarantine` with their reasons. When new metrics were stored, the asset `metrics` says so, and forecasters are trained.
When a load or the error of its forecasts has changed for good, the asset `drift` says since when and by how much.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, task

from dags.assets import DRIFT, DRIFT_FOUND, METRICS, METRICS_STORED
from dags.defaults import DEFAULTS

HOUR = r"\d{4}-\d\d-\d\dT\d\d"
FORM = {
    "partition": Param(
        None,
        type=["null", "string"],
        pattern=rf"^{HOUR}(/{HOUR}|\d{{4}})?$",
        title="Partition",
        description="Event hour, as 2014-10-22T04, or interval of event hours, as 2014-09-24T04/2014-10-22T04. "
        "Empty: the hour the run is scheduled for; by hand, its moment. A name used before repeats that run's offsets.",
    ),
    "skip_lost": Param(
        False,
        type="boolean",
        title="Skip lost records",
        description="Go on behind records that the broker's retention deleted before they were ingested.",
    ),
}


@dag(
    # Neither a start date nor "immediately": unpausing must not start a run beside the one that a person asks for.
    schedule=CronTriggerTimetable(
        "0 * * * *", timezone="UTC", interval=timedelta(hours=1), run_immediately=timedelta()
    ),
    catchup=False,
    max_active_runs=1,  # ranges of offsets are taken in turn
    is_paused_upon_creation=True,
    params=FORM,
    tags=["ingest", "lake"],
    doc_md=__doc__,
    default_args=DEFAULTS,
)
def ingest_metrics() -> None:
    """See the module."""

    @task(inlets=[DRIFT], outlets=[METRICS_STORED, DRIFT_FOUND])
    def ingest(
        params: Any = None, dag_run: Any = None, ti: Any = None, inlet_events: Any = None, outlet_events: Any = None
    ) -> dict[str, Any]:
        from pipelines.ingest import ingest, partition

        hour = None if dag_run.run_type == "manual" else dag_run.data_interval_start
        name = params["partition"] or partition.of_run(hour, dag_run.run_after)
        reported = [event.extra for event in inlet_events[DRIFT]]
        counts, drifts = ingest(name, params["skip_lost"], reported)
        repeated = (
            counts["metrics"]["again"] and ti.try_number == 1
        )  # a later try has to tell what an earlier one stored
        if counts["metrics"]["stored"] and not repeated:
            outlet_events[METRICS_STORED].add(METRICS, extra={"partition": name, **counts["metrics"]})
        for drift in drifts:
            outlet_events[DRIFT_FOUND].add(DRIFT, extra=drift)
        return counts

    ingest()


ingest_metrics()
