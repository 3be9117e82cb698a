"""The stage of a run that trains an agent, for policies that need one."""

from __future__ import annotations

from pipelines.airflow.rest import Orchestrator
from pipelines.demo.progress import Screen
from pipelines.registry import AgentRegistry
from pipelines.stack.stack import Stack

AGENT_DAG = "retrain_agent"


def first_agent(stack: Stack, dags: Orchestrator, screen: Screen, number: int, of: int) -> str | None:
    """An agent of the main job through its DAG, on what the lake has; returns the champion's version, None without."""
    registry, name = AgentRegistry(stack.settings), stack.settings.job.name
    with screen.stage(number, of, f"first agent: the DAG {AGENT_DAG} trains it in the job's twin and judges it"):
        dags.wait_for_dags((AGENT_DAG,))
        dags.unpause(AGENT_DAG)
        dags.wait_run(AGENT_DAG, dags.trigger(AGENT_DAG, {"job": name}))
        dags.pause(AGENT_DAG)
        if verdict := registry.last_verdict(name):
            screen.note(f"agent: {verdict['reason']}")
        champion = registry.champion_version(name)
        if champion is None:
            screen.note("no agent serves: another policy stands in, and every decision says so")
    return champion
