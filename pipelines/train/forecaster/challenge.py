"""One training run: a first champion where there is none, a challenger, and their scores on the same steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from configs.sections import Training
from models.forecast.baselines.naive import Naive
from models.forecast.core.bootstrap import few_steps_bound
from models.forecast.core.forecaster import Forecaster, Task
from models.forecast.core.series import GRAIN, Series, SeriesError
from models.forecast.selection.backtest import Backtest, roll
from models.forecast.selection.catalogue import default_kind
from models.forecast.selection.champion import FEWEST, ChampionChoice, choose_champion
from models.kinds import describe
from models.policy.received.rehearsal import Rehearsal
from pipelines.figures.written import find_commit
from pipelines.lake.load import LakeSeries, format_minute
from pipelines.registry import CHALLENGER, Registry, TrackedRun
from pipelines.train.forecaster import plots
from pipelines.train.forecaster.candidates import Candidates
from pipelines.train.forecaster.card import model_card
from pipelines.train.forecaster.rehearsal import LiveJob, describe_rehearsal, rehearse
from pipelines.train.forecaster.served import let_one_serve, score_served_versions
from pipelines.train.promotion import load_champion
from pipelines.train.transfer import sources

LEAST_HELD = 2 * FEWEST
"""Steps that are held out, at least, of a history of which `training.holdout_steps` would be over a fifth."""
LEARNED_TO = "data.learned_to"
"""Tag of a version that was trained: the end of the steps that it was fitted to and chosen on, ISO 8601."""


class ServingChampion(NamedTuple):
    """The version that serves, and what is to be said of the comparison with it.

    Attributes:
        version: its number.
        forecaster: None where it cannot be compared.
        remark: why it cannot, or on what it is; "" where there is nothing to say.
        left_out: held-out steps, the oldest, that the comparison with it leaves out.
    """

    version: str
    forecaster: Forecaster | None
    remark: str
    left_out: int = 0


def train_challenger(
    registry: Registry, job: str, training: Training, source: LakeSeries, because: Sequence[str] = (),
    live: LiveJob | None = None,
) -> str:  # fmt: skip
    """Fit the candidates to a load, register the best with the alias `challenger`; returns the MLflow run's id.

    The best is chosen on, and fitted to, all but the newest `training.holdout_steps` steps, of a short history a fifth
    but at least 48 (`LEAST_HELD`); on these it is compared with the champion (the version that serves). That moves
    only where the job has none that can serve (`let_one_serve`). The run gets parameters, metrics, plots, `card.md` and
    scores (`score_served_versions`); its tag `outcome` names the challenger, or why there is none: under
    `training.minimum_steps` known steps, no record or under 24 (`FEWEST`) held out, or a champion that serves and that
    cannot be read here. Blocks for minutes.

    Args:
        registry: of forecasters.
        job: whose load.
        training: settings.
        source: the load, records/s per step, and those of other jobs.
        because: in words, what has drifted; kept as the tag `because`.
        live: how the job runs; None: its policies learn nothing of the past (`Rehearsal`).

    Raises:
        SettingsError: `training.models` names an unknown model.
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        SeriesError, TwinError: a held-out load is negative or infinite, or `training` has steps or levels out of range.
        MessageError: no job can have the name.
    """
    task = Task(training.step_s, training.horizon, training.levels)
    with registry.training(job, f"{job} {format_minute(source.series.end)}") as run:
        run.parameters(training.model_dump())
        run.tags({**source.lineage(), "kind": registry.what, **({"because": "; ".join(because)} if because else {})})
        let_one_serve(registry, run, job, task, source)
        score_served_versions(registry, run, job, source)
        run.tags({"outcome": _challenge(registry, run, job, training, source, live)})
        return run.id


def _challenge(
    registry: Registry, run: TrackedRun, job: str, training: Training, source: LakeSeries, live: LiveJob | None
) -> str:
    """Choose by rolling origin on all but the newest steps, score all on these, register; says what came of it."""
    older, held = source.series.split(min(training.holdout_steps, max(len(source.series) // 5, LEAST_HELD)))
    if lacks := _what_lacks(training, source, held):
        return f"no challenger: {lacks}"
    serving, loaded, remark = load_champion(registry, job)
    assert serving is not None, "train_challenger has just seen to it"
    if loaded is None:  # its forecasts come (`let_one_serve`), and nothing can be held against it
        return f"no challenger: version {serving} serves on, as its forecasts come. {remark}"
    task = Task(training.step_s, training.horizon, training.levels)
    candidates = Candidates(run, training, source.others, sources.why_no_transfer(source.series, source.others))
    fits = candidates.fit_functions(task, older)
    try:
        chosen = choose_champion(task, older, fits, default=default_kind(training.models))
    except SeriesError as error:
        return f"no challenger: {error}"
    champion = _serving_champion(registry, job, serving, loaded, task, held)
    backtests = _backtests(task, chosen.forecaster, champion.forecaster, older, held)
    _log_comparison(run, backtests, champion.left_out, chosen, candidates)
    origin = sources.transfer_tags(chosen, candidates.source, candidates.transfer_note)
    run.tags(origin)
    learned = _rehearse_both(registry, run, job, chosen.forecaster, champion, source.series, live)
    rehearsed = describe_rehearsal(learned, chosen.forecaster, live)
    note = _describe_comparison(chosen, champion, len(held), origin, rehearsed)
    figures = {name: backtest.scores() for name, backtest in backtests.items()}
    card = model_card(job, chosen.forecaster, source, figures, note, run.id, find_commit())
    run.text(card, "card.md")
    tags = {**source.lineage(), **origin, LEARNED_TO: datetime.fromtimestamp(older.end, UTC).isoformat()}
    version = registry.register(run, job, chosen.forecaster, card, tags, alias=CHALLENGER)
    registry.write_rehearsal(run, job, version, learned)
    run.tags({"challenger": version, "champion": champion.version})
    return f"challenger version {version}, {chosen.name}, learned from {len(older)} steps. {champion.remark}".strip()


def _what_lacks(training: Training, source: LakeSeries, held: Series) -> str:
    """In words, what is missing to choose and to compare; "" for nothing."""
    if source.known < training.minimum_steps:
        return f"{source.known} steps in the lake, training.minimum_steps={training.minimum_steps}"
    known = held.values[np.isfinite(held.values)]
    if len(known) < FEWEST:
        counted = f"{len(known)} of the newest {len(held)} steps (training.holdout_steps) are known"
        return f"{counted}, at least {FEWEST} are needed to compare on"
    return "" if known.any() else f"no record came in the newest {len(held)} steps, on which all are compared"


def _serving_champion(
    registry: Registry, job: str, version: str, champion: Forecaster, task: Task, held: Series
) -> ServingChampion:
    if (champion.step_s, champion.horizon, champion.levels) != (task.step_s, task.horizon, task.levels):
        made_for = f"{champion.horizon} steps of {champion.step_s:g} s at {champion.levels}"
        return ServingChampion(version, None, f"The champion forecasts {made_for}: not comparable.")
    return _compared(version, champion, _steps_learned(registry.tags(job, version), held), held)


def _steps_learned(tags: Mapping[str, str], held: Series) -> int:
    """How many held-out steps a version was fitted to or chosen on, as where fewer were held out when it was made."""
    if LEARNED_TO not in tags:
        return 0
    until = datetime.fromisoformat(tags[LEARNED_TO]).timestamp()
    return min(max(math.ceil((until - held.start) / held.step_s - GRAIN), 0), len(held))


def _compared(version: str, champion: Forecaster, learned: int, held: Series) -> ServingChampion:
    """Leave the steps out that the champion was made of; where too few are left, say what it has over a challenger."""
    if not learned:
        return ServingChampion(version, champion, "")
    made_of = f"The champion was made of {learned} of the {len(held)} held-out steps"
    if (left := int(np.isfinite(held.values[learned:]).sum())) < FEWEST:
        easy = f"{left} others are known, under {FEWEST}: it is compared on all, which favours it"
        return ServingChampion(version, champion, f"{made_of}, and {easy}.")
    return ServingChampion(version, champion, f"{made_of}: the gate compares with it on the others.", learned)


def _backtests(
    task: Task, challenger: Forecaster, champion: Forecaster | None, older: Series, held: Series
) -> dict[str, Backtest]:
    """By name, what challenger, champion and the naive forecasts say of the steps held out."""
    rivals = {"challenger": challenger, **({} if champion is None else {"champion": champion})}
    rivals |= {"seasonal_naive": Naive(task), "last_value": Naive(task, seasonal=False)}
    return {name: roll(rival, older, held) for name, rival in rivals.items()}


def _rehearse_both(
    registry: Registry, run: TrackedRun, job: str, challenger: Forecaster, champion: ServingChampion, series: Series,
    live: LiveJob | None,
) -> Rehearsal:  # fmt: skip
    """What policies learn of the past with the challenger; it is written of a champion, too, which may serve on."""
    learned = rehearse(challenger, series, live)
    if champion.forecaster is not None:
        alike = describe(champion.forecaster) == describe(challenger)
        fresh = learned if alike else rehearse(champion.forecaster, series, live)
        registry.write_rehearsal(run, job, champion.version, fresh)
    return learned


def loss_ratio_bounds(backtests: dict[str, Backtest], left_out: int = 0) -> dict[str, float]:
    """Compute an upper confidence bound (bootstrap) of the challenger's mean loss as a share of each rival's.

    Args:
        backtests: on the same steps, by name; `challenger`, and `champion` or `seasonal_naive` or both.
        left_out: steps, the oldest, that do not count beside the champion.

    Returns:
        `gate.champion` and `gate.seasonal_naive`, of those there are: 0.95 says that the loss is, with 97.5 %
        confidence (more for two rivals), at most 95 % of the rival's.

    Raises:
        KeyError: there is no `challenger`.
        ValueError: a rival was tried on another number of steps.
        SeriesError: fewer than four of the steps are known.
    """
    mine = backtests["challenger"].losses_by_step()
    counted = {name: left_out if name == "champion" else 0 for name in ("champion", "seasonal_naive")}
    theirs = {n: backtests[n].losses_by_step()[first:] for n, first in counted.items() if n in backtests}
    many = len({losses.tobytes() for losses in theirs.values()})  # a first champion is the naive forecast itself
    return {f"gate.{n}": few_steps_bound(mine[counted[n] :], losses, many) for n, losses in theirs.items()}


def _describe_choice(chosen: ChampionChoice) -> str:
    """The choice in words: every candidate's loss, and why others could not be tried."""
    trials = ", ".join(f"{name} {trial.loss:.4g}" for name, trial in chosen.trials.items())
    skipped = "".join(f" Not tried: {name} ({reason})." for name, reason in chosen.skipped.items())
    if not trials:
        return f"Too few steps, or none with a record, to compare on: {chosen.name} by default.{skipped}"
    return f"Chosen by rolling origin, loss in records/s: {trials}.{skipped}"


