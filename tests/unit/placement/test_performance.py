"""The performance model: samples and sizes by hand, no step in two parts, and that it learns."""

import numpy as np
import pytest
import torch

from models.placement.performance.model import absolute_error, fine_tune, linear_regression, train_performance
from models.placement.performance.network import LARGE, PerformanceNetwork
from models.placement.performance.windows import (
    History,
    Samples,
    make_samples,
    parts_in_time,
    parts_to_tune,
    with_older,
)


def history(steps, seed=0):
    """Latency that bends at a load, of two operators on two nodes."""
    random = np.random.default_rng(seed)
    rps, counts = random.uniform(50, 150, steps), random.integers(1, 4, (steps, 2, 2))
    load = np.ones(steps)
    load[1:] = rps[:-1] / (60.0 * counts[:-1, 1].sum(axis=1))
    return History(rps, counts, np.column_stack([10 + 150 * np.maximum(load - 0.6, 0) ** 2, load]))


def test_samples_by_hand():
    past = History(np.arange(1.0, 11), np.arange(40).reshape(10, 2, 2), np.arange(20.0).reshape(10, 2))
    samples = make_samples(past)
    assert samples.seen.shape == (6, 4, 5) and len(samples.label) == 6
    assert samples.seen[0, :, 0].tolist() == [1, 2, 3, 4] and samples.label[0].tolist() == [8, 9]
    assert samples.seen[-1, -1].tolist() == [9, 32, 33, 34, 35] and samples.label[-1].tolist() == [18, 19]
    assert samples.before[0].tolist() == [6, 7] and len(samples.before) == 6
    assert len(make_samples(History(*(part[:4] for part in past))).seen) == 0


def test_no_step_is_in_two_parts():
    past = history(200)
    used = [{*one.seen[:, :, 0].reshape(-1).tolist()} for one in parts_in_time(past)]
    assert not used[0] & used[1] and not used[1] & used[2] and not used[0] & used[2]
    assert [len(one.label) for one in parts_in_time(past)] == [115, 17, 56]


@pytest.mark.parametrize(("steps", "sizes"), [(28, [17, 3]), (180, [146, 26])])
def test_nor_when_a_model_is_tuned(steps, sizes):
    at = np.arange(float(steps))
    parts = parts_to_tune(make_samples(History(at, np.ones((steps, 1, 1)), np.column_stack([at, at]))))
    train, stop = ({*one.seen[:, :, 0].flat, *one.label.flat, *one.before.flat} for one in parts)
    assert not train & stop and [len(one.label) for one in parts] == sizes
    assert train | stop == {*at}


@pytest.mark.parametrize(("operators", "nodes", "parameters"), [(3, 9, 8_825_602), (2, 3, 8_804_098)])
def test_parameters_of_the_large_network_by_hand(operators, nodes, parameters):
    with torch.device("meta"):
        network = PerformanceNetwork(operators * nodes + 1, LARGE)
    assert sum(part.numel() for part in network.parameters()) == parameters


def test_features_of_three_operators_on_nine_nodes():
    past = History(np.ones(5), np.ones((5, 3, 9)), np.ones((5, 2)))
    assert make_samples(past).seen.shape == (1, 4, 28)


@pytest.mark.parametrize(("features", "first", "total"), [(28, 291_840, 8_818_434), (7, 270_336, 8_796_930)])
def test_parameters_of_each_layer_by_hand(features, first, total):
    """As the paper counts them; PyTorch has a second bias vector for each gate, which adds to the first."""
    with torch.device("meta"):
        network = PerformanceNetwork(features, LARGE)
    each = [sum(part.numel() for part in layer.parameters()) for layer in network.children()]
    assert each == [first + 1_024, 5_251_072, 3_149_824, 131_328, 514, 0]
    units = np.array([*LARGE[:3], 0, 0, 0])
    assert (each - 4 * units).tolist() == [first, 5_246_976, 3_147_776, 131_328, 514, 0]
    assert sum(each - 4 * units) == total and network.dropout.p == 0.5


