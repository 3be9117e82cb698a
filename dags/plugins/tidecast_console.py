"""The plugin by which Airflow shows the console in its menu and serves its pages under `/tidecast`.

Every process of Airflow loads it, tasks included, so that it imports nothing of ours, nor FastAPI, before the first
request for a page.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from airflow.plugins_manager import AirflowPlugin

NAME = "tidecast"
PREFIX = f"/{NAME}"


class LazyConsole:
    """The console's ASGI application, built at its first request."""

    def __init__(self) -> None:
        self._building = threading.Lock()
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a request on; the first one waits a second or two until the application is built."""
        app = self._app or await asyncio.to_thread(self._built)
        await app(scope, receive, send)

    def _built(self) -> Any:
        from configs.settings import load
        from dags.access import airflow_access
        from pipelines.console.serve import console

        with self._building:
            self._app = self._app or console(load(), airflow_access())
            return self._app


class TidecastConsole(AirflowPlugin):
    """Tidecast's console: an application of its own under `/tidecast`, shown in Airflow's frame."""

    name = "tidecast_console"
    fastapi_apps = [{"app": LazyConsole(), "url_prefix": PREFIX, "name": "Tidecast console"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {"name": "Tidecast", "href": f"{NAME}/", "destination": "nav", "url_route": NAME, "nav_top_level": True}
    ]
