"""Train a DQN agent per job in its twin, compare it with other policies on held-out load, and let the gate decide.

Runs every Sunday night, or by hand with other settings; new metrics start no training. The twin is fitted to the job's
batches in the lake. If there are too few of them, it is the stored fit, or what the contract states; the run says
which. The agent learns on drawn jobs and loads first, then in the twin.

It becomes champion only if, at the contract's error budget, it is surely 3 % cheaper than forecast and mpc, and no
dearer than the agent that serves. Otherwise, and after a failure, the champion stays. Jobs without data are left out;
if no job has data, the run is skipped. Jobs whose turn comes later than `retraining.begin_s` after the start of the run
are skipped, and come first in the next run.
"""

from typing import Any

from airflow.sdk import dag, task, task_group

from dags.defaults import (
    AT_ONCE,
    DEFAULTS,
    LONGEST,
    OF_ITS_JOB,
    OF_JOB,
    filled_fields,
    job_field,
    optional_field,
    requested_jobs,
    result_of,
    skip_late,
    utc_cron,
)

FORM = {
    "transitions": optional_field(
        "integer", "Transitions", "Decisions over drawn jobs and loads. Empty: as in the settings.", minimum=800
    ),
    "fine_transitions": optional_field(
        "integer", "Fine-tuning", "Decisions in the job's own twin. Empty: as in the settings.", minimum=300
    ),
    "seed": optional_field("integer", "Seed", "Seed of all that is drawn. Empty: as in the settings.", minimum=0),
}


@dag(
    schedule=utc_cron("30 5 * * 0"),
    params={"job": job_field("Job whose agent is trained. Empty: every job with enough load in the lake."), **FORM},
    tags=["tidecast", "policies", "training"],
    doc_md=__doc__,
    **DEFAULTS,
)
def retrain_agent() -> None:
    """Build the DAG: for each job with enough load `train` an agent and `judge` it, as many at a time as set."""

    @task
    def learnable(params: Any = None) -> list[str]:
        """List the jobs with enough load in the lake, those that have waited longest first."""
        from pipelines.train.agent import run as agent

        return agent.jobs_to_train(requested_jobs(params))

    @task(max_active_tis_per_dagrun=AT_ONCE, execution_timeout=LONGEST, map_index_template=OF_JOB)
    def train(job: str, params: Any = None, dag_run: Any = None, ti: Any = None) -> dict[str, str]:
        """Train an agent for one job with the form's values; returns `job` and `run_id`, that of the MLflow run.

        Raises:
            AirflowSkipException: this run begins no more trainings.
            SettingsError, LakeError: a wrong value or contract; nothing was ingested (no retry).
            FinalError: this run begins no more trainings, and a try of this one failed.
            SeriesError, TwinError: the job's times span over 10⁶ steps; the stored fit of its simulator is unfinished.
            RegistryError, JavaError, JarsError: MLflow does not answer; Spark cannot start.
        """
        from pipelines.train.agent import run as agent

        skip_late(dag_run, ti)
        return {"job": job, "run_id": agent.train(job, **filled_fields(params, FORM))}

    @task(map_index_template=OF_ITS_JOB)
    def judge(trained: dict[str, str]) -> dict[str, Any]:
        """Decide from the run's figures whether the agent wins; if so, make it champion, the version that serves.

        Returns:
            `job`; `promoted` (whether it won); `reason` (text); `version` registered (None: no challenger); `champion`,
            the version compared with (None: none); `run` (id); `hours`, executor-hours by policy at the error budget.

        Raises:
            AirflowSkipException: `train` has no result.
            RegistryError, MlflowException: MLflow does not answer or has no such run; it refuses to store the verdict.
            KeyError: the run lacks the figures of an agent's run.
        """
        from pipelines.train.agent import run as agent

        trained = result_of("train", trained)
        verdict = agent.decide_on_challenger(trained["job"], trained["run_id"])
        return dict(agent.promote(verdict))

    @task_group
    def one_agent(job: str) -> None:
        """Train an agent, judge it, and make it champion if it wins."""
        trained: Any = train(job)
        judge(trained)

    one_agent.expand(job=learnable())


retrain_agent()
