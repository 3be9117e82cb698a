"""MLflow for the pipeline: runs, registered forecasters and their aliases; its sole importer."""

from pipelines.registry.artifacts import RegistryError
from pipelines.registry.runs import Run
from pipelines.registry.store import CHALLENGER, CHAMPION, Registry

__all__ = ["CHALLENGER", "CHAMPION", "Registry", "RegistryError", "Run"]
