"""Registered models as JSON values for their page: what serves, how right it was, and whether the load has drifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from models.alerts.knowledge import DriftSeen
from pipelines.console.read.fold import ReadModel
from pipelines.console.read.job import FollowedJob

if TYPE_CHECKING:  # whoever shows jobs alone does not need the registry's code
    from pipelines.registry.overview import RegisteredModel, RegisteredVersion

Values = dict[str, Any]
LATELY_S = 86_400.0
"""Seconds for which a drift is in the way of trusting what is forecast, as the alert of it has it."""
FORECASTER = "forecaster"


def model_rows(
    read: ReadModel, registered: Sequence[RegisteredModel] | None, drifts: Mapping[str, DriftSeen], mlflow: str,
    now: float,
) -> list[Values]:  # fmt: skip
    """Return a row per registered model, and per job that is forecast without one; those in trouble first.

    Args:
        read: what the topics have told.
        registered: as MLflow told it; None: it has not answered yet, and nothing is said of what is not registered.
        drifts: newest reported one, by job.
        mlflow: address of MLflow's pages; "": not known.
        now: wall time, epoch seconds.
    """
    rows = [_row(one, one.job, read.jobs.get(one.job), drifts.get(one.job), mlflow, now) for one in registered or ()]
    there = {one.job for one in registered or () if one.what == FORECASTER}
    rows += [
        _row(None, name, job, drifts.get(name), "", now)
        for name, job in read.jobs.items() if job.forecast is not None and name not in there
    ]  # fmt: skip
    if registered is None:
        rows = [{**row, "trouble": ""} for row in rows]
    return sorted(rows, key=lambda row: (not row["trouble"], row["job"], row["what"]))


def pages_address(tracking_uri: str | None) -> str:
    """Return the address of MLflow's pages by that of its store, without a login in it; "" where it has none."""
    found = urlsplit(tracking_uri or "")
    if found.scheme not in ("http", "https") or not found.hostname:
        return ""
    return f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path.rstrip('/')}"


def _row(
    one: RegisteredModel | None, name: str, job: FollowedJob | None, drift: DriftSeen | None, mlflow: str, now: float
) -> Values:
    versions, what = ((), FORECASTER) if one is None else (one.versions, one.what)
    by_alias = {alias: version for version in versions for alias in version.aliases}
    champion, served = by_alias.get("champion"), _served(what, job, now)
    drift = drift if what == FORECASTER else None
    return {
        "job": name, "what": what, "count": 0 if one is None else one.many, "served": served,
        "champion": _version(champion, now), "challenger": _version(by_alias.get("challenger"), now),
        "newest": _version(versions[0] if versions else None, now),
        "drift": None if drift is None else {"age_s": round(now - drift.reported), "factor": drift.factor},
        "link": f"{mlflow}/#/models/{quote(one.name)}" if mlflow and one else "",
        "trouble": _trouble(champion, served, drift, now) if what == FORECASTER else "",
    }  # fmt: skip


def _served(what: str, job: FollowedJob | None, now: float) -> Values | None:
    """What was served last: of a forecaster its newest forecast, of an agent its newest decision."""
    if job is None:
        return None
    if what == FORECASTER and (forecast := job.forecast) is not None:
        age_s = round(now - forecast.wall_time)
        return {"by": f"{forecast.model} {forecast.version}".strip(), "version": forecast.version, "age_s": age_s}
    if what == "agent" and job.decisions and "dqn" in job.decisions[-1].policy:
        newest = job.decisions[-1]
        return {"by": newest.policy, "version": None, "age_s": round(now - newest.at)}
    return None


def _version(version: RegisteredVersion | None, now: float) -> Values | None:
    if version is None:
        return None
    tags = version.tags
    return {
        "version": version.version, "age_s": round(now - version.made_at), "kind": tags.get("kind", ""),
        "wape": _number(tags.get("live.wape")), "steps": _number(tags.get("live.n")),
        "verdict": tags.get("verdict", ""),
    }  # fmt: skip


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) < 1e15 else None


def _trouble(
    champion: RegisteredVersion | None, served: Values | None, drift: DriftSeen | None, now: float
) -> str:  # fmt: skip
    if drift is not None and now - drift.reported < LATELY_S:
        return f"the load, or its forecasts' error, changed by {drift.factor - 1:+.0%}"
    if champion is None:
        return "no champion: what serves is not registered" if served else "no champion: nothing serves"
    if served and served["version"] != champion.version:
        return f"version {served['version'] or '?'} has served last, the champion is {champion.version}"
    return ""
