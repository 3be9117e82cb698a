"""Where the agents of the policy `dqn` come from: the registry in the driver, plain files in a worker."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from configs.contract import Contract
from configs.settings import Settings
from models.dqn.agent.policy import Dqn
from models.policy.core.view import Policy
from pipelines.registry import AgentRegistry
from pipelines.registry.agents import read_agent
from pipelines.scale.artifact_sync import Source


def source(settings: Settings) -> Source:
    """The champions of the registry, which is opened when it is first asked."""

    @lru_cache(maxsize=1)
    def registry() -> AgentRegistry:
        return AgentRegistry(settings)

    return Source(
        "agent",
        lambda job: registry().champion_version(job),
        lambda job, version, files: registry().fetch(job, version, files),
        read,
    )


def read(files: Path, contract: Contract) -> Policy:
    """The policy of the agent in a version's files.

    Raises:
        AgentError: there is none, or its spaces do not fit this code's.
    """
    return Dqn.of("dqn", contract, read_agent(files))
