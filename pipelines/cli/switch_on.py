"""`tidecast switch-on`: the DAGs that forecasts need, as soon as Airflow knows them."""

from __future__ import annotations

import typer

from pipelines.cli.options import settings_of_stack


def switch_on() -> None:
    """Switch on the four DAGs that forecasts need, once Airflow has parsed them; those that are on stay so.

    These are `ingest_metrics`, `retrain_forecaster`, `serve_forecasts` and `maintain_lake`, in the Airflow of the
    settings, or of the stack that `make up` started. A new Airflow knows them after a minute or so. Where one is
    missing after 300 s, or earlier with an import error in its file, none is switched on, and it is said which is
    missing and what Airflow reports.

    Raises:
        SettingsError: a setting is wrong (status 2).
        OrchestratorError: Airflow does not answer, refuses the login, or does not know one of them (status 2).
    """
    from pipelines.airflow.rest import Orchestrator
    from pipelines.airflow.standing import STANDING, switch_on_standing

    switch_on_standing(Orchestrator(settings_of_stack()))
    typer.echo(f"switched on: {', '.join(STANDING)}")
