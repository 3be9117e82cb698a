"""What a placement network proposes for a running job: in shadow beside its plan, or in the plan's place."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from configs.settings import Settings, load
from models.placement.instances.job import Counts
from models.placement.learned.online import (
    JUDGED,
    LEAST_MEASURED,
    Scheduled,
    StepOutcome,
    choose_proposal,
    expected_step,
    judge_change,
    trigger,
)
from models.placement.learned.queries import QueryEvaluator, QuerySpace, weights_of
from models.placement.performance.model import PerformanceModel
from models.placement.plan.applications import applications_of
from models.placement.plan.choose import PlacementPlan, why_cut
from models.placement.plan.followed import followed_quantile_s
from models.placement.plan.measured import Measure
from models.placement.rates import rates_of
from pipelines.kafka.connection import BrokerError
from pipelines.placement import replan
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import PlannedLoad, observe_minutes, planned_when, step_of, steps_since_moved
from pipelines.placement.page.plan_page import RunningJob, compare, write_plan_page
from pipelines.placement.running import job_folder
from pipelines.placement.scaled.contracts import contract_file
from pipelines.registry.placements import PerformanceRegistry, PlacementRegistry
from pipelines.stack.state import with_stack_addresses
from pipelines.train.placement.performance import learn_performance
from pipelines.train.placement.run import LSTM, TWIN, champion_for, has_network, spaces_of, train_network, trained_for
from pipelines.train.placement.trial import put_in_force, read_trial, trial_as_json, trial_from_json, write_trial

NO, SHADOW = "no", "shadow"
"""Of the form's `network`; else `apply`."""
MINUTES, TUNED = 30, 180
"""Minutes, or steps that are longer, by which a job's usual latency is told, and to which its performance model is
tuned."""


class Look(NamedTuple):
    """What a network says of a running job.

    Attributes:
        counts: that it would have; None: it has no better ones.
        why: in words.
        asked: whether something asks for a change; else the proposal is only told.
        state: of the trial, once it is as proposed.
        waits: whether its queries were moved so short a time ago that nothing is asked for, the plan neither.
    """

    counts: Counts | None
    why: str
    asked: bool
    state: Scheduled
    waits: bool = False


def learn(form: dict[str, Any]) -> dict[str, Any] | None:
    """Train and register a network for a running job's queries, where none serves that fits them.

    Args:
        form: `topology`; `network`: no, shadow or apply; maybe `env`, in which it is trained: twin, or lstm, a model of
            the job's performance, which is tuned to the last hours first. Where that is not trusted, it is the twin.

    Returns:
        The verdict, as of `train_network`; None where none is wanted, the job does not run, one serves, or one lost
        within a week and none serves.

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        BrokerError: the broker does not answer.
        SettingsError: the job's folder is wrong.
        NoRoomError: the clusters have no room for its queries.
    """
    settings = with_stack_addresses(load())
    folder = job_folder(settings, form["topology"])
    if form.get("network", SHADOW) == NO or not folder.began() or _is_scaled(settings, folder):
        return None
    registry, placement = PlacementRegistry(settings), folder.wanted()
    topology = trained_for(folder.topology(), replan.loads_of(settings, folder, None)[-1].topology)
    performance, env = None, None
    if form.get("env", TWIN) == LSTM:
        performance = _performance(settings, folder, spaces_of(topology, placement)[0])
        env = TWIN if performance is None else LSTM  # none learns of a model that is not trusted
    if has_network(registry, topology, placement, env):
        return None
    return train_network(registry, topology, placement, performance)


def _performance(settings: Settings, folder: JobFolder, space: QuerySpace) -> PerformanceModel | None:
    """The performance model of a running job, tuned to its last hours; None where it is not trusted."""
    minutes = observe_minutes(settings, folder, TUNED)
    learned = learn_performance(PerformanceRegistry(settings), space, space.counts(folder.wanted()), minutes)
    return learned.model if learned.trusted else None


