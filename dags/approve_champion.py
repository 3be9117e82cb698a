"""Ask a person whether a newly trained winner may serve, if `training.approval_s` is set.

The DAG retrain_forecaster starts a run of this one for each winner and goes on with the other jobs, so no training
waits for an answer. The question is under "Required actions". No answer within `training.approval_s` wall seconds is a
yes, and so is setting the task `approve` to success. Several versions of a job may wait for approval at the same time:
the first one that is approved serves, and one that was compared with the champion before it is then refused, with the
reason in its verdict. This DAG is created unpaused, because only retrain_forecaster starts its runs.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.defaults import DEFAULTS, SETTINGS

APPROVE, REJECT = "Approve", "Reject"
QUESTION = "{{ params.verdict.job }}, version {{ params.verdict.version }}: {{ params.verdict.reason }}."
OPEN = 1000
"""Questions at a time; a run that waits for a person holds no place of a task."""
LEAST_S = 1.0
"""Wall seconds that a question waits where nobody is to be asked any more when its turn comes."""


@dag(
    schedule=None,
    params={
        "verdict": Param(
            type="object",
            required=["job", "promoted", "reason", "version", "champion", "run"],
            title="Verdict",
            description="The verdict of the training, as its task `judge` returns it.",
        )
    },
    tags=["tidecast", "forecasting", "training"],
    doc_md=__doc__,
    **{**DEFAULTS, "max_active_runs": OPEN, "is_paused_upon_creation": False},
)
def approve_champion() -> None:
    """Build the DAG: `approve` asks a person, and `promote` acts on the answer."""

    @task(render_template_as_native_obj=True, max_active_tis_per_dag=1)  # one answer sees what the one before changed
    def promote(verdict: Any, answer: dict[str, Any] | None) -> dict[str, Any]:
        """Make the challenger champion if a person approved or did not answer; returns the verdict as it stands.

        Raises:
            AirflowSkipException: a person said no, or another version serves by now; the record says which.
            ServesAlreadyError: a person said no, but somebody else has let it serve; the message says how to undo that.
            RegistryError: MLflow does not answer.
        """
        from pipelines.train.forecaster import run as forecaster

        if answer is None or answer["chosen_options"] == [APPROVE]:  # None: a person has set `approve` to success
            stands = forecaster.promote(verdict)
        else:
            stands = forecaster.reject(verdict, (answer["responded_by_user"] or {}).get("name") or "a person")
        if not stands["promoted"]:
            raise AirflowSkipException(stands["reason"])
        return dict(stands)

    approve = HITLOperator(  # an ApprovalOperator skips what follows a no, and nobody would write it down
        task_id="approve",
        options=[APPROVE, REJECT],
        subject="May the challenger serve?",
        body=QUESTION,
        defaults=APPROVE,  # silence is consent: the gate has judged already
        response_timeout=timedelta(seconds=max(SETTINGS.training.approval_s, LEAST_S)),
    )
    answer: Any = approve.output
    promote("{{ params.verdict }}", answer)


approve_champion()
