"""Train a forecaster per job on the lake, compare it with the champion, and let the gate decide.

Runs when new metrics are in the lake, when a load has drifted, every night, or by hand with other settings. Jobs
without data are left out; if no job has data, the run is skipped. Unless you filled in the form, a job is also skipped
if its load and settings are those of its newest version, except where that version won but could not be promoted.

The seasonal naive forecast is registered first, so there is always a champion; with too little data it stays champion.
A job with a short history also learns from the other jobs. Every training is a run in MLflow, with the reason of its
verdict.

A job whose load has drifted comes before all others. Jobs whose turn comes later than `retraining.begin_s` after the
start of the run are skipped, and come first in the next run. If `training.approval_s` is set, the DAG approve_champion
asks a person about each winner while this one goes on; otherwise `won` and `ask` are skipped.
"""

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import AssetOrTimeSchedule, dag, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from dags.assets import DRIFT, METRICS
from dags.defaults import (
    AT_ONCE,
    DEFAULTS,
    LONGEST,
    OF_ITS_JOB,
    OF_JOB,
    SETTINGS,
    filled_fields,
    job_field,
    optional_field,
    requested_jobs,
    result_of,
    skip_late,
    utc_cron,
)

APPROVAL_S = SETTINGS.training.approval_s
ASKING_RUN = (
    "{% set verdict = ti.xcom_pull(task_ids='one_job.judge', map_indexes=ti.map_index) %}"
    "winner_{{ verdict['job'] }}_{{ verdict['version'] }}_{{ verdict['run'] }}"
)
"""Id of the run of approve_champion, so that a task that is tried again asks no second time."""
FORM = {
    "epochs": optional_field(
        "integer", "Epochs", "Passes over the training windows. Empty: as in the settings.", minimum=1
    ),
    "hidden": optional_field("integer", "Hidden size", "Units of the GRU. Empty: as in the settings.", minimum=1),
    "context": optional_field(
        "integer", "Context", "Steps through which a gradient looks back. Empty: as in the settings.", minimum=2
    ),
    "learning_rate": optional_field(
        "number", "Learning rate", "Learning rate of the Adam optimiser. Empty: as in the settings.", exclusiveMinimum=0
    ),
    "holdout_steps": optional_field(
        "integer", "Held-out steps", "Newest steps, on which all are compared. Empty: as in the settings.", minimum=24
    ),
    "minimum_steps": optional_field(
        "integer", "Minimum steps", "With fewer steps no network is trained. Empty: as in the settings.", minimum=1
    ),
    "improvement": optional_field(
        "number",
        "Improvement",
        "Share by which a challenger must beat the champion. Empty: as in the settings.",
        minimum=0,
        maximum=0.99,
    ),
}


@dag(
    schedule=AssetOrTimeSchedule(timetable=utc_cron("30 2 * * *"), assets=METRICS | DRIFT),
    params={"job": job_field("Job whose load is learned. Empty: every job with data in the lake."), **FORM},
    tags=["tidecast", "forecasting", "training"],
    doc_md=__doc__,
    **DEFAULTS,
)
def retrain_forecaster() -> None:
    """Build the DAG: for each job with data `train` a challenger and `judge` it, `retraining.at_once` at a time.

    A winner is promoted at once, or, if `training.approval_s` is set, by a run of the DAG approve_champion, which `ask`
    starts. The graph is the same in both cases: the processor of DAGs, which makes it, may have other settings than the
    workers, and a winner that one leaves to the other would never serve.
    """

    @task
    def enough(params: Any = None, triggering_asset_events: Any = None) -> list[str]:
        """List the jobs with data in the lake: those with a drifted load first, then those that have waited longest."""
        from pipelines.airflow.drifts import valid_drifts
        from pipelines.train.forecaster import run as forecaster

        drifted = {drift["job"] for drift in valid_drifts(event.extra for event in triggering_asset_events[DRIFT])}
        return forecaster.jobs_with_training_data(requested_jobs(params), drifted)

    @task(max_active_tis_per_dagrun=AT_ONCE, execution_timeout=LONGEST, map_index_template=OF_JOB)
    def train(
        job: str, params: Any = None, triggering_asset_events: Any = None, dag_run: Any = None, ti: Any = None
    ) -> dict[str, str]:  # fmt: skip
        """Train a forecaster for one job with the form's values; returns `job` and `run_id` of the MLflow run.

        Raises:
            AirflowSkipException: load, settings and champion are those of its newest version; or this run begins no
                more trainings.
            SettingsError, LakeError: a wrong value or contract; nothing was ingested (no retry).
            FinalError: this run begins no more trainings, and a try of this one failed.
            SeriesError: the job's times span over 10⁶ steps, or a load is negative.
            RegistryError, JavaError, JarsError: MLflow does not answer; Spark cannot start.
        """
        from pipelines.airflow.drifts import valid_drifts
        from pipelines.train.forecaster import run as forecaster

        skip_late(dag_run, ti)
        drifts = valid_drifts(event.extra for event in triggering_asset_events[DRIFT])
        because = [drift["text"] for drift in drifts if drift["job"] == job]
        try:
            return {"job": job, "run_id": forecaster.train(job, because, **filled_fields(params, FORM))}
        except forecaster.UnchangedError as error:
            raise AirflowSkipException(str(error)) from None

    @task(map_index_template=OF_ITS_JOB)
    def judge(trained: dict[str, str]) -> dict[str, Any]:
        """Decide whether the challenger beats the champion, which serves; promote it unless a person is to be asked.

        Returns:
            `job`; `promoted` (whether it won); `reason` (text); `version` registered (None: no challenger); `champion`,
            the version compared with (None: none); `run` (id); `challenger_loss`, `champion_loss`, `naive_loss`: mean
            pinball losses on held-out steps, records/s, None where unknown.

        Raises:
            AirflowSkipException: `train` has no result.
            RegistryError, MlflowException: MLflow does not answer or has no such run; it refuses to store the verdict.
            KeyError: the run lacks the parameter `improvement`.
        """
        from pipelines.train.forecaster import run as forecaster

        trained = result_of("train", trained)
        verdict = forecaster.decide_on_challenger(trained["job"], trained["run_id"])
        if not APPROVAL_S:
            return dict(forecaster.promote(verdict))
        return verdict

    @task(map_index_template=OF_ITS_JOB)
    def won(verdict: dict[str, Any]) -> None:
        """Pass if the challenger won and a person is to be asked.

        Raises:
            AirflowSkipException: it lost, nobody is asked, or `judge` has no result; the message says why.
        """
        if not result_of("judge", verdict)["promoted"]:
            raise AirflowSkipException(verdict["reason"])
        if not APPROVAL_S:
            raise AirflowSkipException("nobody is asked (training.approval_s is 0): `judge` has let it serve")

    @task_group
    def one_job(job: str) -> None:
        """Train and judge, and have a person asked about a winner if `training.approval_s` is set."""
        trained: Any = train(job)
        verdict: Any = judge(trained)
        won(verdict) >> TriggerDagRunOperator(
            task_id="ask",
            trigger_dag_id="approve_champion",
            trigger_run_id=ASKING_RUN,
            conf={"verdict": verdict},
            logical_date=None,  # two jobs may have winners at the same moment
            skip_when_already_exists=True,
            map_index_template="{{ task.conf['verdict']['job'] }}",
        )

    one_job.expand(job=enough())  # over no job at all, all of it is skipped


retrain_forecaster()
