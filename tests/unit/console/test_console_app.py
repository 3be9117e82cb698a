"""Every route of the console: who is let in, what is refused, what a change does."""

from __future__ import annotations

import json
import re

import pytest
from fastapi import Header, HTTPException
from fastapi.testclient import TestClient

from configs.settings import ROOT
from pipelines.bench.team.console.records import NOW, batch, contract, decision, interval, pool, word
from pipelines.console.access import Access
from pipelines.console.app import HEADERS, STATIC, build_app
from pipelines.console.asked import Answer, PageSources
from pipelines.console.change import StaleError
from pipelines.console.follow import READING
from pipelines.console.origin import objection
from pipelines.console.read.fold import ReadModel, fold
from pipelines.console.read.history import Point
from pipelines.kafka.connection import BrokerError

KNOWN = [contract("orders"), interval("orders", NOW), batch("orders", NOW), word("orders", NOW, "observe"),
         pool("shared", NOW, ["orders", "rides"])]  # fmt: skip
MODEL = fold(ReadModel(), KNOWN, NOW)
LISTS = ("pools", "backfills", "models", "topologies")
PAGES = ["/", "/jobs/orders", *(f"/{name}" for name in LISTS)]
DATA = ["/data/jobs", "/data/jobs/orders", *(f"/data/{name}" for name in LISTS)]
GETS = [*PAGES, *DATA, "/static/jobs.js", "/static/none.js"]
BESIDE = PageSources(
    registered=lambda: Answer(None, "MLflow: it is away."),
    topologies=lambda: Answer([{"name": "adverts", "problem": "", "begun": False, "queries": []}], "", NOW),
)
ASKED = {"mode": "act", "seen": NOW, "confirmed": "orders"}
OURS = {"x-tidecast-console": "1"}


def login(*roles):
    """A caller with one of these roles, as Airflow's dependency would know him."""

    def known(authorization: str = Header("")) -> str:
        if not authorization:
            raise HTTPException(401, "Not authenticated")
        if authorization not in roles:
            raise HTTPException(403, f"{authorization} may not")
        return "ann"

    return known


class Switch:
    """Takes changes; raises what it is told to."""

    def __init__(self):
        self.made, self.fails = [], None

    def __call__(self, *asked):
        if self.fails:
            raise self.fails
        self.made.append(asked)


@pytest.fixture
def switch():
    return Switch()


@pytest.fixture
def client(switch):
    access = Access(login("viewer", "editor"), login("editor"), print, "../auth/login", ("https://flow.example",))
    with TestClient(build_app(lambda: (MODEL, ""), switch, access, BESIDE), base_url="http://inside:8080") as made:
        yield made


def post(client, job="orders", asked=ASKED, role="editor", **headers):
    return client.post(f"/data/jobs/{job}/mode", json=asked, headers={"authorization": role, **OURS, **headers})


def test_each_route_is_among_those_that_are_tried(client):
    tried = {path.replace("orders", "{job}") for path in [*PAGES, *DATA]}
    assert {route.path for route in client.app.routes} == tried | {"/static/{name:path}", "/data/jobs/{job}/mode"}


@pytest.mark.parametrize("path", GETS)
def test_nothing_is_shown_without_a_login_or_to_one_without_the_role(client, path):
    assert client.get(path).status_code == 401
    assert client.get(path, headers={"authorization": "stranger"}).status_code == 403
    assert client.get(path, headers={"authorization": "viewer"}).status_code == (404 if "none" in path else 200)


def test_a_change_takes_a_login_and_a_role_that_may_edit(client, switch):
    bare = client.post("/data/jobs/orders/mode", json=ASKED, headers=OURS)
    assert (bare.status_code, post(client, role="viewer").status_code) == (401, 403)
    assert switch.made == []
    assert post(client).json() == {"job": "orders", "mode": "act"}
    assert switch.made == [("orders", "act", NOW, "ann")]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://flow.example.evil.example"},
    ],
)
def test_a_change_from_elsewhere_is_refused(client, switch, headers):
    answer = post(client, **headers)
    assert answer.status_code == 403 and "own page" in answer.json()["detail"]
    assert switch.made == []


def test_a_change_without_the_header_that_no_form_sends_is_refused(client, switch):
    assert client.post("/data/jobs/orders/mode", json=ASKED, headers={"authorization": "editor"}).status_code == 403
    form = client.post("/data/jobs/orders/mode", data={"mode": "act"}, headers={"authorization": "editor", **OURS})
    assert form.status_code == 422
    assert switch.made == []


def test_an_airflow_without_an_address_of_its_own_takes_no_page_without_origin_for_its_own():
    assert objection({**OURS, "host": "flow:8080", "origin": "null"}, ("",)) == "it was sent from null"
    assert objection({**OURS, "host": "flow:8080", "origin": "https://flow:8080"}, ("",)) is None


