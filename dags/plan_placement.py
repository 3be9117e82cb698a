"""Plan anew which cluster each query of a job runs on, and with how many executors, for the load that it has now.

Runs every morning for the first topology, or by hand with a form; where there is no topology it is skipped. A job that
runs (`tidecast job up`) is planned for the records/s, and the work of a record, that its agents have measured in the
last ten minutes; another one, or one of which nothing was measured, for the rates that its topology states. The plan's
page is written to `var/plans`. Where the queries of a job that was measured, or whose load was given, would be
elsewhere or have other executors, a person is asked under "Required actions", and they are moved then, while they run;
who does not answer for twelve hours has said no. Which operators are one query is not changed so, nor the executors of
a query that the autoscaler scales. For a running job a network is trained that proposes placements, and registered in
MLflow (`<topology>-placement`); what it proposes is told beside the plan, or asked for in its place.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.defaults import DEFAULTS, SETTINGS, optional_field, utc_cron

TOPOLOGIES = sorted(path.stem for path in SETTINGS.topologies_dir.glob("*.yaml"))
CHANGE = "{{ ti.xcom_pull(task_ids='propose')['told'] }}"


@dag(
    schedule=utc_cron("0 6 * * *"),
    params={
        "topology": Param(TOPOLOGIES[0] if TOPOLOGIES else "", type="string", enum=TOPOLOGIES or [""], title="Topology",
                          description="Of configs/topologies, by name."),
        "load": optional_field("number", "Load", "Of the stated rates, as 1.5. Empty: as the running job is measured.",
                               exclusiveMinimum=0),
        "network": Param("shadow", type="string", enum=["no", "shadow", "apply"], title="Network",
                         description="What a trained network proposes for a running job: not asked, only told beside "
                                     "the plan (shadow), or put in the plan's place (apply). A person approves each."),
        "env": Param("twin", type="string", enum=["twin", "lstm"], title="Environment",
                     description="In which a network is trained: the twin, or a model of the job's performance that "
                                 "is tuned to its last hours (`<topology>-performance` in MLflow)."),
    },
    tags=["placement"],
    doc_md=__doc__,
    # One that waits for an answer holds up no other topology's; of one topology the first that is approved applies.
    **{**DEFAULTS, "max_active_runs": 16},
)  # fmt: skip
def plan_placement() -> None:
    """Build the DAG: `plan`, `learn`, `propose`, then `differs`, `approve` and `apply` where the job would change."""

    @task
    def plan(params: Any = None) -> dict[str, Any]:
        """Plan, and write the page; returns `sentence`, `ask`, `load`, `known`, `page` and both placements.

        Raises:
            AirflowSkipException: there is no topology to plan; with how to add one.
            ReplanError: the clusters have no room (no retry).
            SettingsError, BrokerError: no such topology, or it is wrong; the broker does not answer.
        """
        if not params["topology"]:
            raise AirflowSkipException(
                f"no topology stands in {SETTINGS.topologies_dir} (the setting topologies). To have a job of several "
                "queries planned, put its graph there as NAME.yaml (docs/placement.md); until then nothing is planned"
            )
        from pipelines.placement import replan

        return replan.plan(dict(params))

    @task(max_active_tis_per_dag=1)  # the second of two runs finds the network of the first
    def learn(params: Any = None) -> dict[str, Any] | None:
        """Train and register a network for the running job, where none serves that is for its queries.

        Raises:
            RegistryError: MLflow does not answer.
            SettingsError: the job's folder is wrong.
            NoRoomError: the clusters have no room for its queries.
        """
        from pipelines.train.placement import proposed

        return proposed.learn(dict(params))

    @task(trigger_rule="all_done_min_one_success")  # a plan needs no network
    def propose(planned: dict[str, Any], params: Any = None) -> dict[str, Any]:
        """Add what the network proposes to the plan, or put it in its place.

        Raises:
            SettingsError, BrokerError: the job's folder is wrong; the broker does not answer.
        """
        from pipelines.train.placement import proposed

        return proposed.propose(dict(params), planned)

    @task
    def differs(planned: dict[str, Any]) -> None:
        """Pass where the running job would change.

        Raises:
            AirflowSkipException: it would not, or does not run.
        """
        if not planned["ask"]:
            raise AirflowSkipException(planned["told"])

    @task(max_active_tis_per_dag=1)  # one plan sees what the one before has moved
    def apply(planned: dict[str, Any], params: Any = None) -> str:
        """Want the queries where the plan puts them; returns what was wanted.

        Raises:
            ReplanError: they are wanted elsewhere since, or a cluster is away (no retry).
        """
        from pipelines.train.placement import proposed

        return proposed.apply(dict(params), planned)

    made: Any = plan()
    planned: Any = propose(made)
    made >> learn() >> planned
    approve = ApprovalOperator(
        task_id="approve",
        subject="May these queries be moved?",
        body=CHANGE,
        defaults=ApprovalOperator.REJECT,  # the next morning plans anew, for the load of then
        response_timeout=timedelta(hours=12),
    )
    differs(planned) >> approve >> apply(planned)


plan_placement()
