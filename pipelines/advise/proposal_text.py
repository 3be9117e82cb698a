"""A proposed contract as its file, in which every number says what it was observed from."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import yaml

from models.twin.advice.serve import POLICY, SEEDS
from models.twin.contract.proposed import QUIET, ProposedContract, holds
from models.twin.contract.tried import ContractOutcome
from pipelines.advise.measured import BATCHES
from pipelines.advise.observed import ObservedJob
from pipelines.html.numbers import number, number_of, share

COLUMN, WIDTH = 29, 116
"""Where comments behind a number begin, one behind the longest usual key; most characters of the lines above."""
Line = tuple[str, Any, str]
"""Key, value (None: a section's head), comment."""


def format_proposal(observed: ObservedJob, proposal: ProposedContract) -> str:
    """Format a proposed contract as the text of its file, with a comment behind every number."""
    stated, draft, latency_s = proposal.stated, observed.draft, observed.latency_s
    kept_s = observed.seen.contract.latency_target_s
    hours, days = proposal.outcome.executor_s.mean() / 3600, format_days(observed.days)
    left_out = f"; {number(observed.unmeasured_s)} s in which nothing was measured are left out"
    head = [
        f"By `tidecast contract init {stated['job']}`, from {days} of load{left_out if observed.unmeasured_s else ''}.",
        f"In its twin, over this load in {SEEDS} futures under {POLICY}, {share(proposal.outcome.late_share, 2)} of "
        f"the seconds of production are late; it takes {number(hours, 1)} executor-hours, "
        f"{number(observed.seen.executor_hours, 1)} were there.",
        f"With the executors that were there its twin has {share(observed.repeated, 2)} of the seconds of production "
        f"late over {kept_s:g} s, where {share(float(np.mean(latency_s > kept_s)), 2)} were; the nearer, the more "
        "it is to be trusted.",
    ]
    if draft["latency_target_s"] != stated["latency_target_s"]:
        head.append(_relaxed(draft["latency_target_s"], stated["latency_target_s"]))
    elif draft["executors"]["max"] != stated["executors"]["max"]:
        head.append(_raised(draft, stated))
    if observed.days < 1:
        head.append(
            "Less than a day was observed: what other hours bring is not in it, and a third of what may be late is "
            "spared, as far as an account swings over hours."
        )
    over = share(float(np.mean(latency_s > stated["latency_target_s"])), 2)
    rows: list[Line] = [
        ("job", stated["job"], ""),
        ("latency_target_s", stated["latency_target_s"], _target(observed)),
        ("error_budget", stated["error_budget"], f"as asked for; {over} of the observed seconds were over this target"),
        ("window_days", stated["window_days"], "the usual; not observed"),
    ]  # fmt: skip
    if "price_per_executor_hour" in stated:
        rows.append(("price_per_executor_hour", stated["price_per_executor_hour"], "as given"))
    rows += [*_executors(observed, proposal), *_planning(observed, stated["planning"])]
    lines = [f"# {line}" for text in head for line in textwrap.wrap(text, WIDTH)]
    lines += [_line(*row) for row in rows]
    if observed.lead is None:
        lines.append("  # lead_s: no raise was seen; 10 s are taken until raises have told")
    if not observed.seen.scaling_known:
        lines.append(
            "  # scaling: its batches do not tell what a further executor adds; 1 is taken, as if each did as much"
        )
    return "\n".join(lines) + "\n"


def format_outcome(outcome: ContractOutcome) -> str:
    """Say in a line what a contract that was tried came to."""
    bounds, budget = outcome.contract.executors, share(outcome.contract.error_budget, 2)
    verdict = "holds" if holds(outcome) else "kept with too little to spare" if outcome.kept else "not kept"
    return (
        f"{outcome.contract.latency_target_s:g} s with {bounds.min} to {bounds.max} executors: {verdict}, "
        f"{share(outcome.late_share, 2)} late of at most {budget}"
    )


def format_days(days: float) -> str:
    """Say a length of time in days, or in hours if it is under one."""
    return f"{number(days, 1)} days" if days >= 1 else f"{number(24 * days, 1)} hours"


def _target(observed: ObservedJob) -> str:
    latency_s, budget = observed.latency_s, observed.draft["error_budget"]
    most_s = float(np.quantile(latency_s, 1 - budget))
    return (
        f"p{100 * (1 - budget):g} of {number(len(latency_s))} seconds of production, {number(observed.batches)} "
        f"batches in {format_days(observed.days)}: {most_s:.3g} s; median {np.median(latency_s):.3g} s"
    )


def _executors(observed: ObservedJob, proposal: ProposedContract) -> list[Line]:
    bounds, asked = proposal.stated["executors"], proposal.outcome.asked
    there = f"{observed.most}" if observed.fewest == observed.most else f"{observed.fewest} to {observed.most}"
    cores = "cores ÷ executors, as its agent told" if observed.cores_known else "Spark's usual; its agent told none"
    quiet = f"{observed.quiet_rps:.3g} records/s, which {share(1 - QUIET)} of the minutes had or more"
    return [
        ("executors", None, ""),
        ("  min", bounds["min"], f"sustains {quiet}; {there} were there"),
        ("  max", bounds["max"], f"{there} were there; its twin asked for {asked} at most"),
        ("  cores", bounds["cores"], cores),
    ]


def _planning(observed: ObservedJob, planning: dict[str, Any]) -> list[Line]:
    of = f"fitted to the newest {number(min(observed.batches, BATCHES))} batches"
    lead = observed.lead or {}
    raises = number_of(lead.get("starts", 0), "raise")
    told = {
        "lead_s": f"median of {raises}; 90 % of them within {lead.get('planned_s', 0):g} s",
        "start_growth": "exponent in the executors that start at once, of the same raises",
        "overhead_s": f"a batch's fixed time, {of}",
        "per_record_s": "service time of a record on one core, of the same fit",
        "scaling": "exponent of capacity in cores, of the same fit",
    }
    return [("planning", None, ""), *((f"  {name}", value, told[name]) for name, value in planning.items())]


def _relaxed(kept_s: float, target_s: float) -> str:
    return (
        f"With the executors that were there {kept_s:g} s were kept. Under a policy that also gives executors up, "
        f"{target_s:g} s is the nearest that holds in its twin."
    )


def _raised(draft: dict[str, Any], stated: Any) -> str:
    there = number_of(draft["executors"]["max"], "executor")
    return (
        f"{there} kept {draft['latency_target_s']:g} s. Under a policy that also gives "
        f"executors up, a ceiling of {stated['executors']['max']} is the nearest that holds in its twin."
    )


def _line(key: str, value: Any, comment: str) -> str:
    if isinstance(value, str):  # a name that looks like a number is none, in quotes
        said = f"{key}: {value}" if yaml.safe_load(value) == value else f'{key}: "{value}"'
    else:
        said = f"{key}:" if value is None else f"{key}: {value:.10g}"
    return f"{said:<{COLUMN - 1}} # {comment}" if comment else said
