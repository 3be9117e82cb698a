"""What `tidecast up` prints once all parts are up, without starting any."""

import pytest

from configs.settings import load
from pipelines.cli.stack import up
from pipelines.kafka import topics
from pipelines.placement.page.plan_page import page_of_plan
from pipelines.stack import stack


class StackAtOnce:
    """A stack whose parts are up as soon as they are started."""

    def __init__(self, settings, parts, fresh):
        self.settings, self.addresses = settings, {"airflow": "http://127.0.0.1:8080"}

    def start(self, say):
        say("broker", 3.0)

    def detach(self):
        pass


@pytest.fixture
def printed(monkeypatch, tmp_path, capsys):
    """Returns the words of each line that the command prints."""
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setattr(stack, "Stack", StackAtOnce)
    monkeypatch.setattr(topics, "create_topics", lambda kafka: None)

    def lines():
        up()
        return [line.split() for line in capsys.readouterr().out.splitlines()]

    return lines


def test_it_names_the_page_of_each_plan_that_was_made(printed):
    assert ["airflow", "http://127.0.0.1:8080"] in printed()
    assert [line for line in printed() if line[0] == "plan"] == []
    pages = [page_of_plan(load(), name) for name in ("adverts", "orders")]
    pages[0].parent.mkdir(parents=True)
    for page in pages:
        page.write_text("<h1>planned</h1>")
    assert [line for line in printed() if line[0] == "plan"] == [["plan", page.as_uri()] for page in pages]
