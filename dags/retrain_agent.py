"""Train an agent per job in its twin, compare it with the other policies on held-out load, and let the gate decide.

Runs every Sunday night, or by hand with other settings; new metrics alone start no training. The twin is fitted to the
job's batches in the lake; where these are too few it is the stored fit or the contract's guess; the run says which.
The agent learns on drawn jobs and loads first, then in the twin. It becomes champion only if, at the contract's error
budget, it is not dearer than the best of forecast and mpc, nor than the agent that serves; what was there stays
otherwise, and after a failure. A job without data is left out; with none at all the run is skipped.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, task, task_group

from configs.contract import contracted
from configs.settings import load
from dags.defaults import DEFAULTS

JOBS = contracted(load().contracts_dir)
FORM = {
    "transitions": Param(
        None, type=["null", "integer"], minimum=1, title="Transitions",
        description="Decisions over drawn jobs and loads. Empty: as set.",
    ),
    "fine_transitions": Param(
        None, type=["null", "integer"], minimum=1, title="Fine-tuning",
        description="Decisions in the job's own twin. Empty: as set.",
    ),
    "seed": Param(None, type=["null", "integer"], title="Seed", description="Of everything drawn. Empty: as set."),
}  # fmt: skip


@dag(
    schedule=CronTriggerTimetable("30 5 * * 0", timezone="UTC", run_immediately=timedelta()),
    catchup=False,
    max_active_runs=1,  # a challenger is compared with the champion that it may replace
    is_paused_upon_creation=True,
    params={
        "job": Param(
            None, type=["null", "string"], enum=[None, *JOBS], title="Job",
            description="Whose agent is trained. Empty: every job with enough of its load in the lake.",
        ),
        **FORM,
    },
    tags=["policies", "training"],
    doc_md=__doc__,
    default_args=DEFAULTS,
)  # fmt: skip
def retrain_agent() -> None:
    """See the module."""

    @task
    def learnable(params: Any = None) -> list[str]:
        from pipelines.train.agent import run as agent

        return [job for job in ([params["job"]] if params["job"] else JOBS) if agent.enough(job)]

    @task(max_active_tis_per_dagrun=1)  # one after the other; each uses a core for a minute or more
    def train(job: str, params: Any = None) -> dict[str, str]:
        from pipelines.train.agent import run as agent

        form = {name: params[name] for name in FORM if params[name] is not None}
        return {"job": job, "run_id": agent.train(job, **form)}

    @task
    def judge(trained: dict[str, str]) -> dict[str, Any]:
        from pipelines.train.agent import run as agent

        verdict = agent.judge(trained["job"], trained["run_id"])
        agent.promote(verdict)
        return verdict

    @task_group
    def one_agent(job: str) -> None:
        """Train, judge, and promote what wins."""
        trained: Any = train(job)
        judge(trained)

    one_agent.expand(job=learnable())


retrain_agent()
