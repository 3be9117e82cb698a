"""Requests to the console with logins of each role, with none, and with a forged one, and what each is to answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

JOB = "orders"
"""A job that nothing is known of: who may change its mode is told so (404)."""
PAGES = ("", f"jobs/{JOB}", "data/jobs", "data/models", "data/topologies", "static/jobs.js")
CHANGE = f"data/jobs/{JOB}/mode"
ASKED = {"mode": "freeze", "seen": None, "confirmed": JOB}
OURS = {"x-tidecast-console": "1"}
"""The header of the console's own requests."""
READING, CHANGING = {"viewer": 200, "user": 200, "": 403}, {"viewer": 403, "user": 404, "": 403}
"""Status of a page and of a change, by role; "" is a login without one."""


class RoleAnswer(NamedTuple):
    """A request with a login, the status that it is to have, and the one it has."""

    who: str
    asked: str
    wanted: int
    status: int


def ask_by_role(client: Any, tokens: Mapping[str, str]) -> list[RoleAnswer]:
    """Make every request with every login.

    Args:
        client: of Airflow's address: an `httpx.Client`, or what has its methods.
        tokens: of a login of each role of `READING`.
    """
    found = []
    for role, token in tokens.items():
        bearer = {"authorization": f"Bearer {token}"}
        for page in PAGES:
            status = client.get(f"/tidecast/{page}", headers=bearer).status_code
            found.append(RoleAnswer(role or "no role", page, READING[role], status))
        status = client.post(f"/tidecast/{CHANGE}", json=ASKED, headers=bearer | OURS).status_code
        found.append(RoleAnswer(role or "no role", CHANGE, CHANGING[role], status))
    cookies = {"by cookie": (tokens["viewer"], 200), "forged": ("a.b.c", 403)}
    for who, (token, wanted) in cookies.items():
        status = client.get("/tidecast/", headers={"cookie": f"_token={token}"}).status_code
        found.append(RoleAnswer(who, "", wanted, status))
    found.append(RoleAnswer("nobody", "", 401, client.get("/tidecast/").status_code))
    status = client.post(f"/tidecast/{CHANGE}", json=ASKED, headers=OURS).status_code
    return [*found, RoleAnswer("nobody", CHANGE, 401, status)]
