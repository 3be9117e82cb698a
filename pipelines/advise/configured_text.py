"""A contract's configurations, as its job's twin tried them, in words."""

from __future__ import annotations

from models.contract.slow.configurations import DWELL
from models.twin.advice.serve import SEEDS
from models.twin.contract.configured import TriedConfigurations
from pipelines.html.numbers import number, share


def format_tried(job: str, tried: TriedConfigurations, trigger: str) -> str:
    """Say what each configuration cost, a line each, and which of them starts would have taken."""
    hours = tried.intervals * tried.interval_s / 3600
    width = max(map(len, tried.names))
    head = (
        f"{job}: {len(tried.names)} configurations by its twin, over {hours:.1f} hours of its load with the executors "
        f"that were there,\na start every {DWELL} intervals of {tried.interval_s:g} s, in {SEEDS} futures; trigger "
        f"{trigger} where none is stated"
    )
    lines = [
        f"  {name:<{width}}  cost J {number(cost, 3)}, {share(late, 2)} of the seconds late; in force {share(ran)} of "
        f"the time, in the end in {round(SEEDS * last)} futures"
        for name, cost, late, ran, last in zip(tried.names, tried.cost, tried.late, tried.ran, tried.last, strict=True)
    ]  # fmt: skip
    if tried.unmodelled:
        lines.append(f"  not in it: {', '.join(tried.unmodelled)}; of Spark's settings the twin knows nothing")
    return "\n".join([head, *lines])
