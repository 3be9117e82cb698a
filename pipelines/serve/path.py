"""Serving by the path that the settings name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from configs.sections import Kafka
from configs.settings import Settings
from pipelines.kafka.broker import Follower
from pipelines.kafka.connection import BrokerError, TopicError
from pipelines.serve.turn import await_turn

LONGEST_PAUSE_S = 60.0
"""Between two tries to reach the broker; they double up to that."""
LEAST_RUN_S = 20.0
"""Seconds that a run which fails takes at least: the next one follows at once, and Airflow keeps each, and its log."""


def await_broker(kafka: Kafka) -> None:
    """Wait until the broker answers, without a limit; prints once that it does not, and once that it does.

    For a server that something starts again whenever it ends: each start that fails would stay in Airflow's history.

    Raises:
        SettingsError, ValueError: no broker is set, or a security option is wrong.
    """
    pause_s = 1.0
    while True:
        try:
            with closing(Follower(kafka, ["metrics"])):
                break
        except TopicError:  # it answers
            break
        except BrokerError as error:
            if pause_s == 1.0:
                print(f"serving: waiting for the broker: {error}", flush=True)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    if pause_s > 1.0:
        print("serving: the broker answers", flush=True)


@contextmanager
def failing_slowly() -> Iterator[None]:
    """Let what fails in the `with` block within LEAST_RUN_S (20 s) be known at once, and fail once these have passed.

    For a server that something starts again whenever it ends, and whose fault is there at the next start, too.
    """
    began = time.monotonic()
    try:
        yield
    except (Exception, SystemExit) as error:
        if (rest_s := began + LEAST_RUN_S - time.monotonic()) > 0:
            print(f"serving: begun again in {rest_s:.0f} s, as it failed: {type(error).__name__}: {error}", flush=True)
            time.sleep(rest_s)
        raise


def serve(settings: Settings) -> None:
    """Serve forecasts by the path that `serving.path` names, "fast", "stream" or "spark"; blocks until the server ends.

    It ends on SIGTERM, ctrl-C, when another server takes over, or when `metrics` has got more partitions. It does not
    begin while the server of another deployment serves (`await_turn`). Call it from the main thread. Only the chosen
    path is imported.

    Args:
        settings: of the whole pipeline.

    Raises:
        WriterPresent, SocketError, StoreError, SettingsError, OSError: fast path only: another process serves on the
            folder, or socket, store, Kafka's client or a file cannot be opened.
        BrokerError: the broker does not answer at the start, or does not take the claim (the
            record by which an older server leaves).
        SystemExit, JavaError, JarsError, SpreadError: path "spark" only, see `serve_on_spark`.
        ValueError: not called from the main thread, or an unknown security option of Kafka.
        Exception: fast path only: whatever ended the thread that reads the log.
    """
    if settings.kafka.bootstrap:
        await_turn(settings)
    if settings.serving.path == "fast":
        from pipelines.serve.fast.server import serve_fast

        serve_fast(settings)
    elif settings.serving.path == "spark":
        from pipelines.serve.stream.spark_server import serve_on_spark

        serve_on_spark(settings)
    else:
        from pipelines.serve.stream.server import serve_stream

        serve_stream(settings)
