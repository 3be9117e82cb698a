"""The embedded Airflow with its logins, and the broker and models beside it, that the console is measured on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from configs.settings import Settings
from pipelines.bench.team.console.chromium import BrowserError
from pipelines.kafka.topics import create_topics
from pipelines.stack.stack import TRANSIENT, Stack

LOGINS = {"viewer": "vic", "user": "ann", "": "bob"}
"""Logins by role; the last one has none."""
SERVER, START_S, DEEP_S = "airflow-api-server", 300.0, 900.0
"""The process that serves the pages; seconds for its start, and until it has read the hours before."""
WITH_LOGINS = {
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{login}:{role}" for role, login in LOGINS.items()),
}
PASSWORDS = "airflow/simple_auth_manager_passwords.json.generated"
MODELS = {"orders-000-forecaster": "2", "clicks-001-forecaster": "1", "orders-000-agent": None}
"""Registered models, and which of their two versions is champion."""


class ConsoleSite:
    """A stack in which the console runs.

    Attributes:
        stack: with broker, Airflow and MLflow's store.
        airflow: address of Airflow.
        address: of the console's pages.
        tokens: of a login of each role of `LOGINS`.
    """

    def __init__(self, stack: Stack) -> None:
        """Log in as each; `stack` is started.

        Raises:
            httpx.HTTPError: Airflow does not let one in.
        """
        self.stack, self.airflow = stack, stack.addresses["airflow"]
        self.address = f"{self.airflow}/tidecast"
        passwords = json.loads((stack.settings.var_dir / PASSWORDS).read_text())
        self.tokens = {role: self._token(login, passwords[login]) for role, login in LOGINS.items()}

    def _token(self, login: str, password: str) -> str:
        asked = {"username": login, "password": password}
        token: str = (
            httpx.post(f"{self.airflow}/auth/token", json=asked, timeout=60).raise_for_status().json()["access_token"]
        )
        return token

    def restart_server(self) -> None:
        """End the process that serves the pages, and start another one; returns once it answers.

        Raises:
            StackError: it does not start.
        """
        self.stack.end(SERVER)
        self.stack.respawn(SERVER, START_S)

    def ask(self, path: str) -> Any:
        """Return the data of a page, asked for by who may look.

        Raises:
            httpx.HTTPError: it does not answer.
        """
        bearer = {"authorization": f"Bearer {self.tokens['viewer']}"}
        return httpx.get(f"{self.address}/data/{path}", headers=bearer, timeout=60).raise_for_status().json()

    def await_hours(self, job: str, since: float) -> None:
        """Wait until the server shows what a job was before a wall time, which it reads after its first screen.

        Raises:
            BrowserError: it does not within `DEEP_S`.
            httpx.HTTPError: it does not answer.
        """
        deadline = time.monotonic() + DEEP_S
        while (self.ask(f"jobs/{job}")["oldest"] or since) >= since:
            if time.monotonic() > deadline:
                raise BrowserError(f"the console shows nothing of {job} of the minutes before its start: see its log.")
            time.sleep(1)


@contextmanager
def console_site(settings: Settings) -> Iterator[ConsoleSite]:
    """Start broker, Airflow and MLflow's store, empty, with topics and models, for as long as the block takes.

    Raises:
        StackError, PortError, JavaError, JarsError: a service does not start.
        BrokerError, TrackingError, httpx.HTTPError: one does not answer.
        OSError: `var` cannot be written.
    """
    parts = {"broker", "airflow", "mlflow"}
    with Stack(settings, parts, fresh=TRANSIENT | {"mlflow"}, given=WITH_LOGINS) as stack:
        create_topics(stack.settings.kafka)
        _register_models(stack.settings)
        yield ConsoleSite(stack)


def _register_models(settings: Settings) -> None:
    from pipelines.registry.tracking import open_store  # and MLflow, which takes seconds

    client, _, _ = open_store(settings)
    for name, champion in MODELS.items():
        client.create_registered_model(name)
        for version in range(2):
            tags = {"kind": "blend", "live.wape": f"0.08{version}", "live.n": "480"}
            client.create_model_version(name, "file:///nowhere", tags=tags)
        if champion:
            client.set_registered_model_alias(name, "champion", champion)
