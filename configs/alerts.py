"""Who is told when something is wrong with a job: the section `alerts` of a contract."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, SecretStr
from pydantic_core import CoreSchema

from configs.bounds import Section

# A host and port that every client can parse: one that cannot would end the look at all webhooks.
_WEBHOOK = re.compile(r"(https://[A-Za-z0-9._-]+|http://(127\.0\.0\.1|localhost|\[::1\]))(:[0-9]{1,5})?(/[!-~]*)?")


class _Described:
    """Lets the JSON schema say which texts are taken."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), "pattern": f"^{_WEBHOOK.pattern}$"}


def _checked(webhook: SecretStr) -> SecretStr:
    if not _WEBHOOK.fullmatch(webhook.get_secret_value()):
        raise ValueError("https:// and a host are expected, or http:// and this computer's name; then a path")
    return webhook


Webhook = Annotated[SecretStr, AfterValidator(_checked), _Described]
"""An address to which messages are posted; whoever knows it may write there, so that it is never shown."""


class Alerts(Section):
    """Who is told when something is wrong, by `tidecast metrics`; it changes no decision and is in no message.

    Attributes:
        webhook: address to which alerts are posted as JSON; https, or a relay of one's own on this computer.
        repeat_s: wall seconds after which an alert that still stands is told again; each further time takes twice as
            long, a day at most.
    """

    webhook: Webhook
    repeat_s: float = Field(3600.0, ge=60, le=86_400)
