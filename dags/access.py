"""Who may see and change what in the console, by Airflow's own logins; what was changed, in Airflow's audit log."""

import json
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.configuration import conf
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi import HTTPException

from pipelines.console.access import Access, ModeChange

EVENT = "tidecast_mode"
"""Name of a change of a job's mode in the audit log."""


def viewer(user: GetUserDep) -> str:
    """Return the login of a caller who may read DAGs.

    Raises:
        HTTPException: 401 without a valid login (by Airflow), 403 without that right.
    """
    return _allowed("GET", "read", user)


def editor(user: GetUserDep) -> str:
    """Return the login of a caller who may edit DAGs.

    Raises:
        HTTPException: 401 without a valid login (by Airflow), 403 without that right.
    """
    return _allowed("PUT", "edit", user)


def _allowed(method: Any, does: str, user: Any) -> str:
    if not get_auth_manager().is_authorized_dag(method=method, user=user):
        raise HTTPException(403, f"{user.get_name()} may not {does} DAGs in this Airflow, which this takes")
    return str(user.get_name())


def record(change: ModeChange) -> None:
    """Write a change to Airflow's audit log, committed when this returns.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: Airflow's database does not take it.
    """
    event = f"{EVENT}_failed" if change.failed else EVENT
    with create_session() as session:
        session.add(Log(event=event, owner=change.by, owner_display_name=change.by, extra=json.dumps(change.facts())))


def airflow_access() -> Access:
    """Return the console's access by this Airflow: its logins, its audit log, its address."""
    return Access(viewer, editor, record, "../auth/login", (conf.get("api", "base_url", fallback=""),))
