"""Follow the metrics of every job and publish forecasts by its champion; models are swapped when their alias moves.

Runs without end: when a run ends, the next one begins. A run that fails at its start lasts 20 s. If a second server of
this deployment is started by mistake, the first one sees the later claim and leaves. While a server of another
deployment serves on the same topics, this one waits and says so in its log. To end serving, pause the DAG, then set its
run to failed.
"""

from datetime import UTC, datetime

from airflow.sdk import dag, task

from configs.settings import load
from dags.defaults import DEFAULTS


@dag(
    schedule="@continuous",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),  # a continuous DAG without one never runs
    tags=["tidecast", "forecasting", "serving"],
    doc_md=__doc__,
    **DEFAULTS,
)
def serve_forecasts() -> None:
    """Build the DAG: its one task `serve` publishes forecasts without end; when it ends, the next run begins."""

    @task(retries=0)  # the next run follows at once; a retry would wait
    def serve() -> None:
        """Serve forecasts until the task is ended, by the path named in `serving.path` ("stream", "fast" or "spark").

        It waits for a broker that is away: runs that fail every few seconds would fill Airflow's history.

        Raises:
            SettingsError: a setting is wrong.
            BrokerError: the broker stops answering at the start, or does not take the claim.
            StoreError, SocketError, OSError: fast path only: its store or socket cannot be opened.
            SystemExit, JavaError, JarsError: path "spark" only: its query failed, or Spark does not start.
        """
        from pipelines.serve.path import await_broker, failing_slowly, serve

        with failing_slowly():
            settings = load()
            await_broker(settings.kafka)
            serve(settings)

    serve()


serve_forecasts()
