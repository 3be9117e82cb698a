"""The stream server with champions from a folder: `python -m pipelines.bench.fleet.server FOLDER`, until SIGTERM."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from configs.settings import load
from pipelines.bench.fastpath.champions import FolderChampions
from pipelines.serve.stream.server import Server
from pipelines.signals import stop_on_signals
from pipelines.stack.state import with_stack_addresses


def serve_folder(folder: Path) -> None:
    """Serve the champions of a folder as `tidecast serve` does those of a registry.

    Raises:
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
    """
    stop = threading.Event()
    with stop_on_signals(stop):
        server = Server(with_stack_addresses(load()), lambda: FolderChampions(folder))
        print("serving", flush=True)
        try:
            while not stop.is_set() and server.tick():
                pass
        finally:
            server.close()


if __name__ == "__main__":
    serve_folder(Path(sys.argv[1]))
