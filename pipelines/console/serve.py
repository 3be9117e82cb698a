"""The console put together: the broker's topics, the logins, the pages."""

from __future__ import annotations

from fastapi import FastAPI

from configs.settings import Settings
from pipelines.console.access import Access
from pipelines.console.app import build_app
from pipelines.console.change import ModeSwitch
from pipelines.console.follow import ModelFollower


def console(settings: Settings, access: Access) -> FastAPI:
    """Return the console's application on the topics of the settings' broker, which it follows from its first look on.

    Args:
        settings: the broker, its security, the file of signing keys.
        access: the logins that its pages go by.
    """
    follower = ModelFollower(settings.kafka)
    return build_app(lambda: (follower.look(), follower.problem), ModeSwitch(settings.kafka, access).change, access)
