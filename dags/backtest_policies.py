"""Replay a job's last days in its twin (a simulator of the job), and say what each policy would have cost.

Runs every night for all jobs, or by hand for one. If a fit of the job is stored (`tidecast twin fit`), that is the
twin; otherwise the twin is the job as its contract describes it. The figures, a page with cost against time over the
target, and what a forecast is worth for this job go to MLflow, to a run with the tag `kind=backtest`. The DAG changes
nothing else. A load that is too short or has gaps is skipped, with the reason. A stored fit that cannot be read fails
the run.
"""

from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.defaults import DEFAULTS, job_field, optional_field, requested_jobs, utc_cron


@dag(
    schedule=utc_cron("30 4 * * *"),
    params={
        "job": job_field("Job whose load is replayed. Empty: every job with enough load in the lake."),
        "policies": Param("all", type="string", title="Policies", description="Names, separated by commas, or all."),
        "days": optional_field("number", "Days", "How many of the newest days are replayed. Empty: all.",
                      exclusiveMinimum=0),
    },
    tags=["tidecast", "policies", "evaluation"],
    doc_md=__doc__,
    **DEFAULTS,
)  # fmt: skip
def backtest_policies() -> None:
    """Build the DAG: `replayable` finds the jobs with enough load, and `replay` replays them one after the other."""

    @task
    def replayable(params: Any = None) -> list[str]:
        """List the jobs with enough load in the lake."""
        from pipelines.backtest import on_lake

        return on_lake.jobs_with_enough_load(requested_jobs(params))

    # One after the other; each uses a core for minutes.
    @task(max_active_tis_per_dagrun=1, map_index_template="{{ task.op_kwargs['job'] }}")
    def replay(job: str, params: Any = None) -> dict[str, Any]:
        """Replay one job's load in its twin under each policy, which takes minutes; log figures and page to MLflow.

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
