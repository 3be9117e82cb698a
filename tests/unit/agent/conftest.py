"""An agent's state and what follows its topics, of a job whose cluster and broker only take notes."""

import pytest

from tests.fakes import driver
from tidecast.commands import Commands


@pytest.fixture
def job():
    return driver.job()


@pytest.fixture
def commands(job):
    made = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    made._control_read = True
    return made