def test_parts_are_in_time_and_no_measured_step_is_in_two():
    steps = np.arange(200.0)
    past = History(steps, np.tile(steps[:, None, None], (1, 2, 2)), np.tile(steps[:, None], (1, 2)))
    used = [sorted({*one.seen.reshape(-1).tolist(), *one.label.reshape(-1).tolist()}) for one in parts_in_time(past)]
    assert [step for part in used for step in part] == steps.tolist()
    assert len(used[2]) == 60  # three in ten of them


def test_scales_are_of_the_rows_to_train_on_alone():
    past = history(100)
    train, stop, _ = parts_in_time(past)
    made = train_performance(train, stop, slots=4, seed=1, epochs=0)
    assert made.mean.tolist() == [train.seen[:, :, 0].mean(), 0, 0, 0, 0]
    assert made.spread.tolist() == [train.seen[:, :, 0].std(), 4, 4, 4, 4]

    def scales(model):
        return np.concatenate([model.mean[:1], model.spread[:1], model.label_mean, model.label_spread])

    def same(first):
        """Whether each is, where rows from this one on are others."""
        other = History(*(part.copy() for part in past))
        for part in other:
            part[first:] = 7 * part[first:] + 100
        again = train_performance(*parts_in_time(other)[:2], slots=4, seed=1, epochs=0)
        return (scales(again) == scales(made)).tolist()

    assert same(70) == same(60) == [True] * 6  # rows for testing, and those to stop by too
    assert same(50) == [False] * 6


def test_it_learns_what_bends_repeats_itself_and_refuses_another_job():
    train, stop, test = parts_in_time(history(700))
    made = train_performance(train, stop, slots=4, seed=1, epochs=50)
    linear = absolute_error(linear_regression(train, test), test.label)
    assert (made.error(test) < 0.8 * np.minimum(linear, absolute_error(test.before, test.label))).all()
    short = [train_performance(train, stop, 4, 2, epochs=2).predict(test.seen) for _ in range(2)]
    assert (short[0] == short[1]).all()
    better = fine_tune(made, train, stop, seed=1)
    assert better.scaled_error(stop) <= made.scaled_error(stop) + 1e-9 and better.network is not made.network
    with pytest.raises(ValueError, match="7 features: the model was trained on 5, of another job or other nodes"):
        made.predict(np.zeros((1, 4, 7)))


def test_a_model_is_tuned_with_a_fifth_as_many_older_samples_by_hand():
    newest, older = (make_samples(history(steps, seed)) for steps, seed in ((14, 1), (9, 2)))  # ten, and five
    mixed = with_older(newest, older, seed=3)
    assert [len(part) for part in mixed] == [12] * 3
    for part, new, old in zip(mixed, newest, older, strict=True):
        assert (part[:10] == new).all()
        rows = [one.tolist() for one in old]
        assert all(one.tolist() in rows for one in part[10:]) and part[10].tolist() != part[11].tolist()
    assert all((one == other).all() for one, other in zip(mixed, with_older(newest, older, seed=3), strict=True))
    few = Samples(*(part[:1] for part in older))
    assert len(with_older(newest, few, seed=3).label) == 11


def test_what_is_off_alike_for_all_samples_is_no_uneven_error():
    train, stop, test = parts_in_time(history(200))
    model = train_performance(train, stop, slots=4, seed=1, epochs=2)
    said = model.predict(test.seen)
    alike = test._replace(label=said * [3.0, 1.0] + [0.0, 0.2])
    assert model.uneven_error(alike) == pytest.approx(0, abs=1e-9) and model.scaled_error(alike) > 0.1
    odd = alike.label.copy()
    odd[: len(odd) // 4, 0] *= 2.0  # a quarter of them is off by log(2) beside the others
    share = len(odd) // 4 / len(odd)
    expected = np.log(2.0) * share / model.label_spread[0] / 2
    assert model.uneven_error(test._replace(label=odd)) == pytest.approx(expected)
