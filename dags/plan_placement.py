"""Plan anew on which cluster each query of a job runs, and with how many executors, for its present load.

Runs every morning for all jobs that were begun (`tidecast job up`) from a file in the folder of topologies, each in a
run of its own: one that fails, or waits for an answer, holds up no other. Or runs by hand, with a form, for any
topology there. Where no job was begun it is skipped. A running job is planned for the records/s and the work per record
that its agents measured in the last ten minutes. Any other job, and one without measurements, is planned for the rates
that its topology states. The plan's page is written to `var/plans`, over that of an earlier run; page and question say
when the plan was made.

If the plan of a job with measurements, or with a load given in the form, differs from what runs, a person is asked
under "Required actions"; with approval the queries are moved while they run. No answer within twelve hours is a no. The
DAG changes neither which operators form a query nor the executors of a query that the autoscaler scales. Where other
queries than those that run would be better, page and question say so.

For a running job a network that proposes placements is trained and registered in MLflow (`<topology>-placement`). Its
proposal is shown beside the plan, or put up for approval instead of it: the page is then that of the proposal.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from dags.defaults import DEFAULTS, SETTINGS, optional_field, result_of, utc_cron

TOPOLOGIES = sorted(path.stem for path in SETTINGS.topologies_dir.glob("*.yaml"))
CHANGE = "{{ ti.xcom_pull(task_ids='propose')['told'] }}"
OF_TOPOLOGY = "{{ task.conf['topology'] }}"
ITS_RUN = f"plan_{OF_TOPOLOGY}_{{{{ run_id }}}}"
"""Id of the run of one topology, so that a task that is tried again plans it no second time."""


@dag(
    schedule=utc_cron("0 6 * * *"),
    params={
        "topology": Param(None, type=["null", "string"], enum=[None, *TOPOLOGIES], title="Topology",
                          description="Name of a topology in configs/topologies. Empty: each whose job was begun."),
        "load": optional_field("number", "Load", "Multiple of the stated rates, e.g. 1.5. Empty: as measured.",
                               exclusiveMinimum=0),
        "network": Param("shadow", type="string", enum=["no", "shadow", "apply"], title="Network",
                         description="Proposal of a trained network for a running job: none (no), shown beside the "
                                     "plan (shadow), or in place of the plan (apply). A person approves either."),
        "env": Param("twin", type="string", enum=["twin", "lstm"], title="Environment",
                     description="Where the network is trained: in the twin, or on a performance model that is tuned "
                                 "to the job's last hours (`<topology>-performance` in MLflow)."),
    },
    tags=["tidecast", "placement"],
    doc_md=__doc__,
    # One that waits for an answer holds up no other topology's; of one topology the first that is approved applies.
    **{**DEFAULTS, "max_active_runs": 16},
)  # fmt: skip
def plan_placement() -> None:
    """Build the DAG: `begun` and `each`, which start runs of one topology, or `plan`, `learn`, `propose`.

    Then come `differs`, `approve` and `apply`, if the job would change.
    """

    @task
    def begun(params: Any = None) -> list[dict[str, Any]]:
        """Return the form of a run for each topology whose job was begun; none where this run is of one topology.

        Raises:
            AirflowSkipException: no job was begun; the reason says how to begin one, and how to add a topology.
        """
        if params["topology"]:
            return []
        from pipelines.placement.running import begun_jobs

        if jobs := begun_jobs(SETTINGS):
            return [{**dict(params), "topology": job} for job in jobs]
        if any(SETTINGS.topologies_dir.glob("*.yaml")):
            raise AirflowSkipException(
                f"no job of the topologies in {SETTINGS.topologies_dir} was begun (`tidecast job up NAME`), so none is "
                "planned anew. The form of this DAG plans one that was not, for the rates that it states"
            )
        raise AirflowSkipException(
            f"no topology is in {SETTINGS.topologies_dir} (the setting topologies), so nothing is planned. To plan "
            "a job of several queries, put its graph there as NAME.yaml (docs/placement.md)"
        )

    @task
    def plan(params: Any = None) -> dict[str, Any]:
        """Plan and write the page; returns `sentence`, `ask`, `load`, `known`, `backlog`, `page` and both placements.

        Raises:
            AirflowSkipException: this run is of no single topology.
            ReplanError: the clusters have no room (no retry).
            SettingsError, BrokerError: no such topology, or it is wrong; the broker does not answer.
        """
        if not params["topology"]:
            raise AirflowSkipException("each job that was begun is planned in a run of its own (task `each`)")
        from pipelines.placement import replan

        return replan.plan(dict(params))

    @task(max_active_tis_per_dag=1)  # the second of two runs finds the network of the first
    def learn(params: Any = None) -> dict[str, Any] | None:
        """Train and register a network for the running job, unless one for its queries serves already.

        Raises:
            RegistryError: MLflow does not answer.
            SettingsError, BrokerError: the job's folder is wrong; the broker does not answer.
            NoRoomError: the clusters have no room for its queries.
        """
        from pipelines.train.placement import proposed

        return proposed.learn(dict(params))

    @task(trigger_rule="all_done_min_one_success")  # a plan needs no network
    def propose(planned: dict[str, Any], params: Any = None) -> dict[str, Any]:
        """Add the network's proposal to the plan, or put it in the plan's place.

        Raises:
            AirflowSkipException: `plan` has no result.
            SettingsError, BrokerError: the job's folder is wrong; the broker does not answer.
        """
        from pipelines.train.placement import proposed

        return proposed.propose(dict(params), result_of("plan", planned))

    @task
    def differs(planned: dict[str, Any]) -> None:
        """Pass if the plan would change the running job.

        Raises:
            AirflowSkipException: it would not, the job does not run, or `propose` has no result.
        """
        if not result_of("propose", planned)["ask"]:
            raise AirflowSkipException(planned["told"])

    @task(max_active_tis_per_dag=1)  # one plan sees what the one before has moved
    def apply(planned: dict[str, Any], params: Any = None) -> str:
        """Ask for the queries to be where the plan puts them; returns what was asked for.

        Raises:
            AirflowSkipException: `propose` has no result.
            ReplanError: somebody has asked for another placement since, or a cluster is away (no retry).
        """
        from pipelines.train.placement import proposed

        return proposed.apply(dict(params), result_of("propose", planned))

    # In a mapped group nothing after an approval is skipped where the answer is no, as of Airflow 3.3.2.
    TriggerDagRunOperator.partial(
        task_id="each",
        trigger_dag_id="plan_placement",
        trigger_run_id=ITS_RUN,
        logical_date=None,  # of all of them it would be the same moment
        skip_when_already_exists=True,
        map_index_template=OF_TOPOLOGY,
    ).expand(conf=begun())
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
