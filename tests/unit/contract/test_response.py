"""Whether a job still answers to its controls as it did: in lists that JSON holds, and in the controller's trace."""

import json

import numpy as np
import pytest

from models.contract.declared import build, plain
from models.contract.slow.linear_model import LinearModel, learn
from models.contract.slow.response import Response


def followed(ratios, controls):
    response = Response()
    for ratio, applied in zip(ratios, controls, strict=True):
        response = build(Response, json.loads(json.dumps(plain(response.after(ratio, applied, 1)))))
        yield response


def test_an_interval_is_learned_from_the_one_before_it():
    first = Response().after(0.5, (0.2, 3), 1)
    assert first.inputs == pytest.approx((1.0, np.log(0.5), np.log(1.2), np.log(4))) and first.count == 0
    second = first.after(0.6, (0.3, 3), 1)
    model = learn(LinearModel.begin(4, 1, 100.0), np.array(first.inputs), np.array([np.log(0.6)]))
    assert second.weights == pytest.approx(model.weights[:, 0]) and second.count == 1
    assert second.spread == tuple(map(tuple, model.spread.tolist()))


def test_what_was_not_read_or_does_not_follow_teaches_nothing():
    first = Response().after(0.5, (0.2, 3), 1)
    assert first.after(0.6, (0.2, 3), 2).count == 0
    assert first.after(None, (0.2, 3), 1).count == 0
    unread = first.after(0.6, (None, 3), 1)
    assert unread.count == 1 and unread.inputs is None and unread.after(0.6, (0.2, 3), 1).count == 1
    assert Response().after(0.0, (0.2, 3), 1).inputs[1] == np.log(1e-3)


def test_a_job_whose_replay_costs_thrice_is_told_once_whatever_json_has_held_between():
    chance, ratios, shares = np.random.default_rng(3), [0.5], []
    for at in range(160):
        shares.append(chance.uniform(0.1, 0.9))
        slope = 0.5 if at < 100 else 1.5
        ratios.append(float(np.exp(-1 + slope * shares[-1] + 0.02 * chance.normal())))
    alarms = [at for at, one in enumerate(followed(ratios[:-1], [(0.4, s, 3) for s in shares])) if one.alarm]
    assert len(alarms) == 1 and 100 < alarms[0] < 110
