"""Follow the metrics of every job and publish forecasts by its champion; models are swapped by their alias.

Runs without end: when a run ends, the next one begins, and one that fails at its start lasts 20 s. Where a second
server of this deployment is started by mistake, the first one sees its later claim and leaves; while one of another
deployment serves on the same topics, this one waits, and its log says so. To end it, pause the DAG and then set its run
to failed.
"""

from datetime import UTC, datetime

from airflow.sdk import dag, task

from configs.settings import load
from dags.defaults import DEFAULTS


@dag(
    schedule="@continuous",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),  # a continuous DAG without one never runs
    tags=["forecasting", "serving"],
    doc_md=__doc__,
    **DEFAULTS,
)
def serve_forecasts() -> None:
    """Build the DAG, one task without end: `serve` publishes forecasts; when it ends, the next run begins."""

    @task(retries=0)  # the next run follows at once; a retry would wait
    def serve() -> None:
        """Serve forecasts until the task is ended, by the path that `serving.path` names ("stream", "fast" or "spark").

        A broker that is away is waited for: a run that fails every few seconds would fill Airflow's history.

        Raises:
            SettingsError: a setting is wrong.
            BrokerError, kafka.errors.KafkaError: the broker stops answering at the start, or does not take the claim.
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
