"""Who may see and change what in the console, by Airflow's own logins; what was changed, in Airflow's audit log."""

import json
from pathlib import PurePath
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.configuration import conf
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.log import Log
from airflow.models.xcom import XCOM_RETURN_KEY, XComModel
from airflow.utils.session import create_session
from fastapi import HTTPException
from sqlalchemy import select

from dags.assets import DRIFT
from pipelines.console.access import Access, ModeChange

MOST_EVENTS = 1000
"""Events of drifts, and plans, that are read."""
PLANS = "plan_placement"
"""The DAG that plans topologies anew."""
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
        raise HTTPException(403, f"{user.get_name()} may not {does} DAGs in this Airflow, which is needed for this")
    return str(user.get_name())


def record(change: ModeChange) -> None:
    """Write a change to Airflow's audit log, committed when this returns.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: Airflow's database does not take it.
    """
    event = f"{EVENT}_failed" if change.failed else EVENT
    with create_session() as session:
        session.add(Log(event=event, owner=change.by, owner_display_name=change.by, extra=json.dumps(change.facts())))


def drift_events() -> list[dict[str, Any]]:
    """Return the newest events of the asset DRIFT, newest first, as Airflow's API would: name, timestamp, extra.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: Airflow's database does not answer.
    """
    asked = (
        select(AssetModel.name, AssetEvent.timestamp, AssetEvent.extra)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetModel.name == DRIFT.name)
        .order_by(AssetEvent.timestamp.desc())
        .limit(MOST_EVENTS)
    )
    with create_session() as session:
        return [
            {"name": name, "timestamp": at.isoformat(), "extra": extra} for name, at, extra in session.execute(asked)
        ]


def plan_advice() -> dict[str, Any]:
    """Return what the DAG plan_placement has told of each topology last: `at` (epoch seconds), `told` and `asks`.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: Airflow's database does not answer.
    """
    asked = (
        select(XComModel)
        .where(XComModel.dag_id == PLANS, XComModel.task_id == "propose", XComModel.key == XCOM_RETURN_KEY)
        .order_by(XComModel.timestamp.desc())
        .limit(MOST_EVENTS)
    )
    found: dict[str, Any] = {}
    with create_session() as session:
        for one in session.scalars(asked):
            said = XComModel.deserialize_value(one)
            if isinstance(said, dict) and "page" in said and "told" in said:
                advice = {"at": one.timestamp.timestamp(), "told": str(said["told"]), "asks": bool(said.get("ask"))}
                found.setdefault(PurePath(str(said["page"])).stem, advice)
    return found


def airflow_access() -> Access:
    """Return the console's access by this Airflow: its logins, its audit log, its address."""
    origins = (conf.get("api", "base_url", fallback=""),)
    return Access(viewer, editor, record, "../auth/login", origins, drift_events, plan_advice)
