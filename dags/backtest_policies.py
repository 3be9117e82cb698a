"""What every policy would have cost on a job's last days, replayed in its twin (a simulator of the job).

Runs every night, or by hand for one job. Where a fit of the job is stored (`tidecast twin fit`) the twin is that one,
else it is the job as its contract describes it. The figures, the page with cost against time over the target, and what
a forecast is worth there are in MLflow, in a run with the tag `kind=backtest`. Nothing is changed by it. A load that is
too short or has gaps is skipped, with the reason; a stored fit that cannot be read fails the run.
"""

from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.defaults import DEFAULTS, job_field, optional_field, requested_jobs, utc_cron


@dag(
    schedule=utc_cron("30 4 * * *"),
    params={
        "job": job_field("Whose load is replayed. Empty: every job with enough of it in the lake."),
        "policies": Param("all", type="string", title="Policies", description="Names separated by commas, or all."),
        "days": optional_field("number", "Days", "Newest days of the trace that are looked at. Empty: all there are.",
                      exclusiveMinimum=0),
    },
    tags=["policies", "evaluation"],
    doc_md=__doc__,
    **DEFAULTS,
)  # fmt: skip
def backtest_policies() -> None:
    """Build the DAG: `replay` each job that `replayable` finds to have enough load, one after the other."""

    @task
    def replayable(params: Any = None) -> list[str]:
        """Name the jobs with enough load in the lake."""
        from pipelines.backtest import on_lake

        return on_lake.jobs_with_enough_load(requested_jobs(params))

    # One after the other; each uses a core for minutes.
    @task(max_active_tis_per_dagrun=1, map_index_template="{{ task.op_kwargs['job'] }}")
    def replay(job: str, params: Any = None) -> dict[str, Any]:
        """Replay one job's load under the policies in its simulator; log figures and page as an MLflow run, in minutes.

        Returns:
            `job`, `run` (id of the MLflow run) and `verdict` (list of sentences).

        Raises:
            AirflowSkipException: the load is too short or has gaps.
            SettingsError, LakeError: an unknown policy or a wrong contract; nothing was ingested (no retry).
            TwinError: the stored fit cannot be read or is unfinished.
            SeriesError, RegistryError, JavaError, JarsError: over 10⁶ steps; no answer of MLflow; Spark cannot start.
        """
        from models.twin.sim.job import ShortLoadError
        from pipelines.backtest import on_lake

        try:
            return on_lake.backtest_job(job, params["policies"], params["days"])
        except ShortLoadError as error:  # tomorrow there is more of it
            raise AirflowSkipException(str(error)) from None

    replay.expand(job=replayable())


backtest_policies()
