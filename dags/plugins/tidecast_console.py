"""The plugin by which Airflow shows the console in its menu and serves its pages under `/tidecast`.

Every process of Airflow loads it, tasks included, so that it imports nothing of ours, nor FastAPI. What Airflow's API
server alone does, to put its application together, begins to build the console, so that who opens it finds it there.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

NAME = "tidecast"
PREFIX = f"/{NAME}"


class LazyConsole:
    """The console's ASGI application, built in a thread once the API server begins to answer."""

    def __init__(self) -> None:
        self._building = threading.Lock()
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a request on; one that comes before the application is built waits for it."""
        app = self._app or await asyncio.to_thread(self._built)
        await app(scope, receive, send)

    def begin(self, app: Any) -> Any:
        """Begin to build the console, as a middleware that the API server puts around its application and that is it.

        A console that cannot be built says why to who asks for it: it keeps Airflow from nothing.
        """

        def build() -> None:
            with contextlib.suppress(Exception):
                self._built()

        threading.Thread(target=build, name="console begins", daemon=True).start()
        return app

    def _built(self) -> Any:
        from configs.settings import load
        from dags.access import airflow_access
        from pipelines.console.serve import console

        with self._building:
            self._app = self._app or console(load(), airflow_access())
            return self._app


CONSOLE = LazyConsole()


def guard(app: Any) -> Any:
    """Put a guard around an API server that asks nobody for a login, where the stack that starts it asks for that."""
    if not conf.getboolean(NAME, "loopback_only", fallback=False):
        return app
    from pipelines.console.origin import LoopbackOnly

    return LoopbackOnly(app)


class TidecastConsole(AirflowPlugin):
    """Tidecast's console: an application of its own under `/tidecast`, shown in Airflow's frame."""

    name = "tidecast_console"
    fastapi_apps = [{"app": CONSOLE, "url_prefix": PREFIX, "name": "Tidecast console"}]  # noqa: RUF012
    fastapi_root_middlewares = [  # noqa: RUF012
        {"middleware": CONSOLE.begin, "args": [], "kwargs": {}, "name": "Tidecast console begins"},
        {"middleware": guard, "args": [], "kwargs": {}, "name": "Tidecast lets in this computer's own pages"},
    ]
    external_views = [  # noqa: RUF012
        {"name": "Tidecast", "href": f"{NAME}/", "destination": "nav", "url_route": NAME, "nav_top_level": True}
    ]
