"""Asks for the console's pages in Airflow's own API server, with logins of each role; writes what came as JSON."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.asset import AssetEvent, AssetModel
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from starlette.testclient import TestClient

ASKED = {"mode": "freeze", "seen": None, "confirmed": "orders"}
OURS = {"x-tidecast-console": "1"}


def token(role: str | None) -> str:
    """Of a person with that role; None: with none."""
    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=f"a {role}", role=role))


if __name__ == "__main__":
    initdb()
    app = create_app(apps="core")
    before = sorted(name for name in sys.modules if name.partition(".")[0] in ("pipelines", "models", "configs"))
    client = TestClient(app, base_url="http://localhost:8080")
    answers = {}
    for role in ("viewer", "user", None):
        bearer = {"authorization": f"Bearer {token(role)}"}
        for path in ("", "jobs/orders", "data/jobs", "data/models", "data/topologies", "static/jobs.js"):
            answers[f"{role} {path}"] = client.get(f"/tidecast/{path}", headers=bearer).status_code
        changed = client.post("/tidecast/data/jobs/orders/mode", json=ASKED, headers=bearer | OURS)
        answers[f"{role} mode"] = changed.status_code
    cookie = {"cookie": f"_token={token('viewer')}"}
    answers["cookie"] = client.get("/tidecast/", headers=cookie).status_code
    answers["nobody"] = client.get("/tidecast/").status_code
    answers["nobody mode"] = client.post("/tidecast/data/jobs/orders/mode", json=ASKED, headers=OURS).status_code
    answers["forged"] = client.get("/tidecast/", headers={"cookie": "_token=a.b.c"}).status_code

    from dags.access import drift_events, plan_advice, record
    from pipelines.console.access import ModeChange

    with create_session() as session:
        other, drift = AssetModel(name="metrics", uri="tidecast://m"), AssetModel(name="drift", uri="tidecast://d")
        session.add_all([other, drift])
        session.flush()
        for minute, (asset, factor) in enumerate(((drift, 1.3), (drift, 1.5), (other, 9.0))):
            at = datetime(2026, 11, 27, 6, minute, tzinfo=UTC)
            session.add(AssetEvent(asset_id=asset.id, extra={"job": "orders", "factor": factor}, timestamp=at))
    record(ModeChange("orders", "act", "freeze", "ann"))
    record(ModeChange("orders", "act", "freeze", "ann", "no broker"))
    admin = {"authorization": f"Bearer {token('admin')}"}
    logged = client.get("/api/v2/eventLogs", headers=admin).json()["event_logs"]
    plugins = client.get("/api/v2/plugins", headers=admin).json()["plugins"]
    found = {
        "loaded before a request": before,
        "answers": answers,
        "problem": client.get("/tidecast/data/jobs", headers=admin).json()["problem"],
        "drifts": drift_events(),
        "advice": plan_advice(),
        "log": [{name: one[name] for name in ("event", "owner", "extra")} for one in logged],
        "views": [view for plugin in plugins for view in plugin["external_views"]],
        "errors": client.get("/api/v2/plugins/importErrors", headers=admin).json(),
    }
    Path(sys.argv[1]).write_text(json.dumps(found))
