"""In which order jobs are trained, as a run of a DAG may not have the time for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence


def longest_waiting_first(
    jobs: Sequence[str], drifted: Collection[str], last_trained: Callable[[], Mapping[str, float]]
) -> list[str]:
    """Order jobs: those whose load has drifted, then those never trained, then the longest ago; ties as they come.

    Args:
        jobs: names.
        drifted: those whose load has.
        last_trained: returns the Unix seconds of the newest training by job; not called where there is nothing to
            order, as it asks MLflow.
    """
    if len(jobs) < 2:
        return list(jobs)
    known = last_trained()
    return sorted(jobs, key=lambda job: (job not in drifted, known.get(job, 0.0)))
