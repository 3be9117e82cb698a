"""Airflow for the pipeline: its REST API (v2), used as a person uses its UI."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import httpx

from configs.errors import CorrectableError
from configs.settings import Settings

_LOG_LINES = 20
_NO_LOGIN = (401, 403, 405)  # the last one where a token is given for a password alone


class OrchestratorError(CorrectableError, RuntimeError):
    """Airflow cannot be reached, refuses, or a run failed; the message says which and shows the last log lines."""


class Orchestrator:
    """Client of one Airflow's REST API; asks for a token by itself and renews it.

    Every method raises `OrchestratorError` where Airflow does not answer a request within 30 s, refuses it, or answers
    with a page, and KeyError or ValueError where what answers is not Airflow.
    """

    def __init__(self, settings: Settings) -> None:
        """Remember where Airflow is; nothing is asked of it yet.

        Raises:
            OrchestratorError: `airflow.url` is not set.
        """
        if not settings.airflow.url:
            raise OrchestratorError("airflow.url is not set: `make up` starts one, or set TIDECAST_AIRFLOW__URL.")
        self._url = settings.airflow.url.rstrip("/")
        self._login = settings.airflow
        self._token: str | None = None
        self._tls = httpx.create_ssl_context()  # httpx makes one per request, 15 ms of CPU for each look at a run

    def wait_for_dags(self, names: Collection[str], timeout_s: float = 300) -> None:
        """Wait until Airflow has parsed these DAGs, asking for each every 0.5 s.

        Raises:
            OrchestratorError: some are missing after `timeout_s` seconds, or earlier where Airflow reports an import
                error in a file of their name (the message shows the last 20 lines of each; those in other people's
                files are shown at the end of the wait alone); or Airflow does not answer.
        """
        deadline = time.monotonic() + timeout_s
        while missing := [name for name in names if not self._knows(name)]:
            errors = self._get("importErrors", limit=100)["import_errors"]
            late = time.monotonic() > deadline
            errors = [e for e in errors if late or PurePath(e["filename"]).stem in missing]
            if errors or late:
                reported = "\n".join(f"{e['filename']}:\n{_indented(e['stack_trace'])}" for e in errors)
                raise OrchestratorError(
                    f"Airflow does not know the DAGs {', '.join(sorted(missing))}; "
                    f"it reports {reported or 'no import errors: see the log of its DAG processor'}"
                )
            time.sleep(0.5)

    def _knows(self, dag: str) -> bool:
        try:
            self._get(f"dags/{dag}")
        except _RefusedError as refused:
            if refused.status != 404:
                raise
            return False
        return True

    def unpause(self, dag: str) -> None:
        """Let Airflow schedule runs of the DAG."""
        self._call("PATCH", f"dags/{dag}", {"is_paused": False})

    def pause(self, dag: str) -> None:
        """Let no new run of the DAG start; a running one goes on."""
        self._call("PATCH", f"dags/{dag}", {"is_paused": True})

    def end_runs(self, dag: str) -> None:
        """Set the runs of the DAG that go on to success; Airflow ends their tasks at the next heartbeat."""
        for run_id, state in self.run_states(dag).items():
            if state in ("queued", "running"):
                self._call("PATCH", _path(dag, run_id), {"state": "success"})

    def trigger(self, dag: str, conf: Mapping[str, Any]) -> str:
        """Start a run as the trigger dialog does, without waiting for it.

        Args:
            dag: id of the DAG.
            conf: values of its form, by field.

        Returns:
            Id of the run.

        Raises:
            OrchestratorError: no such DAG, a value that its form refuses, or Airflow does not answer.
        """
        run = self._call("POST", f"dags/{dag}/dagRuns", {"logical_date": None, "conf": dict(conf)})
        return str(run["dag_run_id"])

    def wait_run(self, dag: str, run_id: str, timeout_s: float = 600) -> None:
        """Wait until a run has succeeded, asking every 0.5 s, and less often the longer it takes, up to every 2 s.

        Raises:
            OrchestratorError: the run failed, did not end within `timeout_s` seconds (the message shows the last 20 log
                lines of each failed task), or does not exist; or Airflow does not answer.
        """
        began = time.monotonic()
        deadline = began + timeout_s
        while (state := self._get(_path(dag, run_id))["state"]) != "success":
            if state == "failed":
                raise OrchestratorError(f"run {run_id} of DAG {dag} failed.\n{self._failure(dag, run_id)}")
            if time.monotonic() > deadline:
                raise OrchestratorError(
                    f"run {run_id} of DAG {dag} is {state} after {timeout_s:.0f} s.\n{self._failure(dag, run_id)}"
                )
            time.sleep(min(max((time.monotonic() - began) / 20, 0.5), 2))  # each answer takes Airflow 15 ms of CPU

    def wait_caused_run(self, dag: str, by: str, start_within_s: float = 600) -> str:
        """Wait for the run that the newest asset event of another DAG started, asking every 0.3 s; returns its id.

        Args:
            dag: id of the DAG, unpaused, that waits for assets.
            by: id of the DAG that reports them; a run of it has ended.
            start_within_s: wall seconds until the run has started at most; then it may take 600 s to succeed.

        Raises:
            OrchestratorError: no run came, it failed, or it did not end in time; or Airflow does not answer.
        """
        deadline = time.monotonic() + start_within_s
        while True:
            why = "Is it unpaused, and did the task before it succeed?"
            try:
                if started := self._caused_by_newest_event(dag, by):
                    break
            except _RefusedError as refused:
                if refused.status != 500:
                    raise
                why = str(refused)  # it may pass: Airflow cannot write an event as JSON while its run has no start
            if time.monotonic() > deadline:
                raise OrchestratorError(
                    f"no run of DAG {dag} was started by an asset of DAG {by} within {start_within_s:.0f} s. {why} "
                    f"See {self._url}/dags/{dag}."
                )
            time.sleep(0.3)
        self.wait_run(dag, started[0])
        return started[0]

    def asset_events(self, by: str, behind: int = 0) -> list[dict[str, Any]]:
        """Return at most 100 asset events of a DAG, newest first, behind so many: `name`, `timestamp` (ISO), `extra`.

        Raises:
            OrchestratorError: Airflow does not answer, or refuses.
        """
        asked = self._get("assets/events", source_dag_id=by, order_by="-timestamp", limit=100, offset=behind)
        return list(asked["asset_events"])

    def run_states(self, dag: str) -> dict[str, str]:
        """Return {id: state, e.g. "queued"} of the newest 100 runs of a DAG."""
        runs = self._get(f"dags/{dag}/dagRuns", order_by="-run_after", limit=100)["dag_runs"]
        return {str(one["dag_run_id"]): str(one["state"]) for one in runs}

    def _caused_by_newest_event(self, dag: str, by: str) -> list[str]:
        events = self._get("assets/events", source_dag_id=by, order_by="-timestamp", limit=1)["asset_events"]
        return [str(run["run_id"]) for event in events for run in event["created_dagruns"] if run["dag_id"] == dag]

    def _failure(self, dag: str, run_id: str) -> str:
        """What went wrong in a run: every failed task with its last log lines, or the state of each task."""
        tasks = self._get(f"{_path(dag, run_id)}/taskInstances")["task_instances"]
        parts = []
        for task in (task for task in tasks if task["state"] == "failed"):
            path = _path(dag, run_id, task["task_id"], "logs", str(max(task["try_number"], 1)))
            content = self._get(path, full_content="true", map_index=task["map_index"])["content"]
            lines = [line for entry in content for line in _log_text(entry).splitlines()]
            shown = "\n".join(line for line in lines if not line.startswith(("::group::", "::endgroup::")))
            parts.append(f"Last log lines of task {task['task_id']}:\n{_indented(shown)}")
        states = (f"{task['task_id']} {task['state'] or 'not started'}" for task in tasks)
        return "\n".join(parts) or f"Its tasks: {', '.join(states)}"

    def _get(self, path: str, **query: Any) -> Any:
        return self._call("GET", path, query=query)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Any = None) -> Any:
        fresh = self._token is None
        self._token = self._token or self._new_token()
        url = f"{self._url}/api/v2/{path}"
        try:
            return self._send(method, url, body, query, {"Authorization": f"Bearer {self._token}"})
        except _RefusedError as refused:
            if refused.status != 401 or fresh:
                raise
            self._token = None  # it has aged
            return self._call(method, path, body, query)

    def _new_token(self) -> str:
        login = self._login.model_dump(include={"username", "password"})
        alone = login["password"] is None  # the embedded one listens on the loopback and knows administrators only
        how = ("GET", None) if alone else ("POST", login)
        return str(self._send(how[0], f"{self._url}/auth/token", how[1])["access_token"])

    def _send(self, method: str, url: str, body: Any = None, query: Any = None, headers: Any = None) -> Any:
        try:
            answer = httpx.request(
                method, url, json=body, params=query or None, headers=headers, timeout=30, follow_redirects=True,
                verify=self._tls,
            )  # fmt: skip
        except httpx.HTTPError as error:
            raise OrchestratorError(
                f"Airflow at {self._url} does not answer ({error}). "
                "Start it (`make up`) or correct TIDECAST_AIRFLOW__URL."
            ) from None
        if answer.is_error or "html" in answer.headers.get("content-type", ""):  # the login page of a proxy
            raise _RefusedError(method, url, answer)
        return answer.json() if answer.content else None


class _RefusedError(OrchestratorError):
    def __init__(self, method: str, url: str, answer: httpx.Response) -> None:
        self.status = answer.status_code
        hint = " Set TIDECAST_AIRFLOW__USERNAME and TIDECAST_AIRFLOW__PASSWORD." if self.status in _NO_LOGIN else ""
        super().__init__(f"Airflow refused {method} {url}: {self.status} {answer.text[:500]}{hint}")


def _quoted(run_id: str) -> str:
    return quote(run_id, safe="")


def _path(dag: str, run_id: str, *task: str) -> str:
    """Of a run, or of what is named of one of its tasks."""
    return "/".join([f"dags/{dag}/dagRuns/{_quoted(run_id)}", *(["taskInstances", *task] if task else [])])


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines()[-_LOG_LINES:])


def _log_text(entry: Any) -> str:
    """One log event as text; an exception comes as structured detail."""
    if not isinstance(entry, dict):
        return str(entry)
    parts = [str(entry.get("event", ""))]
    for error in entry.get("error_detail") or []:
        frames = [f"  {f.get('filename')}:{f.get('lineno')} {f.get('name')}" for f in error.get("frames", [])]
        parts += [*frames[-5:], f"{error.get('exc_type')}: {error.get('exc_value')}"]
    return "\n".join(parts)
