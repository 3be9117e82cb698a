"""The HTTP endpoint as a process: started beside the serving loop, and gone when that is."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from configs.contract import load_contracts
from configs.settings import Settings, load
from pipelines.store import Reader

HOST = "127.0.0.1"
ADDRESS, TOKEN = "http", "token"
"""Files in the store's folder: where the endpoint is, and what it demands."""


def start(settings: Settings) -> subprocess.Popen[bytes]:
    """Start it; its token and address are in the store's folder, for this user only."""
    token = settings.serving.token or secrets.token_urlsafe(32)
    (settings.store_dir / ADDRESS).unlink(missing_ok=True)  # of one that may have died with its server
    keep(settings.store_dir / TOKEN, token)
    return subprocess.Popen([sys.executable, "-m", "pipelines.serve.http_process", str(os.getpid())])


def keep(path: Path, text: str) -> None:
    """Write a file that only this user may read, whole or not at all."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)


def main() -> None:
    """Serve until the parent ends, whose process id is the argument: by now it may be gone already."""
    import uvicorn

    from pipelines.serve.http_app import app

    settings, parent = load(), int(sys.argv[1])
    folder = settings.store_dir
    token = (folder / TOKEN).read_text()
    listening = socket.create_server((HOST, settings.serving.http_port))
    keep(folder / ADDRESS, f"http://{HOST}:{listening.getsockname()[1]}")
    with Reader.open(folder) as reader:
        jobs = frozenset(load_contracts(settings.contracts_dir))
        made = app(reader, settings.training.step_s, jobs, token)
        server = uvicorn.Server(uvicorn.Config(made, log_level="warning", access_log=False))

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(0.5)
            server.should_exit = True

        threading.Thread(target=watch, daemon=True).start()
        server.run([listening])


if __name__ == "__main__":
    main()
