"""Read a range of a job's records again beside its live records, by a deadline and as cheaply as possible.

Start it by hand and fill in the form. The plan gives, step by step, the cheapest number of executors beyond the live
job's that meets the deadline with the probability asked for. If that costs more executor-hours than the form allows, a
person is asked under "Required actions"; without an answer within twelve hours nothing is ordered.

The run then follows its order to the end and replans it when things turn out differently. Two runs do so at a time; the
order of any further run keeps its first schedule until its turn comes. To cancel an order, set its run to failed, at
any time; no other order is touched. Setting the task `follow` to success cancels it, too, and the run fails. So does
stopping Airflow while a run follows its order. `tidecast backfill JOB` lists, pauses and cancels the same orders, even
after their runs have ended.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.defaults import DEFAULTS, JOBS, optional_field, result_of

FOLLOWED = 2
"""Orders that are followed at a time: each holds for hours a place of the executor that others need, too."""
MOMENT = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?(Z|[+-]\d\d:\d\d)?$"
QUESTION = "{{ params['job'] }}: {{ ti.xcom_pull(task_ids='plan')['sentence'] }}."


@dag(
    schedule=None,
    params={
        "job": Param(JOBS[0] if JOBS else "", type="string", enum=JOBS or [""], title="Job",
                     description="A job whose agent is attached with replay= and in mode act."),
        # Without a default: who begins a run unread counts no range that nobody meant, at whatever cost.
        "begin": Param(type="string", pattern=MOMENT, title="From",
                       description="Start of the range, in job time, e.g. 2026-03-01T00:00."),
        "end": Param(type="string", pattern=MOMENT, title="To",
                     description="End of the range, not included, in job time."),
        "topic": optional_field("string", "Topic",
                                "The topic that the job reads; several with commas. Empty: `events` with the prefix."),
        "table": optional_field("string", "Table",
                                "Absolute path of a Delta or Parquet table of the topic's records, which Airflow's "
                                "workers read, too. Empty: the topic.", pattern="^/"),
        "late_s": optional_field("number", "Late",
                                 "Wall seconds within which records of the range were produced after its end. Empty: "
                                 "as late as the job takes them.", minimum=0),
        "compare": Param(False, type="boolean", title="Compare",
                         description="Publish nothing: the log of the task `follow` says what would change, and "
                         "`tidecast backfill JOB --publish NAME` publishes it."),
        "by": Param("07:00", type="string", title="Done by",
                    description="Deadline: a time of day or a date, in job time."),
        "sure": Param(0.9, type="number", exclusiveMinimum=0, exclusiveMaximum=1, title="Sure",
                      description="Probability of meeting the deadline."),
        "most_hours": optional_field("number", "Executor-hours",
                                     "Most that it may cost without approval. Empty: no limit.", minimum=0),
        "weight": optional_field("number", "Weight",
                                 "Among replays at the same time. Empty: what its deadline needs.", minimum=0.001),
    },
    tags=["tidecast", "backfill"],
    doc_md=__doc__,
    # One that waits for an answer, or is followed for hours, holds up no other job's; two of one range are refused.
    **{**DEFAULTS, "max_active_runs": 16},
)  # fmt: skip
def backfill() -> None:
    """Build the DAG: `plan`, then `dear` and `approve` if it costs too much, then `order`, `follow` and `end`."""

    @task
    def plan(params: Any = None) -> dict[str, Any]:
        """Plan the backfill without ordering it; returns `sentence`, `hours` and `ask` (`pipelines.backfill.dag.plan`).

        Raises:
            BackfillPlanError: the deadline cannot be met or planned; the message says which one can (no retry).
            RangeError, OrderError, BrokerError: no such range; another order covers it; the broker does not answer.
        """
        from pipelines.backfill import dag as backfills

        return backfills.plan(dict(params))

    @task
    def dear(planned: dict[str, Any]) -> None:
        """Pass if a person has to be asked.

        Raises:
            AirflowSkipException: the backfill costs no more than the form allows, or `plan` has no result.
        """
        if not result_of("plan", planned)["ask"]:
            raise AirflowSkipException(f"{planned['hours']:.2g} executor-hours are allowed")

    @task(trigger_rule="none_failed", max_active_tis_per_dag=1)  # in turn, so that two runs see each other's order
    def order(planned: dict[str, Any], params: Any = None, run_id: Any = None) -> str:
        """Plan the backfill again and order it, once per run; returns the order's name.

        Raises:
            AirflowSkipException: `plan` has no result.
            BackfillRunError: it now costs more than was allowed or approved.
            BackfillPlanError: its deadline has passed, or cannot be met any more.
        """
        from pipelines.backfill import dag as backfills

        return backfills.order(dict(params), result_of("plan", planned), run_id)

    @task(max_active_tis_per_dag=FOLLOWED)
    def follow(name: str, params: Any = None, ti: Any = None) -> dict[str, Any]:
        """Follow the order until it is done or compared; returns its `state` and `records`.

        Raises:
            AirflowSkipException: `order` has no result.
            BackfillRunError, ApplicationEndedError: it failed, was cancelled, or what read it was killed (no retry).
        """
        from pipelines.backfill import dag as backfills

        name = result_of("order", name)
        try:
            return backfills.follow(params["job"], name)
        except Exception:
            ti.xcom_push(key="failed", value=True)  # by itself: who is ended by Airflow may not come to this
            raise

    @task
    def end(name: str | None, params: Any = None, ti: Any = None) -> None:
        """Cancel the run's order if the run or `follow` was ended by a person, or `order` died, before it was followed.

        Raises:
            BackfillRunError: the order is cancelled, or the run has failed (no retry).
        """
        from pipelines.backfill import dag as backfills

        states = ti.get_task_states(ti.dag_id, run_ids=[ti.run_id])[ti.run_id]
        followed = ti.xcom_pull(task_ids="follow")
        failed = states.get("follow") == "failed" and bool(ti.xcom_pull(task_ids="follow", key="failed"))
        backfills.end_run(params["job"], name, states, followed, failed, ti.run_id)

    planned: Any = plan()
    approve = ApprovalOperator(
        task_id="approve",
        subject="May this backfill cost that much?",
        body=QUESTION,
        defaults=ApprovalOperator.REJECT,  # nobody's answer is no leave to spend
        response_timeout=timedelta(hours=12),
    )
    ordered: Any = order(planned)
    dear(planned) >> approve >> ordered
    # Whoever sets a run to failed skips what has not begun, and leaves teardowns alone; this one says how a run ended.
    ended: Any = end(ordered)
    follow(ordered) >> ended.as_teardown(on_failure_fail_dagrun=True)


backfill()
