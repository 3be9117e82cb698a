"""`tidecast bench raise`: what raises of a real job take, beside stock Spark's; sessions of both arms in turn."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from configs.contract import load_contract
from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.bench.raises.recorded import read_raises
from pipelines.bench.raises.session import JOB, run_session
from pipelines.bench.raises.summary import ARMS, STOCK, summarise_sessions
from pipelines.figures.written import find_commit
from pipelines.kafka.topics import create_topics
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

PER_SESSION = 25
"""Raises of one run of the job; every run has a driver of its own."""
LOOK_S = 5.0  # how long the cores are watched before a session, wall seconds
_FILE = "raises.json"


def measure_raises(settings: Settings, raises: int, resume: bool) -> dict[str, Any]:
    """Raise a real job's executors one by one, as the product starts them and as stock Spark does; blocks, prints.

    Both arms have the same cluster, job, load, options and decisions; they differ in class archive, fork server and
    worker daemon only. Starts a broker and a Spark cluster with their state in `var/bench/raises` and ends them. Every
    finished session of up to 25 raises stays there, with its logs, until a call without `resume`.

    Args:
        settings: without an address of a broker, Spark master, registry or Airflow.
        raises: of each arm, at least 1.
        resume: keep what the sessions of earlier calls measured, and run only what is left.

    Returns:
        As `summarise_sessions`.

    Raises:
        SettingsError: such an address is configured, or the job's contract is wrong.
        RaiseError: the job refused a decision.
        StackError, ProcessError, PortError, JavaError, JarsError, OSError: broker or Spark does not start, a stack
            runs on the folder already, or the job did not go on.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        RunError, EventLogError, ValueError: a file of a session is missing or broken.
    """
    if settings.spark.master:
        raise SettingsError(
            f"TIDECAST_SPARK__MASTER={settings.spark.master}: both arms are measured on a cluster of the bench's own. "
            "Unset it for this command."
        )
    prior_s = load_contract(JOB, settings.contracts_dir).planning.lead_s
    settings = isolated_settings(settings, "bench")
    settings = settings.model_copy(update={"var": settings.var_dir / "raises"})
    folder = settings.var_dir / "sessions"
    done = _read_sessions(folder) if resume else []
    if next_session(done, raises):
        with Stack(settings, {"broker", "spark"}) as stack:
            if not resume:  # only now nobody else measures there
                shutil.rmtree(folder, ignore_errors=True)
            create_topics(stack.settings.kafka)
            spent: list[tuple[int, float]] = []
            while (turn := next_session(done, raises)) is not None:
                began = time.monotonic()
                done.append(_run(stack, folder / f"{len(done) + 1:03}-{turn[0]}", *turn, seed=len(done) // 2))
                spent.append((turn[1], time.monotonic() - began))
                print(_line(done, prior_s, raises, spent), flush=True)
    return summarise_sessions(done, prior_s)


def next_session(done: Sequence[dict[str, Any]], raises: int) -> tuple[str, int] | None:
    """Return arm and number of raises of the session that is next; None once both arms have `raises`.

    The arms take turns, and which of them is first does so too: neither always has the warmer computer.
    """
    measured = {arm: sum(len(one["raises"]) for one in done if one["arm"] == arm) for arm in ARMS}
    left = {arm: raises - count for arm, count in measured.items() if count < raises}
    if not left:
        return None
    sessions = {arm: sum(one["arm"] == arm for one in done) for arm in ARMS}
    order = ARMS if sessions[ARMS[0]] % 2 == 0 else ARMS[::-1]
    arm = min((arm for arm in order if arm in left), key=sessions.__getitem__)
    return arm, min(PER_SESSION, left[arm])


def _run(stack: Stack, run_dir: Path, arm: str, raises: int, seed: int) -> dict[str, Any]:
    shutil.rmtree(run_dir, ignore_errors=True)  # of a session that was broken off
    busy = psutil.cpu_percent(LOOK_S) / 100
    run_session(stack, run_dir, arm == STOCK, raises, seed)
    found = read_raises(run_dir, stack.settings.var_dir / "spark-work", JOB)
    session = {"arm": arm, "commit": find_commit(), "busy_before": busy, "raises": found}
    (run_dir / _FILE).write_text(json.dumps(session))
    return session


def _read_sessions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"*/{_FILE}"))]


def _line(done: list[dict[str, Any]], prior_s: float, raises: int, spent: list[tuple[int, float]]) -> str:
    """What the newest session measured, and what is left."""
    newest = done[-1]
    seen = summarise_sessions([newest], prior_s)
    p50 = {name: seen[name][newest["arm"]]["p50"] for name in ("registered", "useful")}
    left = sum(max(0, raises - sum(len(one["raises"]) for one in done if one["arm"] == arm)) for arm in ARMS)
    minutes = left * sum(seconds for _, seconds in spent) / sum(count for count, _ in spent) / 60
    medians = ", ".join(f"{name} after {'-' if s is None else format(s, '.1f')} s" for name, s in p50.items())
    what = f"session {len(done)}, {newest['arm']}, {len(newest['raises'])} raises: {medians} (medians)"
    return f"{what}; {left} left, about {minutes:.0f} min"