def propose(form: dict[str, Any], planned: dict[str, Any]) -> dict[str, Any]:
    """Add what the network that serves proposes to a plan; in mode `apply` that takes the plan's place.

    Args:
        form: as for `learn`; and maybe `load`, as for `replan.plan`.
        planned: as `replan.plan` returned it.

    Returns:
        The same, with `told`, for whoever approves; in mode `apply` with `sentence` and `placement` of the network that
        serves, and with `trial` for `apply`, if something asks for a change and it has a better one: the plan's page is
        then of it. Just after a move, while too little is measured, that mode asks for nothing.

    Raises:
        SettingsError, BrokerError: the job's folder is wrong; the broker does not answer.
        OSError: the page cannot be written.
    """
    mode, plain = form.get("network", SHADOW), {**planned, "told": f"{planned['sentence']}."}
    if mode == NO or planned["was"] is None:
        return plain
    if not planned["known"]:
        mode = SHADOW  # nobody is asked to move queries of which nothing was measured
    settings = with_stack_addresses(load())
    folder = job_folder(settings, form["topology"])
    if _is_scaled(settings, folder):
        return {**plain, "told": f"{plain['told']} No network is asked: the autoscaler gives its queries executors."}
    placement = folder.wanted()
    try:
        look, space, load_now = _look(settings, folder, form.get("load"), mode != SHADOW, planned.get("backlog", True))
    except Exception as error:  # of MLflow, its store and the broker: a plan needs no network
        return {**plain, "told": f"{plain['told']} No network proposes anything: {error}"}
    made = placement if look.counts is None else space.placement(look.counts) or placement
    sentence, differs = compare(space.measure.topology, placement, made, load_now.told)
    said = f"The network, as {look.why}: {sentence}"
    asks = look.asked and differs
    if mode == SHADOW or not (asks or look.waits):
        return {**plain, "told": f"{plain['told']} {said}."}
    measured = not form.get("load")
    notes = [said, planned_when(load_now.topology, measured), f"The plan: {planned['sentence']}"]
    if asks:  # whoever is asked sees what would be applied
        cuts, path_s = why_cut(space.measure, made, True), followed_quantile_s(space.measure, made)
        proposal, was = PlacementPlan(made, cuts, (), path_s), RunningJob(placement, load_now.observed, load_now.path_s)
        write_plan_page(load_now.topology, proposal, load_now.factor, Path(planned["page"]), measured, notes, was)
    return {
        **planned, "told": f"{'. '.join(notes)}.", "sentence": sentence, "ask": asks,
        "trial": trial_as_json(look.state), "placement": replan.as_json(made),
    }  # fmt: skip


def apply(form: dict[str, Any], proposed: dict[str, Any]) -> str:
    """Want a running job's queries where they were proposed to be, on trial. Returns what was wanted.

    They are judged by what they came to just before, which may be hours after that was proposed.

    Raises:
        ReplanError: the queries are wanted elsewhere since.
        SettingsError: the job's folder is wrong.
    """
    if "trial" not in proposed:
        return replan.apply(form, proposed)
    settings = with_stack_addresses(load())
    folder, state = job_folder(settings, form["topology"]), trial_from_json(proposed["trial"])
    before, none = (None, "") if state.before is None else _measured_now(settings, folder, state.before[0])
    said = replan.apply(form, proposed)
    try:
        changed_s = max(time.time(), folder.wanted_since_s())  # a mounted folder's clock may be ahead of this one's
        write_trial(folder, replace(put_in_force(state, changed_s), before=before))
    except OSError as error:  # the queries are wanted there already
        none = f"{error}"
    return f"{said}. It is on no trial: {none}" if none else said


