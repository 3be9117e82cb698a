"""What all tasks share: owner and retries, each with its reason."""

from datetime import timedelta

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from configs.errors import FinalError

DEFAULTS = {
    "owner": "tidecast",
    # A broker that is restarted is back within half a minute; every task may run again (offsets are recorded with the
    # commit, a verdict is kept with its run), so trying again costs time only.
    "retries": 2,
    "retry_delay": timedelta(seconds=20),
    "retry_policy": ExceptionRetryPolicy(
        rules=[RetryRule(exception=FinalError, action=RetryAction.FAIL, reason="the same input gives the same error")]
    ),
}
