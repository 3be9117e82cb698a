"""Read a range of a job's records again beside its live ones, done by a time and as cheaply as that can be.

Run by hand, with a form. The plan is the cheapest number of executors beyond the live job's, step by step, that has it
done in time with the probability asked for. Where it costs more executor-hours than the form allows, a person is asked
under "Required actions"; without an answer within twelve hours nothing is ordered. The run then follows the order to
its end and plans it anew as things come differently; two runs do at a time, and the order of a further one is read by
the schedule that it was given until then. Setting the run to failed cancels its own order and no other, whether it is
followed then or waits to be; so does stopping Airflow while it is followed. The same orders can be listed, paused and
cancelled by `tidecast backfill JOB`, also where the run has ended before them.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.defaults import DEFAULTS, JOBS, optional_field

FOLLOWED = 2
"""Orders that are followed at a time: each holds for hours a place of the executor that others need, too."""
MOMENT = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?(Z|[+-]\d\d:\d\d)?$"
QUESTION = "{{ params['job'] }}: {{ ti.xcom_pull(task_ids='plan')['sentence'] }}."


@dag(
    schedule=None,
    params={
        "job": Param(JOBS[0] if JOBS else "", type="string", enum=JOBS or [""], title="Job",
                     description="Attached with replay=, in mode act."),
        # Without a default: who begins a run unread counts no range that nobody meant, at whatever cost.
        "begin": Param(type="string", pattern=MOMENT, title="From", description="Job time, as 2026-03-01T00:00."),
        "end": Param(type="string", pattern=MOMENT, title="To", description="The moment after it, likewise."),
        "topic": optional_field("string", "Topic", "That the job reads. Empty: `events` with the prefix."),
        "by": Param("07:00", type="string", title="Done by", description="A time of day or a date, in the job's time."),
        "sure": Param(0.9, type="number", exclusiveMinimum=0, exclusiveMaximum=1, title="Sure",
                      description="Probability with which it is done by then."),
        "most_hours": optional_field("number", "Executor-hours", "That it may cost unasked. Empty: whatever it does.",
                                     minimum=0),
        "weight": optional_field("number", "Weight", "Among replays that run at once. Empty: what its deadline needs.",
                                 minimum=0.001),
    },
    tags=["backfill"],
    doc_md=__doc__,
    # One that waits for an answer, or is followed for hours, holds up no other job's; two of one range are refused.
    **{**DEFAULTS, "max_active_runs": 16},
)  # fmt: skip
def backfill() -> None:
    """Build the DAG: `plan`, then `dear` and `approve` where it costs too much, then `order`, `follow` and `end`."""

    @task
    def plan(params: Any = None) -> dict[str, Any]:
        """Plan the backfill and order nothing; returns `sentence`, `hours` and `ask` (`pipelines.backfill.dag.plan`).

        Raises:
            BackfillPlanError: the deadline cannot be met, or not be planned; the message says which can (no retry).
            RangeError, OrderError, BrokerError: no such range; another order has it; the broker does not answer.
        """
        from pipelines.backfill import dag as backfills

        return backfills.plan(dict(params))

    @task
    def dear(planned: dict[str, Any]) -> None:
        """Pass where a person has to be asked.

        Raises:
            AirflowSkipException: it costs no more than the form allows.
        """
        if not planned["ask"]:
            raise AirflowSkipException(f"{planned['hours']:.2g} executor-hours are allowed")

    @task(trigger_rule="none_failed", max_active_tis_per_dag=1)  # in turn, so that two runs see each other's order
    def order(planned: dict[str, Any], params: Any = None, run_id: Any = None) -> str:
        """Plan it anew and order it, once in a run; returns the order's name.

        Raises:
            BackfillRunError: it costs more now than was allowed or approved.
        """
        from pipelines.backfill import dag as backfills

        return backfills.order(dict(params), planned, run_id)

    @task(max_active_tis_per_dag=FOLLOWED)
    def follow(name: str, params: Any = None, ti: Any = None) -> dict[str, Any]:
        """Follow the order to its end; returns its `state` and `records`.

        Raises:
            BackfillRunError: it failed or was cancelled (no retry).
        """
        from pipelines.backfill import dag as backfills

        try:
            return backfills.follow(params["job"], name)
        except Exception:
            ti.xcom_push(key="failed", value=True)  # by itself: who is ended by Airflow may not come to this
            raise

    @task
    def end(name: str | None, params: Any = None, ti: Any = None) -> None:
        """Cancel the run's order where the run was ended, or `order` died, before `follow` came to an end of its own.

        Raises:
            BackfillRunError: it is cancelled, or the run has failed (no retry).
        """
        from pipelines.backfill import dag as backfills

        states = ti.get_task_states(ti.dag_id, run_ids=[ti.run_id])[ti.run_id]
        failed = states.get("follow") == "failed" and bool(ti.xcom_pull(task_ids="follow", key="failed"))
        backfills.end_run(params["job"], name, states, failed, ti.run_id)

    planned: Any = plan()
    approve = ApprovalOperator(
        task_id="approve",
        subject="May this backfill cost so much?",
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
