"""Whoever looks at Airflow's "Required actions" during the ring, and answers by its API what the retrain DAG asks."""

from __future__ import annotations

import re
import threading
from typing import Any

from pipelines.airflow.rest import Orchestrator, OrchestratorError, _quoted
from pipelines.stack.stack import Stack

LOOK_S = 0.5
NOTED = re.compile(r"TaskInstance Finished: .* run_id=([^,]+), .* state=awaiting_input,")
"""Once this stands in the scheduler's log: an answer that comes earlier Airflow takes for a failure, and waits 20 s."""


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
        self._answered = set[str]()

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
        airflow, log = Orchestrator(self._stack.settings), self._stack.processes["airflow-scheduler"].log
        while not self._gone.wait(LOOK_S):
            waiting = {*NOTED.findall(log.read_text(errors="replace"))} - self._answered
            if not waiting:
                continue
            try:
                for open_ in airflow._get("dags/~/dagRuns/~/hitlDetails", response_received="false")["hitl_details"]:
                    if open_["task_instance"]["dag_run_id"] in waiting:
                        self._answer(airflow, open_)
            except OrchestratorError:
                continue  # it is busy, or another look has answered: the next look tells

    def _answer(self, airflow: Orchestrator, detail: dict[str, Any]) -> None:
        task = detail["task_instance"]
        job, rest = detail["body"].split(", version ", 1)
        option = "Approve" if job == self.job else "Reject"
        where = f"dags/{task['dag_id']}/dagRuns/{_quoted(task['dag_run_id'])}/taskInstances/{task['task_id']}"
        airflow._call("PATCH", f"{where}/{task['map_index']}/hitlDetails", {"chosen_options": [option]})
        self._answered.add(task["dag_run_id"])
        self.asked.append({"job": job, "version": rest.split(":")[0], "chosen": option})
