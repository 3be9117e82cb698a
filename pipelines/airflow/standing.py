"""The DAGs by which a deployment learns and forecasts, switched on once Airflow knows all of them."""

from __future__ import annotations

from pipelines.airflow.rest import Orchestrator

STANDING = ("retrain_forecaster", "ingest_metrics", "serve_forecasts", "maintain_lake")
"""In the order in which they are switched on: what an ingest reports begins a training only where that is on."""


def switch_on_standing(airflow: Orchestrator) -> None:
    """Switch on the DAGs of STANDING once Airflow has parsed all of them; those that are on stay so.

    Raises:
        OrchestratorError: Airflow does not answer, or lacks one of them after 300 s, or earlier where it reports an
            import error in its file; none is switched on then.
    """
    airflow.wait_for_dags(STANDING)
    for dag in STANDING:
        airflow.unpause(dag)
