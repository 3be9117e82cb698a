"""Asks for the console's pages in Airflow's own API server, with logins of each role; writes what came as JSON."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.asset import AssetEvent, AssetModel
from airflow.utils.session import create_session
from starlette.testclient import TestClient


def token(role: str) -> str:
    """Of a person with that role; "": with none."""
    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=f"a {role}", role=role or None))


if __name__ == "__main__":
    app = create_app(apps="core")
    before = sorted(name for name in sys.modules if name.partition(".")[0] in ("pipelines", "models", "configs"))
    client = TestClient(app, base_url="http://localhost:8080")

    from dags.access import drift_events, plan_advice, record
    from dags.assets import DRIFT
    from pipelines.bench.team.console.roles import READING, ask_by_role
    from pipelines.console.access import ModeChange

    answers = ask_by_role(client, {role: token(role) for role in READING})

    with create_session() as session:
        other, drift = (AssetModel(name=name, uri=f"somebody://{name}") for name in ("drift", DRIFT.name))
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
    elsewhere = [
        client.get("/api/v2/version", headers={"host": "evil.example:8080"}),
        client.post("/api/v2/assets/1/materialize", headers={**admin, "sec-fetch-site": "same-site"}),
        client.post("/api/v2/assets/1/materialize", headers={**admin, "sec-fetch-site": "same-origin"}),
    ]
    found = {
        "elsewhere": [one.status_code for one in elsewhere],
        "loaded before a request": before,
        "answers": [one._asdict() for one in answers],
        "problem": client.get("/tidecast/data/jobs", headers=admin).json()["problem"],
        "drifts": drift_events(),
        "advice": plan_advice(),
        "log": [{name: one[name] for name in ("event", "owner", "extra")} for one in logged],
        "views": [view for plugin in plugins for view in plugin["external_views"]],
        "errors": client.get("/api/v2/plugins/importErrors", headers=admin).json(),
    }
    Path(sys.argv[1]).write_text(json.dumps(found))
