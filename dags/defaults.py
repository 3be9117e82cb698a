"""What all DAGs share, with reasons: the rules of their runs, owner and retries, and the fields of their forms."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, ExceptionRetryPolicy, Param, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowSkipException, AirflowTaskTimeout

from configs.contract import jobs_with_contract
from configs.errors import FinalError
from configs.settings import load

SETTINGS = load()
JOBS = jobs_with_contract(SETTINGS.contracts_dir)
DEFAULTS: dict[str, Any] = {
    "catchup": False,
    "max_active_runs": 1,  # offsets are taken in turn, and a challenger is compared with the champion it may replace
    "is_paused_upon_creation": True,
    "default_args": {
        "owner": "tidecast",
        # A broker that is restarted is back within half a minute; every task may run again (offsets are recorded with
        # the commit, a verdict is kept with its run, an order has its run's mark), so trying again costs time only.
        "retries": 2,
        "retry_delay": timedelta(seconds=20),
        "retry_policy": ExceptionRetryPolicy(
            rules=[
                RetryRule(exception=FinalError, action=RetryAction.FAIL, reason="the same input, the same error"),
                RetryRule(exception=AirflowTaskTimeout, action=RetryAction.FAIL, reason="it would take as long again"),
            ]
        ),
    },
}
AT_ONCE, LONGEST = SETTINGS.retraining.at_once, timedelta(seconds=SETTINGS.retraining.longest_s)
"""Trainings of a run at the same time, each of which uses a core for a minute or more; and the longest one may take."""

OF_JOB, OF_ITS_JOB = "{{ task.op_args[0] }}", "{{ task.op_args[0]['job'] }}"
"""What Airflow shows of a mapped task in place of a number: its first argument is a job, or a dict that names one."""


def utc_cron(cron: str, **more: Any) -> CronTriggerTimetable:
    """Make a cron schedule in UTC whose DAG does not run at once when it is unpaused.

    Args:
        cron: five fields.
        more: options of `CronTriggerTimetable`, e.g. `interval`.
    """
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(), **more)


def job_field(description: str) -> Param:
    """Make the trigger dialog's field for one job with a contract; left empty it means every job."""
    return Param(None, type=["null", "string"], enum=[None, *JOBS], title="Job", description=description)


def optional_field(kind: str, title: str, description: str, **bounds: Any) -> Param:
    """Make a field of the trigger dialog that may be left empty (None).

    Args:
        kind: JSON schema type, e.g. `integer`.
        title: label.
        description: text under it.
        bounds: of JSON schema, e.g. `minimum=1`.
    """
    return Param(None, type=["null", kind], title=title, description=description, **bounds)


def requested_jobs(params: Any) -> list[str]:
    """List the jobs that a run is about: the one in its form's field `job`, or all with a contract."""
    return [params["job"]] if params["job"] else JOBS


def filled_fields(params: Any, form: Collection[str]) -> dict[str, Any]:
    """Pick the fields of a form that were filled in, by name."""
    return {name: params[name] for name in form if params[name] is not None}


def result_of(task: str, result: Any) -> Any:
    """Return what the task before has returned.

    Raises:
        AirflowSkipException: that is None, as of a task that a person has set to success.
    """
    if result is None:
        raise AirflowSkipException(f"task {task} has no result, as where it was set to success by hand: clear it")
    return result


def skip_late(dag_run: Any, ti: Any) -> None:
    """Skip a training that would begin later in its run than `retraining.begin_s` allows; one that failed stays failed.

    Raises:
        AirflowSkipException: it would, and has not begun before.
        FinalError: it would, for a try of it failed before.
    """
    begin_s = SETTINGS.retraining.begin_s
    if (since_s := (datetime.now(UTC) - dag_run.start_date).total_seconds()) <= begin_s:
        return
    late = f"this run began {since_s:,.0f} s ago and begins no training after {begin_s:,.0f} s (retraining.begin_s)"
    if ti.try_number > ti.max_tries - ti.task.retries + 1:  # a cleared task has had tries, and begins anew
        raise FinalError(
            f"an earlier try of this training failed, and {late}. See that try's log; clear this task once the run has "
            "ended, or run the DAG for this job"
        )
    raise AirflowSkipException(f"{late}; the next run begins with the jobs that have waited longest")