@pytest.mark.parametrize("origin", ["http://inside:8080", "https://flow.example"])
def test_a_change_from_the_page_itself_is_taken_also_behind_a_proxy(client, origin):
    assert post(client, **{"origin": origin, "sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.parametrize(
    "asked",
    [
        {**ASKED, "confirmed": ""},
        {**ASKED, "confirmed": "rides"},
        {**ASKED, "mode": "run"},
        {"mode": "act", "seen": NOW},
        {"mode": "act", "confirmed": "orders"},
        {**ASKED, "seen": -1.0},
        {**ASKED, "more": 1},
    ],
)
def test_a_change_that_nobody_confirmed_or_that_is_none_is_refused(client, switch, asked):
    assert post(client, asked=asked).status_code == 422
    assert switch.made == []


def test_a_change_that_is_no_json_is_refused_without_being_repeated(client, switch):
    head = {"authorization": "editor", "content-type": "application/json", **OURS}
    answer = client.post("/data/jobs/orders/mode", content=b'{"mode": "stop", "seen": NaN, "more": NaN}', headers=head)
    assert answer.status_code == 422 and {"mode", "seen", "more"} <= {one["loc"][-1] for one in answer.json()["detail"]}
    assert "input" not in answer.json()["detail"][0] and switch.made == []


def test_a_stale_page_is_told(client, switch):
    switch.fails = StaleError("orders was told to freeze by bob")
    answer = post(client)
    assert (answer.status_code, answer.json()["detail"]) == (409, "orders was told to freeze by bob")


@pytest.mark.parametrize("error", [BrokerError("no broker"), ConnectionError("none"), ValueError("a key too short")])
def test_what_keeps_a_change_from_being_made_is_told(client, switch, error):
    switch.fails = error
    answer = post(client)
    assert answer.status_code == 503 and str(error) in answer.json()["detail"]


def test_a_job_that_nobody_knows(client, switch):
    assert client.get("/data/jobs/rides", headers={"authorization": "viewer"}).status_code == 404
    assert post(client, job="rides", asked={**ASKED, "confirmed": "rides"}).status_code == 404
    assert client.get("/data/jobs/-", headers={"authorization": "viewer"}).status_code == 422
    assert switch.made == []


def test_a_neighbour_that_is_away_is_said_and_the_page_is_there(client):
    found = client.get("/data/models", headers={"authorization": "viewer"}).json()
    assert (found["rows"], found["problem"]) == ([], "MLflow: it is away.")
    found = client.get("/data/topologies", headers={"authorization": "viewer"}).json()
    assert ([row["name"] for row in found["rows"]], found["problem"]) == (["adverts"], "")


def test_nothing_but_a_mode_is_changed_whatever_is_posted(client, switch):
    for path in [*PAGES, *DATA]:
        assert client.post(path, headers={"authorization": "editor", **OURS}).status_code == 405
    assert switch.made == []


def test_rows_are_those_that_changed_and_all_where_the_model_began_anew(client):
    def rows(since):
        return client.get(f"/data/jobs?since={since}", headers={"authorization": "viewer"}).json()["rows"]

    assert [row["job"] for row in rows(0)] == ["orders"]
    assert [row["job"] for row in rows(MODEL.revision + 100)] == ["orders"]
    assert [row["job"] for row in rows(MODEL.revision)] == ["orders"]  # its newest metrics are years old by now


def test_every_answer_forbids_foreign_scripts_and_frames(client):
    for path in ("/", "/static/jobs.js", "/data/jobs", "/nowhere"):
        answer = client.get(path, headers={"authorization": "viewer"})
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_a_file_is_sent_once(client):
    first = client.get("/static/console.css", headers={"authorization": "viewer"})
    again = {"authorization": "viewer", "if-none-match": first.headers["etag"]}
    assert (first.status_code, client.get("/static/console.css", headers=again).status_code) == (200, 304)
    assert client.get("/static/..%2Fapp.py", headers={"authorization": "viewer"}).status_code == 404


def test_a_person_without_login_finds_the_way_to_it(client):
    for path, way in (("/", "./../auth/login"), ("/jobs/orders", "../../auth/login")):
        page = client.get(path, headers={"accept": "text/html"})
        assert page.status_code == 401 and f'href="{way}"' in page.text


def test_what_the_pages_load_is_there_and_listed(client):
    for path in PAGES:
        text = client.get(path, headers={"authorization": "viewer"}).text
        loaded = set(re.findall(r'(?:src|href)="[./]*static/([^"]+)"', text))
        assert loaded and loaded <= set(STATIC)
        assert "<script>" not in text and "style=" not in text and "onclick" not in text
    for name in STATIC:
        assert client.get(f"/static/{name}", headers={"authorization": "viewer"}).content
    folder = ROOT / "pipelines" / "console" / "static"
    files = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.suffix in (".js", ".css")}
    assert files == set(STATIC) - {"page.css"}


def test_the_scripts_know_the_columns_of_a_history():
    script = (ROOT / "pipelines" / "console" / "static" / "plots.js").read_text()
    (fields,) = re.findall(r"^const FIELDS = (\[.*\]);$", script, re.MULTILINE)
    assert json.loads(fields) == ["time", *Point._fields]


def test_text_of_a_message_is_text_on_the_page(client, switch):
    reason = "</script><img src=x onerror=alert(1)>"
    model = fold(MODEL, [decision("orders", NOW, reason=reason)], NOW)
    access = Access(lambda: "ann", lambda: "ann", print)
    with TestClient(build_app(lambda: (model, "</p><script>"), switch, access, BESIDE)) as other:
        answer = other.get("/data/jobs/orders")
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.text)["decisions"][0]["reason"] == reason
    for script in (ROOT / "pipelines" / "console" / "static").glob("*.js"):
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|eval\(", script.read_text()), script


@pytest.mark.parametrize(
    ("problem", "reading"), [(READING, True), ("", False), ("The topics cannot be read: no broker", False)]
)
def test_data_say_whether_the_topics_are_being_read_for_the_first_time(problem, reading):
    access = Access(login("viewer"), login("editor"), print)
    app = build_app(lambda: (ReadModel(), problem), print, access, BESIDE)
    with TestClient(app) as client:
        for name in ("jobs", *LISTS):
            found = client.get(f"/data/{name}", headers={"authorization": "viewer"}).json()
            assert found["reading"] is reading and found["problem"].startswith(problem)