def _describe_comparison(
    chosen: ChampionChoice, champion: ServingChampion, held: int, origin: Mapping[str, str], rehearsed: str
) -> str:
    """For the model card: the choice, with whom it was compared, what other loads gave, and what policies learned."""
    compared = f"Compared with champion version {champion.version} on the newest {held} steps."
    others = f"Other loads: {origin[sources.WHY]}."
    return " ".join(filter(None, (_describe_choice(chosen), compared, others, champion.remark, rehearsed)))


def _log_comparison(
    run: TrackedRun, backtests: dict[str, Backtest], left_out: int, chosen: ChampionChoice, candidates: Candidates
) -> None:
    figures = {f"{name}.{key}": value for name, b in backtests.items() for key, value in b.scores().items()}
    for name, trial in chosen.trials.items():
        figures |= {f"trial.{name}.rmse": trial.rmse, f"trial.{name}.pinball": trial.pinball}
    # Without infinities: MLflow keeps its largest number in their place, which would pass for a loss.
    run.metrics({key: value for key, value in figures.items() if math.isfinite(value)})
    run.metrics(loss_ratio_bounds(backtests, left_out))
    run.tags({"chosen": chosen.name, **{f"skipped.{name}": why[:500] for name, why in chosen.skipped.items()}})
    run.figure(plots.plot_forecasts(backtests["challenger"], "challenger"), "plots/fan.png")
    run.figure(plots.plot_error_by_horizon(backtests), "plots/error_by_horizon.png")
    if candidates.epochs:
        points = []
        for epoch in candidates.epochs:
            losses = {"train_loss": epoch.train_loss, "validation_loss": epoch.validation_loss}
            known = {f"{epoch.phase}.{name}": loss for name, loss in losses.items() if loss == loss}
            points.append((epoch.index, known))
        run.curve(points)
        run.figure(plots.plot_training_curve(candidates.epochs), "plots/training_curve.png")
