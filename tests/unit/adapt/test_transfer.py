import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.adapt.network import DomainRows, ForecastOnly, TransferGru
from models.adapt.scale import CONTEXT, DomainScale
from models.adapt.training import (
    LossWeights,
    TransferPlan,
    batches,
    forecast,
    mse,
    rmse,
    train,
    train_target_only,
)
from models.adapt.transfer import adapt, fine_tune, refit_transfer, search_transfer
from models.forecast.core.series import SeriesError

PLAN = TransferPlan(hidden=6, batch=16, pretraining=30, adapting=4, tuning=4, target_only=40, every=2)
HORIZON = 2


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def wave(steps: int, level: float = 100.0, size: float = 20.0, every: int = 16, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(steps)
    return level + size * np.sin(np.arange(steps) * 2 * np.pi / every) + 0.5 * noise


def rows(values: np.ndarray) -> DomainRows:
    return DomainRows.cut(values, DomainScale.fit(values), HORIZON)


def network(seed: int = 1) -> TransferGru:
    made = TransferGru(HORIZON, PLAN.hidden, generator(seed))
    with torch.no_grad():
        made.head.weight.uniform_(-0.1, 0.1, generator=generator(seed + 1))
    return made


def same(a: TransferGru, b: TransferGru) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_windows_are_counted_and_laid_out():
    values = np.arange(40.0)
    made = DomainRows.cut(values, DomainScale(0.0, 1.0), 1)
    assert len(made) == 40 - CONTEXT
    assert made.x[3].tolist() == list(range(3, 27)) and made.y[3].tolist() == [27.0]


def test_an_untrained_network_repeats_the_last_value():
    values = wave(60)
    said = forecast(ForecastOnly(TransferGru(HORIZON, 4, generator(0))), values, DomainScale.fit(values))
    np.testing.assert_allclose(said, np.repeat(values[CONTEXT - 1 :, None], HORIZON, axis=1), rtol=1e-5)


def test_no_convolution_looks_ahead():
    """Of z before its last ReLU, in the load less its newest value; ahead of that load lie two padded places."""
    made, seen = network(), {}
    made.first.register_forward_hook(lambda _, args, out: seen.update(read=args[0]))
    made.second.register_forward_hook(lambda _, args, out: seen.update(z=out))
    made(torch.rand(3, CONTEXT, generator=generator(5), requires_grad=True))
    assert seen["z"].shape == (3, PLAN.hidden, CONTEXT)
    for k in range(CONTEXT):
        (slope,) = torch.autograd.grad(seen["z"][..., k].sum(), seen["read"], retain_graph=True)
        reached = slope.abs().sum(dim=(0, 1))
        assert reached[k + 2] > 0 and not reached[k + 3 :].any()


def test_features_lie_on_the_forecast_path():
    made = network()
    x = torch.rand(3, CONTEXT, generator=generator(5), requires_grad=True)
    features, said = made(x)
    assert features.shape == (3, PLAN.hidden) and said.shape == (3, HORIZON)
    from_said, from_features = (
        torch.autograd.grad(out.sum(), made.convolutions()[0], retain_graph=True)[0] for out in (said, features)
    )
    assert float(from_said.abs().sum()) > 0 and float(from_features.abs().sum()) > 0


def plain(start: TransferGru, source: DomainRows, target: DomainRows, generators) -> TransferGru:
    """Joint training as it would be written without any discrepancy."""
    made = copy.deepcopy(start)
    optimizer = torch.optim.Adam(made.parameters(), lr=PLAN.learning_rate)
    drawn = [batches(part, PLAN.batch, g) for part, g in zip((source, target), generators, strict=True)]
    for _ in range(PLAN.adapting):
        (xs, ys), (xt, yt) = (next(part) for part in drawn)
        loss = mse(made(xs, generators[0])[1], ys) + mse(made(xt, generators[1])[1], yt)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
    return made


def adapted(weights: LossWeights) -> tuple[TransferGru, list]:
    made = network()
    source, target = rows(wave(120)), rows(wave(90, 10, 2, every=11, seed=1))
    return made, list(adapt(made, source, target, weights, PLAN, (generator(3), generator(4))))


def test_without_weights_adaptation_is_plain_training_bit_for_bit():
    made, steps = adapted(LossWeights(0, 0))
    expected = plain(network(), rows(wave(120)), rows(wave(90, 10, 2, every=11, seed=1)), (generator(3), generator(4)))
    assert same(made, expected)
    assert [shared for _, shared in steps] == [0] * PLAN.adapting


@pytest.mark.parametrize("weights", [LossWeights(1, 0), LossWeights(0, 1)])
def test_either_weight_moves_the_features(weights):
    without, _ = adapted(LossWeights(0, 0))
    made, steps = adapted(weights)
    assert not torch.equal(made.first.weight, without.first.weight)
    assert all(np.isfinite(loss) for loss, _ in steps)


def test_fine_tuning_freezes_the_convolutions_and_never_ends_worse_on_the_select_rows():
    made, target, select = network(), rows(wave(120)), rows(wave(80, seed=2))
    before, convolutions = rmse(made, select), [weight.clone() for weight in made.convolutions()]
    steps, error = fine_tune(made, target, select, PLAN, generator(0))
    assert error <= before and error == rmse(made, select)
    assert steps % PLAN.every == 0
    assert all(torch.equal(a, b) for a, b in zip(convolutions, made.convolutions(), strict=True))
    assert all(weight.requires_grad for weight in made.parameters())


def test_what_the_training_before_left_on_frozen_weights_does_not_slow_tuning():
    tuned = []
    for left in (None, 50.0):
        made = network()
        for weight in made.convolutions():
            weight.grad = None if left is None else torch.full_like(weight, left)
        fine_tune(made, rows(wave(120)), rows(wave(80, seed=2)), PLAN, generator(0))
        tuned.append(made.state_dict())
    assert all(torch.equal(one, tuned[1][name]) for name, one in tuned[0].items())


def test_training_is_repeatable_and_learns_a_sine_better_than_the_last_value():
    values = wave(400)
    select = rows(wave(120, seed=3))
    plan = TransferPlan(hidden=12, batch=32, target_only=120, every=10, learning_rate=0.01)
    made, steps = train_target_only(rows(values), select, plan, 0)
    twice = [train_target_only(rows(values), select, replace(plan, target_only=20), 0)[0] for _ in range(2)]
    untrained = rmse(TransferGru(HORIZON, 12, generator(0)), select)
    assert steps > 0 and same(*twice) and not same(made, twice[0])
    assert rmse(made, select) < 0.5 * untrained


def test_a_transfer_is_repeatable_and_chooses_from_the_grid():
    start, source, target = network(), rows(wave(200)), rows(wave(80, 10, 2))
    before, plan = copy.deepcopy(start), replace(PLAN, grid=(LossWeights(0, 0), LossWeights(0.1, 0.1)))
    found = [search_transfer(start, source, target, rows(wave(60, 10, 2, seed=5)), plan, 9) for _ in range(2)]
    assert same(found[0].network, found[1].network) and found[0].weights == found[1].weights
    assert found[0].weights in plan.grid and LossWeights(0, 0) in PLAN.grid
    assert same(start, before)
    final = [refit_transfer(start, source, target, found[0], plan, 9) for _ in range(2)]
    assert same(final[0], final[1])


def test_the_weights_of_least_error_on_the_select_rows_are_chosen_wherever_they_stand_in_the_grid():
    start, source, target, select = network(), rows(wave(200)), rows(wave(80, 10, 2)), rows(wave(60, 10, 2, seed=5))
    grid = (LossWeights(0, 0), LossWeights(0.1, 0.1), LossWeights(1, 0))
    alone = [search_transfer(start, source, target, select, replace(PLAN, grid=(one,)), 9) for one in grid]
    errors = [one.select_rmse for one in alone]
    assert errors == [rmse(one.network, select) for one in alone] and len(set(errors)) == 3
    best = min(alone, key=lambda one: rmse(one.network, select))
    for shift in range(3):
        plan = replace(PLAN, grid=(*grid[shift:], *grid[:shift]))
        found = search_transfer(start, source, target, select, plan, 9)
        assert (found.weights, found.select_rmse) == (best.weights, min(errors)) and same(found.network, best.network)


def test_all_rows_are_tuned_to_for_as_many_steps_as_were_best():
    start, source, target = network(), rows(wave(200)), rows(wave(80, 10, 2))
    chosen = search_transfer(start, source, target, rows(wave(60, 10, 2, seed=5)), PLAN, 9)
    expected = copy.deepcopy(start)
    for _ in adapt(expected, source, target, chosen.weights, PLAN, (generator(9), generator(10))):
        pass
    assert same(refit_transfer(start, source, target, replace(chosen, tuning_steps=0), PLAN, 9), expected)
    tuned = refit_transfer(start, source, target, replace(chosen, tuning_steps=2), PLAN, 9)
    assert not torch.equal(tuned.head.weight, expected.head.weight)
    assert all(torch.equal(a, b) for a, b in zip(tuned.convolutions(), expected.convolutions(), strict=True))


def test_a_pass_uses_every_row_once():
    part = DomainRows(torch.arange(10.0)[:, None], torch.zeros(10, 1))
    drawn = batches(part, 4, generator(0))
    seen = torch.cat([next(drawn)[0].flatten() for _ in range(3)])
    assert sorted(seen.tolist()) == list(range(10))


def test_plain_training_lowers_the_loss():
    losses = list(
        train(network(), rows(wave(300)), 60, TransferPlan(hidden=6, batch=32, learning_rate=0.01), generator(0))
    )
    assert np.mean(losses[-10:]) < 0.6 * np.mean(losses[:10])


def test_what_cannot_be_scaled_or_cut_is_refused():
    with pytest.raises(SeriesError, match="constant load cannot be scaled"):
        DomainScale.fit(np.full(30, 5.0))
    with pytest.raises(SeriesError, match="25 steps: 24 to read and 2 to forecast"):
        DomainRows.cut(np.arange(25.0), DomainScale(0, 1), 2)


@pytest.mark.parametrize("level", [-3.0, 0.4])
def test_where_the_target_lies_changes_no_class(level):
    """The features subtract the last value and the head adds to it, so the same moves at another level are the same."""
    source, target = rows(wave(200)), rows(wave(200, seed=1))
    moved = DomainRows(target.x + level, target.y + level)
    weights = LossWeights(marginal=0.1, conditional=0.5)
    here, there = (
        list(adapt(fresh(), source, each, weights, PLAN, (generator(3), generator(4)))) for each in (target, moved)
    )
    assert min(shared for _, shared in here) >= 1
    for (loss, shared), (other_loss, other_shared) in zip(here, there, strict=True):
        assert shared == other_shared and loss == pytest.approx(other_loss, rel=1e-3)


def fresh() -> TransferGru:
    return TransferGru(HORIZON, PLAN.hidden, generator(0))
