"""The registered agents of every job: their description as JSON, so that nothing that is loaded can run code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from models.dqn.agent.actions import MOVES, PARTS
from models.dqn.agent.model import AgentError, DqnModel, describe, revive
from models.dqn.agent.observation import FEATURES
from pipelines.registry.artifacts import UnreadableError, log_json_model, make_signature
from pipelines.registry.runs import TrackedRun
from pipelines.registry.store import ModelStore

AGENT_FILE = "agent.json"


class AgentRegistry(ModelStore):
    """Agents under the name `<job>-agent`."""

    what = "agent"
    made_by = "retrain_agent"

    def load(self, job: str, version: str | None = None) -> DqnModel:
        """Load a job's DQN agent from the registry.

        Args:
            job: name of the job.
            version: of the agent, its number as text, e.g. "3"; None for the champion (the version that serves).

        Raises:
            UnreadableError: the version's files are gone, or are no agent with this code's features, moves and shapes.
            RegistryError: no such job or version, no champion, or MLflow does not answer.
            ValueError: no job can have the name (MessageError).
            OSError: a file cannot be downloaded or read.
        """
        with TemporaryDirectory() as scratch:
            folder, what = self.download(job, version, Path(scratch))
            try:
                return read_agent(folder)
            except ValueError as error:  # an AgentError, or text in place of numbers
                raise UnreadableError(f"{what}: {error}") from None

    def register(
        self, run: TrackedRun, job: str, agent: DqnModel, card: str, tags: Mapping[str, str], alias: str | None = None
    ) -> str:
        """Log an agent to a running run and register it with its model card; returns the new version, e.g. "3".

        Args:
            run: must be the active run.
            job: whose agent.
            agent: to log.
            card: Markdown, becomes the version's description.
            tags: of the version; `kind` is added.
            alias: to point to the new version, e.g. `CHALLENGER`.

        Raises:
            MlflowException: MLflow refuses or does not answer.
            MessageError: no job can have the name.
            OSError: a temporary file cannot be written.
        """
        seen, worth = {None: (-1, len(FEATURES))}, {None: (-1, len(MOVES), PARTS)}  # of every action, in parts
        model_id = log_json_model(
            describe(agent), AGENT_FILE, make_signature(seen, worth), name="dqn", tags=dict(tags), model_type="agent"
        )
        return self.register_version(run, job, model_id, card, {**tags, "kind": "dqn"}, alias)


def read_agent(folder: Path) -> DqnModel:
    """Read a DQN agent from `agent.json` in (a subfolder of) the folder of a downloaded version; needs no MLflow.

    Raises:
        AgentError: there is none, it is no JSON, or its features, moves or shapes are not this code's.
        ValueError: text in place of numbers, lists of unequal length, or the file is not UTF-8.
        OSError: the file cannot be read.
    """
    files = sorted(folder.rglob(AGENT_FILE))
    if not files:
        raise AgentError(f"{folder} has no {AGENT_FILE}: no agent of Tidecast was registered there; train one")
    try:
        return revive(json.loads(files[0].read_text()))
    except json.JSONDecodeError as error:
        raise AgentError(f"{files[0]} is no JSON ({error}); train the agent again") from None
