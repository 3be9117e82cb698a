"""MLflow for the pipeline: runs, registered forecasters and agents, and their aliases; its sole importer."""

from pipelines.registry.agents import AgentRegistry
from pipelines.registry.aliases import CHALLENGER
from pipelines.registry.artifacts import RegistryError
from pipelines.registry.forecasters import Registry
from pipelines.registry.owned import Champion
from pipelines.registry.runs import TrackedRun

__all__ = ["CHALLENGER", "AgentRegistry", "Champion", "Registry", "RegistryError", "TrackedRun"]
