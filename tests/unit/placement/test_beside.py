"""A helper beside a job's queries: what it raises is said once and ends nothing."""

from pipelines.placement.scaled import beside
from pipelines.placement.scaled.beside import AGAIN_S, Beside
from tests.fakes.clock import clock_with


class Failing:
    """Fails while it is told to."""

    def __init__(self):
        self.fails, self.steps, self.closed = None, 0, 0

    def step(self):
        self.steps += 1
        if self.fails:
            raise self.fails

    def close(self):
        self.closed += 1
        raise OSError("it is away")


def test_a_helper_that_fails_is_closed_and_opened_anew_later(monkeypatch):
    now, said, opened, own = [100.0], [], [], Failing()
    monkeypatch.setattr(beside, "time", clock_with(monotonic=lambda: now[0]))
    helper = Beside("off-loading", lambda: opened.append(1) or own, said.append)
    helper.step()
    helper.step()
    assert (len(opened), own.steps, said) == (1, 2, [])
    own.fails = ZeroDivisionError("no rate")
    helper.step()
    helper.step()  # too soon
    assert (own.steps, own.closed) == (3, 1) and "off-loading" in said[0] and "no rate" in said[0]
    now[0] += AGAIN_S
    helper.step()
    assert (len(opened), len(said)) == (2, 1)  # the same is said once
    own.fails = None
    now[0] += AGAIN_S
    helper.step()
    helper.close()
    helper.close()
    assert (len(opened), own.closed) == (3, 3)


def test_what_cannot_be_opened_ends_nothing():
    said = []

    def opened():
        raise ConnectionError("no broker")

    Beside("forecasts", opened, said.append).step()
    assert "ConnectionError: no broker" in said[0]
