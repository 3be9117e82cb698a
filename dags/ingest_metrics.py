"""Take new metrics, forecasts, decisions and outcomes from Kafka through the quality gate into the lake.

Runs every hour, or by hand with a partition. A partition is the name of what one run takes: an event hour
(`2014-10-22T04`) or an interval of event hours (`2014-09-24T04/2014-10-22T04`). It does not select records by time. The
first run with a name takes everything that has come since the last run. Another run with the same name reads the same
offsets again, changes nothing and trains nothing. So does a run that has ended and is cleared, but it reports its
metrics once more, and the training that this starts leaves out jobs whose load is known.

Records that break a rule go to the table `quarantine`, with the reasons. If new metrics were stored, the asset
`tidecast.metrics` says so, and that starts the training of forecasters. If a load or the error of its forecasts has
changed for good, the asset `tidecast.drift` says since when and by how much.

What keeps a topic from the lake fails the run at its end, with a message that names the topic: the broker no longer has
what it needs; its table cannot be read or written; its quality gate itself failed; or records of several jobs are ahead
of this computer's clock, which then seems to be behind. The other topics are ingested.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task

from dags.assets import DRIFT, DRIFT_FOUND, METRICS, METRICS_STORED
from dags.defaults import DEFAULTS, JOBS, optional_field, result_of, utc_cron

DRIFTS_EACH = 50
"""Newest events of DRIFT per job with a contract that are looked at, of which each job's last one counts. Behind so
many lies one of months ago; of a job that has sent nothing since, its drift is reported once more."""
HOUR = r"\d{4}-\d\d-\d\dT\d\d"
FORM = {
    "partition": optional_field(
        "string",
        "Partition",
        "Event hour, e.g. 2014-10-22T04, or interval of event hours, e.g. 2014-09-24T04/2014-10-22T04. Empty: the hour "
        "of the schedule; started otherwise, the present moment. A name that was used before reads that run's offsets "
        "again.",
        pattern=rf"^{HOUR}(/{HOUR}|\d{{4}})?$",
    ),
    "skip_lost": Param(
        False,
        type="boolean",
        title="Skip lost records",
        description="In all topics, skip records that the broker's retention deleted before they were ingested, or "
        "before the refused ones among them reached the quarantine. The log says how many of each.",
    ),
}


@dag(
    schedule=utc_cron("0 * * * *", interval=timedelta(hours=1)),
    params=FORM,
    tags=["tidecast", "ingest", "lake"],
    doc_md=__doc__,
    **DEFAULTS,
)
def ingest_metrics() -> None:
    """Build the DAG: `ingest` fills the lake and reports asset events; `name_troubles` fails on trouble."""

    # Airflow's own backfill has a number of runs at a time of its own, ten where none is given.
    @task(inlets=[DRIFT], outlets=[METRICS_STORED, DRIFT_FOUND], max_active_tis_per_dag=1)
    def ingest(
        params: Any = None, dag_run: Any = None, ti: Any = None, inlet_events: Any = None, outlet_events: Any = None
    ) -> dict[str, Any]:
        """Take what a partition names from Kafka into the lake, and report new metrics and drifts as asset events.

        An ingest that stored no metrics and a re-run send no event, so they start no training; a run that is cleared
        sends its own again. A drift that an earlier event reported is not reported again.

        Returns:
            By topic, numbers of records `read`, `stored` and `quarantined`; `warnings` (by column, stored records that
            broke a rule which only warns); `offsets` ({Kafka partition: [start, end)}); `version` of the Delta
            table, or None; `again`: whether this is a re-run; `trouble`: why nothing was taken, or drifts were not
            looked for, else empty.

        Raises:
            PartitionError: no such partition, or its hour is not over (no retry).
            BrokerError: no broker, or no such topic; it stopped answering.
            JavaError, JarsError: Spark cannot start.
            SettingsError, OSError, PySparkException: a wrong setting; the lake cannot be written; a Spark job failed.
        """
        from pipelines.ingest import ingest, partition

        # What starts other runs, a person, a DAG or an asset, gives them an interval, too: of an hour that is taken.
        hour = dag_run.data_interval_start if dag_run.run_type in ("scheduled", "backfill") else None
        name = params["partition"] or partition.default_name(hour, dag_run.run_after)
        newest = inlet_events[DRIFT].ascending(False).limit(DRIFTS_EACH * max(len(JOBS), 1))
        reported = [event.extra for event in newest]
        counts, drifts = ingest(name, params["skip_lost"], reported)
        # A later try has to report what an earlier one stored. It cannot tell whether that had failed or was cleared.
        repeated = counts["metrics"]["again"] and ti.try_number == 1
        if counts["metrics"]["stored"] and not repeated:
            outlet_events[METRICS_STORED].add(METRICS, extra={"partition": name, **counts["metrics"]})
        for drift in drifts:
            outlet_events[DRIFT_FOUND].add(DRIFT, extra=drift)
        return counts

    @task
    def name_troubles(counts: dict[str, dict[str, Any]]) -> None:
        """Fail the run if a topic was not taken or drifts not looked for; a failed `ingest` would send no event.

        Raises:
            AirflowSkipException: `ingest` has no result.
            OffsetsError: the broker no longer has what a topic needs, or has another topic of that name; a table
                cannot be read or written; its quality gate failed; or this computer's clock seems to be behind (no
                retry).
        """
        from pipelines.ingest import refuse_troubles

        refuse_troubles(result_of("ingest", counts))

    counts: Any = ingest()
    name_troubles(counts)


ingest_metrics()
