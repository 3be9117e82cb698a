"""Train an agent per job in its twin, compare it with the other policies on held-out load, and let the gate decide.

Runs every Sunday night, or by hand with other settings; new metrics alone start no training. The twin is fitted to the
job's batches in the lake; where these are too few it is the stored fit or the contract's guess; the run says which.
The agent learns on drawn jobs and loads first, then in the twin. It becomes champion only if, at the contract's error
budget, it is not dearer than the best of forecast and mpc, nor than the agent that serves; what was there stays
otherwise, and after a failure. A job without data is left out; with none at all the run is skipped.
"""

from typing import Any

from airflow.sdk import dag, task, task_group

from dags.defaults import DEFAULTS, asked, at, field, filled, job

FORM = {
    "transitions": field("integer", "Transitions", "Decisions over drawn jobs and loads. Empty: as set.", minimum=1),
    "fine_transitions": field("integer", "Fine-tuning", "Decisions in the job's own twin. Empty: as set.", minimum=1),
    "seed": field("integer", "Seed", "Of everything drawn. Empty: as set."),
}


@dag(
    schedule=at("30 5 * * 0"),
    params={"job": job("Whose agent is trained. Empty: every job with enough of its load in the lake."), **FORM},
    tags=["policies", "training"],
    doc_md=__doc__,
    **DEFAULTS,
)
def retrain_agent() -> None:
    """Build the DAG; the module says what its runs do."""

    @task
    def learnable(params: Any = None) -> list[str]:
        """Name the jobs with enough load in the lake."""
        from pipelines.train.agent import run as agent

        return [job for job in asked(params) if agent.has_enough_load(job)]

    @task(max_active_tis_per_dagrun=1)  # one after the other; each uses a core for a minute or more
    def train(job: str, params: Any = None) -> dict[str, str]:
        """Train an agent for one job; returns the job and the id of the MLflow run."""
        from pipelines.train.agent import run as agent

        return {"job": job, "run_id": agent.train(job, **filled(params, FORM))}

    @task
    def judge(trained: dict[str, str]) -> dict[str, Any]:
        """Compare the agent with the other policies, make it champion if it wins, and return the verdict."""
        from pipelines.train.agent import run as agent

        verdict = agent.judge(trained["job"], trained["run_id"])
        agent.promote(verdict)
        return verdict

    @task_group
    def one_agent(job: str) -> None:
        """Train an agent, judge it, and make it champion if it wins."""
        trained: Any = train(job)
        judge(trained)

    one_agent.expand(job=learnable())


retrain_agent()
