"""Serving by the path that the settings name."""

from __future__ import annotations

from configs.settings import Settings


def serve(settings: Settings) -> None:
    """Serve forecasts by the path that `serving.path` names, "fast", "stream" or "spark"; blocks until the server ends.

    It ends on SIGTERM, ctrl-C, when another server takes over, or when `metrics` has got more partitions. Call it from
    the main thread. Only the chosen path is imported.

    Args:
        settings: of the whole pipeline.

    Raises:
        WriterPresent, SocketError, StoreError, SettingsError, OSError: fast path only: another process serves on the
            folder, or socket, store, Kafka's client or a file cannot be opened.
        BrokerError, kafka.errors.KafkaError: the broker does not answer at the start, or does not take the claim (the
            record by which an older server leaves).
        SystemExit, JavaError, JarsError, SpreadError: path "spark" only, see `serve_on_spark`.
        ValueError: not called from the main thread, or an unknown security option of Kafka.
        Exception: fast path only: whatever ended the thread that reads the log.
    """
    if settings.serving.path == "fast":
        from pipelines.serve.fast.server import serve_fast

        serve_fast(settings)
    elif settings.serving.path == "spark":
        from pipelines.serve.stream.spark_server import serve_on_spark

        serve_on_spark(settings)
    else:
        from pipelines.serve.stream.server import serve_stream

        serve_stream(settings)
