"""The console put together: the broker's topics, the neighbours, the logins, the pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from fastapi import FastAPI

from configs.settings import Settings
from models.alerts.knowledge import DriftSeen
from pipelines.console.access import Access
from pipelines.console.app import build_app
from pipelines.console.asked import PageSources, Polled
from pipelines.console.change import ModeSwitch
from pipelines.console.follow import TopicsFollower
from pipelines.console.models import pages_address
from pipelines.console.topologies import read_topologies

if TYPE_CHECKING:
    from pipelines.registry.overview import Overview

REGISTRY_S, AIRFLOW_S, FOLDERS_S = 60.0, 30.0, 5.0
"""Seconds from an answer of MLflow, of Airflow's database, and of the folders of topologies, to the next question."""


def console(settings: Settings, access: Access) -> FastAPI:
    """Return the console's application on the topics of the settings' broker, which it follows from now on.

    Args:
        settings: the broker, its security, the file of signing keys, MLflow, the folders of topologies and jobs.
        access: the logins that its pages go by.
    """
    follower = TopicsFollower(settings.kafka)
    follower.look()  # so that the first person who looks finds something

    @cache
    def overview() -> Overview:
        from pipelines.registry.overview import Overview  # and MLflow, in the thread that asks it

        return Overview(settings)

    def drifts() -> Mapping[str, DriftSeen]:
        from pipelines.airflow.drifts import newest_drifts

        return newest_drifts(access.drifts())

    beside = PageSources(
        Polled("MLflow", lambda: overview().read(), REGISTRY_S).look, Polled("Drifts", drifts, AIRFLOW_S).look,
        Polled("Topologies", lambda: read_topologies(settings), FOLDERS_S).look,
        Polled("Plans", access.advice, AIRFLOW_S).look, pages_address(settings.mlflow.tracking_uri),
    )  # fmt: skip
    switch = ModeSwitch(settings.kafka, access)
    return build_app(lambda: (follower.look(), follower.problem), switch.change, access, beside)
