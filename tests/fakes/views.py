"""What a policy sees, with every field at a calm value unless said otherwise."""

from dataclasses import fields, replace

import numpy as np

from models.policy.core.capacity import Capacity, speed_table
from models.policy.core.view import View

CALM = {
    "arrival_rps": 400.0, "lag_records": 400.0, "processed_rps": 400.0, "busy": 0.5, "busiest": np.nan,
    "in_batch": 0.6, "batch_s": 1.2, "executors": 4.0, "starting": 0.0, "leaving": 0.0,
    "target": 4.0, "since_change_s": 1e6, "since_raise_s": 1e6, "least": 1.0, "most": 20.0,
    "late_s": np.nan, "counted_s": np.nan,
}  # fmt: skip


def a_view(runs=1, now_s=0.0, since_s=15.0, tasks=20, **changed):
    """Executors of 200 records/s each: 0.004 s per record, batches of 2 s of which 0.4 s are overhead."""
    seen = {
        name: np.broadcast_to(np.asarray(changed.get(name, calm), float), (runs,)).copy() for name, calm in CALM.items()
    }
    if "executors" in changed and "target" not in changed:
        seen["target"] = seen["executors"].copy()
    worth = speed_table(20, 1, tasks)[None]
    capacity = Capacity(worth, np.full(runs, 0.4), np.full(runs, 0.004), 2.0)
    return View(now_s=now_s, since_s=since_s, capacity=capacity, ahead=changed.get("ahead"), **seen)


def alone(view, run):
    """The same look at one of the runs."""
    one = slice(run, run + 1)
    columns = {
        f.name: getattr(view, f.name)[one] for f in fields(view) if isinstance(getattr(view, f.name), np.ndarray)
    }
    capacity = replace(
        view.capacity, overhead_s=view.capacity.overhead_s[one], per_record_s=view.capacity.per_record_s[one]
    )
    ahead = view.ahead and replace(view.ahead, rps=view.ahead.rps[one])
    return replace(view, capacity=capacity, ahead=ahead, **columns)


def driven(policy, views):
    """The targets that a policy asks for, (looks, runs); each look sees the target of the one before."""
    from models.policy.core.policy import decide

    memory, asked = policy.fresh(views[0].runs), []
    target, changed = views[0].target, None
    for view in views:
        since = view.since_change_s if changed is None else np.minimum(view.since_change_s, view.now_s - changed)
        memory, choice = decide(policy, memory, replace(view, target=target, since_change_s=since))
        changed = np.where(choice.target != target, view.now_s, -np.inf if changed is None else changed)
        target = choice.target
        asked.append(target)
    return np.array(asked)
