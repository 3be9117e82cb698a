"""Whether silence has refuted a forecast: records were surely to come, and next to none came.

A forecaster that goes by days and weeks announces the next morning of a source that has stopped, too, and goes on to do
so step after step. What it says then is of another load than the job's.
"""

from __future__ import annotations

SURELY = 10.0
"""Records of a step, by its lowest level, from which on it is no chance that none came (Poisson: 5 in 100,000)."""
GONE = 0.1
"""Share of that level under which a load has gone and not only fallen: the step in which it stops still has a rest."""
UNSAID = 1.0
"""Records of a step, by its lowest level, under which its silence is what was forecast."""


def is_refuted(before: bool, least_rps: float, came_rps: float, step_s: float) -> bool:
    """Return whether forecasts are refuted after one more step.

    Once they are, they stay so for as long as nothing comes, through steps of which few records were forecast because
    none had come, until a step is silent as forecast (such as the night's) or records come again.

    Args:
        before: whether they were when the step began.
        least_rps: lowest level of the step's rate, as forecast before it, records/s.
        came_rps: its rate; NaN where unknown, which refutes nothing.
        step_s: wall seconds of it.
    """
    if not came_rps < GONE * least_rps:
        return False
    return least_rps * step_s >= (UNSAID if before else SURELY)
