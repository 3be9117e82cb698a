"""A learned policy that needs no training, and a registry that has versions of it."""

import numpy as np

from models.policy.core.choice import make_choice
from pipelines.scale.artifact_sync import ArtifactSource


class Agent:
    """Always so many executors; it carries how often it was asked."""

    name = "dqn"

    def __init__(self, executors):
        self.executors = executors

    def fresh(self, runs):
        return {"asked": np.zeros(runs)}

    def decide(self, memory, view):
        return {"asked": memory["asked"] + 1}, make_choice(np.full(view.runs, self.executors))


def read(files, contract):
    text = (files / "agent.txt").read_text()
    if text == "broken":
        raise ValueError("agent.txt: 7 observations, the environment has 9")
    return Agent(float(text))


class Versions:
    """One job's agents; the alias points to the newest."""

    def __init__(self, job):
        self.job, self.versions, self.away, self.torn = job, {}, False, False

    def source(self):
        return ArtifactSource("agent", self.champions, lambda job, champion: champion, self.fetch, read)

    def champions(self):
        if self.away:
            raise RuntimeError("the registry is away")
        return {self.job: max(self.versions)} if self.versions else {}

    def fetch(self, job, version, files):
        if self.torn:
            raise RuntimeError("the connection was reset")
        files.mkdir(parents=True, exist_ok=True)
        (files / "agent.txt").write_text(self.versions[version])