def _measured_now(
    settings: Settings, folder: JobFolder, counts: Counts
) -> tuple[tuple[Counts, StepOutcome] | None, str]:  # fmt: skip
    """A placement with what it comes to now, or why that is not known: nothing is judged by another hour's load."""
    try:
        minutes = observe_minutes(settings, folder, JUDGED)
    except BrokerError as error:
        return None, f"{error}"
    if not minutes:
        return None, f"nothing was measured in the last {_minutes(folder, JUDGED)} minutes"
    return (counts, Scheduled(tuple(minute.step for minute in minutes)).recent()), ""


def _minutes(folder: JobFolder, steps: int) -> int:
    return math.ceil(steps * step_of(folder.topology()) / 60)


def _is_scaled(settings: Settings, folder: JobFolder) -> bool:
    """Whether a query of the job has a contract, by which the autoscaler gives it executors."""
    names = [block.name for block in applications_of(folder.topology(), folder.wanted())]
    return any(contract_file(settings, name).is_file() for name in names)


def _look(
    settings: Settings, folder: JobFolder, load_factor: float | None, judges: bool, backlog: bool
) -> tuple[Look, QuerySpace, PlannedLoad]:  # fmt: skip
    """What is to be said of a job, its placements at the load that is planned for (None: as measured), and that.

    `judges`: whether a change that was on trial is judged: until it has stood, or the way back is taken.
    `backlog`: whether what waits counts, as for the plan.
    """
    load_now = replan.loads_of(settings, folder, load_factor)[0 if backlog else -1]
    space = _space(load_now, folder)
    now = _space(replan.loads_of(settings, folder, None)[0], folder) if load_factor else space
    counts = space.counts(folder.wanted())
    steps = [minute.step for minute in observe_minutes(settings, folder, MINUTES)]
    model = champion_for(PlacementRegistry(settings), space)
    state, now_s = read_trial(folder), time.time()
    if space.placement(counts) is None:
        return Look(None, "the clusters have no room for what runs", True, state), space, load_now
    evaluator, weights = QueryEvaluator(space), weights_of(space)
    began = evaluator.outcome(counts)
    expected = expected_step(steps, QueryEvaluator(now).outcome(counts), began)
    for step in steps:
        state = state.after_step(step, expected)
    if judges:
        settled, back = judge_change(state, now_s, counts, weights, space.executor_cores)
        # Where the way back is asked for, `apply` ends the trial: this may not reach whom it is to ask.
        if state.before is not settled.before and (back is None or space.placement(back) is None):
            write_trial(folder, settled)
        if back is not None:
            why = "after the last change, latency and load together are worse than before it"
            return Look(back, why, True, settled), space, load_now
        state = settled
    # Later it is not for the move that few were measured: maybe a query has a batch in five minutes.
    if judges and len(steps) < LEAST_MEASURED and steps_since_moved(folder, now_s) < 2 * LEAST_MEASURED:
        few = f"fewer than {_minutes(folder, LEAST_MEASURED)} minutes were measured since its queries were moved"
        return Look(None, few, False, state, load_factor is None), space, load_now  # a plan for a stated load stands
    reason = trigger(state, expected, 1000 * space.measure.topology.target_s)
    proposals = model.proposer(space, evaluator, weights).propose(counts, began, seed=0)
    # Where nothing asks for a change it is only told, and may be of fewer executors.
    fewer = reason.fewer or not reason.why
    score = weights.reward(began, began)
    found = choose_proposal(state, now_s, counts, score, proposals, fewer, space.executor_cores)
    why = f"it is {reason.why}" if reason.why else "nothing asks for a change"
    unjudged = replace(state, changed_s=now_s, before=None)  # a bar of an earlier change is not begun anew
    on_trial = state.after_change(now_s, counts) if state.measured else unjudged
    return Look(None if found is None else found.counts, why, bool(reason.why), on_trial), space, load_now


def _space(load_now: PlannedLoad, folder: JobFolder) -> QuerySpace:
    blocks = tuple(one.operators for one in folder.wanted().blocks)
    return QuerySpace(Measure(load_now.topology, rates_of(load_now.topology, load_now.factor)), blocks)
