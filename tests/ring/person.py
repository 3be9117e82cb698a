"""Whoever looks at Airflow's "Required actions" during the ring, and answers by its API what the retrain DAG asks."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from pipelines.airflow.rest import Orchestrator, OrchestratorError, _quoted
from pipelines.stack.stack import Stack

LOOK_S = 4.0
READS = 3
"""Looks before an answer: Airflow takes one that comes before its scheduler has seen the question for a failure, after
which it waits 20 s; and the task that asks takes 5 s to end."""


class Person(threading.Thread):
    """Approves the challengers of one job and rejects those of every other.

    Attributes:
        asked: per question, in order: `job`, `version` and the option that was chosen.
    """

    def __init__(self, job: str) -> None:
        super().__init__(name="person", daemon=True)
        self.job, self.asked = job, list[dict[str, str]]()
        self._stack: Stack | None = None
        self._gone = threading.Event()
        self._looked: Counter[str] = Counter()

    def sits_down(self, stack: Stack) -> None:
        """Begin to look, on a started stack."""
        self._stack = stack
        self.start()

    def leaves(self) -> None:
        """Look no more."""
        self._gone.set()
        self.join(60)

    def run(self) -> None:
        assert self._stack is not None
        airflow = Orchestrator(self._stack.settings)
        while not self._gone.wait(LOOK_S):
            try:
                for open_ in airflow._get("dags/~/dagRuns/~/hitlDetails", response_received="false")["hitl_details"]:
                    self._answer(airflow, open_)
            except OrchestratorError:
                continue  # it is busy, or another look has answered: the next look tells

    def _answer(self, airflow: Orchestrator, detail: dict[str, Any]) -> None:
        task = detail["task_instance"]
        self._looked[task["id"]] += 1
        if self._looked[task["id"]] < READS:
            return
        job, rest = detail["body"].split(", version ", 1)
        option = "Approve" if job == self.job else "Reject"
        where = f"dags/{task['dag_id']}/dagRuns/{_quoted(task['dag_run_id'])}/taskInstances/{task['task_id']}"
        airflow._call("PATCH", f"{where}/{task['map_index']}/hitlDetails", {"chosen_options": [option]})
        self.asked.append({"job": job, "version": rest.split(":")[0], "chosen": option})
