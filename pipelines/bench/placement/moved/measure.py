"""`tidecast bench placement --parts moves`: a move in each phase of which something is killed, on a broker of its own.

Each session is kept in the figure itself; a call with the same file goes on where one stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil

from configs.settings import Settings
from pipelines.bench.placement.moved.faults import FAULTS
from pipelines.bench.placement.moved.session import run_move
from pipelines.bench.placement.moved.summary import summarise_moves
from pipelines.figures.written import find_commit
from pipelines.placement.tried import TrialError
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.processes import ProcessError
from pipelines.stack.stack import Stack

LOOK_S = 5.0
"""For how long the cores are watched before a session, seconds."""


def measure_moves(
    settings: Settings, earlier: Mapping[str, Any], save: Callable[[dict[str, Any]], None] = lambda found: None
) -> dict[str, Any]:
    """Run a session for each fault of which none is kept; some six minutes each.

    Args:
        settings: without the address of a broker.
        earlier: figures of an earlier call, whose sessions count; empty: all are run.
        save: called with the figures after each session.

    Returns:
        As `summary.summarise_moves`, with the sessions as `kept`, each with its `commit`.

    Raises:
        SettingsError: the address of a service is set.
        StackError, PortError, JavaError: a service does not start. A session in which a query does not begin, or whose
            phase was missed, is said and left out.
        BrokerError: the broker does not answer.
        OSError: the figures cannot be written.
    """
    own = isolated_settings(settings, "bench")
    own = own.model_copy(update={"var": own.var_dir / "moved"})
    kept = {fault: session for fault in FAULTS if (session := earlier.get("kept", {}).get(fault))}
    left = [fault for fault in FAULTS if fault not in kept]
    if left:
        with Stack(own, {"broker"}) as stack:
            for number, fault in enumerate(left):
                began, busy = time.monotonic(), psutil.cpu_percent(LOOK_S) / 100
                kafka = stack.settings.kafka.model_copy(update={"prefix": f"{fault}."})
                try:
                    found = run_move(stack, stack.settings.model_copy(update={"kafka": kafka}), fault, seed=number)
                except (TrialError, ProcessError) as error:
                    print(f"{fault}: {error}", flush=True)  # it is left to another call
                    continue
                kept[fault] = {**found, "commit": find_commit(), "busy_before": busy}
                told = f"{found['wrong']} of {found['windows']:,} windows wrong, {found['keys']:,} keys moved"
                took = f"{found['gap_s']:.0f} s without a result, {time.monotonic() - began:.0f} s in all"
                print(f"{fault}: {told}, {took}", flush=True)
                save(_figures(kept))
    return _figures(kept)


def _figures(kept: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    commits = sorted({one["commit"] or "unknown" for one in kept.values()})
    return {**summarise_moves(kept, len(FAULTS) - len(kept)), "commits": commits, "kept": kept}
