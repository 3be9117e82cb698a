"""A server of this computer that asks nobody for a login lets in its own pages and programs, not pages of others."""

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from pipelines.console.origin import LoopbackOnly

OWN = "http://127.0.0.1:8080"


@pytest.fixture
def client():
    return TestClient(LoopbackOnly(PlainTextResponse("done")), base_url=OWN)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:9000", "[::1]:8080", "localhost"])
def test_a_program_and_a_page_are_let_in_by_every_name_of_the_loopback(client, host):
    assert client.post("/runs", headers={"host": host}).text == "done"
    assert client.post("/runs", headers={"host": host, "origin": f"http://{host}"}).text == "done"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("host", ["evil.example:8080", "127.0.0.1.evil.example", "", "[::1", "10.0.0.7:8080"])
def test_a_name_that_was_given_this_computers_address_is_refused(client, method, host):
    answer = client.request(method, "/auth/token", headers={"host": host})
    assert answer.status_code == 403 and repr(host) in answer.text and "127.0.0.1, localhost" in answer.text


@pytest.mark.parametrize(
    "sent",
    [
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_page_changes_nothing_and_its_link_leads_here(client, sent):
    assert client.post("/assets/1/materialize", headers=sent).status_code == 403
    assert client.get("/", headers=sent).status_code == 200
    assert client.post("/runs", headers={"origin": OWN, "sec-fetch-site": "same-origin"}).status_code == 200
