import numpy as np
import pytest

from tests.fakes.plain_blend import weights


def follow(outcomes, said, mood=0, half_life=50.0):
    """Blends of forecasts one step ahead, each judged by the next outcome."""
    errors, blended, made = weights.start(1, said.shape[1]), np.array([np.nan]), []
    told = np.full((1, said.shape[1]), np.nan)
    for value, now in zip(outcomes, said, strict=True):
        errors = weights.score(errors, told, blended, np.array([mood]), value, half_life)
        errors, blended = weights.blend(errors, now[:, None], mood)
        told = now[None]
        made.append(blended[0])
    return errors, np.array(made)


def test_at_first_all_count_the_same():
    _, blended = weights.blend(weights.start(2, 3), np.array([[1.0, 10.0], [2.0, 20.0], [6.0, np.nan]]), 0)
    np.testing.assert_allclose(blended, [3.0, 15.0])


def test_silence_of_all_is_no_forecast():
    _, blended = weights.blend(weights.start(1, 2), np.full((2, 1), np.nan), 0)
    assert np.isnan(blended).all()


def test_who_was_right_counts():
    outcomes = np.random.default_rng(0).normal(50, 5, 300)
    said = np.stack([np.append(outcomes[1:], 50.0), np.full(300, 30.0)], axis=1)
    _, made = follow(outcomes, said)
    assert abs(made[-2] - outcomes[-1]) < 0.2


def test_errors_that_cancel_are_weighed_together():
    noise = np.random.default_rng(1).normal(0, 5, 400)
    said = np.stack([50 + noise, 50 - noise, np.full(400, 53.0)], axis=1)
    _, made = follow(np.full(400, 50.0), said)
    assert np.abs(made[-50:] - 50).mean() < 0.5 * min(3.0, np.abs(noise).mean())


def test_one_that_was_silent_starts_as_good_as_the_blend():
    outcomes = np.full(100, 50.0)
    said = np.stack([np.full(100, 49.0), np.full(100, np.nan)], axis=1)
    errors, made = follow(outcomes, said)
    np.testing.assert_allclose(made, 49.0)
    np.testing.assert_allclose(errors.loss[0, 0, 0], errors.loss[0, 0, 1])


def test_excited_moments_have_their_own_errors():
    errors, _ = follow(np.full(20, 50.0), np.tile([50.0, 40.0], (20, 1)), mood=1)
    assert errors.count[0, 0] == 0 and errors.count[1, 0] == 19
    _, calm = weights.blend(errors, np.array([[50.0], [40.0]]), 0)
    _, excited = weights.blend(errors, np.array([[50.0], [40.0]]), 1)
    assert calm[0] == pytest.approx(45.0) and excited[0] > 47.5


def test_with_few_excited_moments_the_calm_ones_stand_in():
    errors, _ = follow(np.full(20, 50.0), np.tile([50.0, 40.0], (20, 1)), mood=0)
    _, excited = weights.blend(errors, np.array([[50.0], [40.0]]), 1)
    _, calm = weights.blend(errors, np.array([[50.0], [40.0]]), 0)
    np.testing.assert_allclose(excited, calm)


def test_a_surprise_is_far_beyond_the_usual():
    errors = weights.start(1, 2)
    for error in [1.0, -1.0] * 10:
        errors, excited = weights.surprise(errors, error, error, 100.0)
        assert excited == 0
    assert errors.usual == pytest.approx(1.0)
    assert weights.surprise(errors, 2.4, 2.4, 100.0)[1] == 0
    after, excited = weights.surprise(errors, -300.0, -300.0, 100.0)
    assert excited == 1
    assert after.usual == pytest.approx(1 + (2.5**2 - 1) / 21)  # a single error counts as one of 2.5 times the usual


def test_a_missing_forecast_is_no_error():
    errors = weights.start(2, 2)
    after = weights.score(errors, np.full((2, 2), np.nan), np.full(2, np.nan), np.zeros(2), 5.0, 50.0)
    assert after is errors


def test_a_blend_far_worse_than_the_last_value_is_lost_until_it_is_better_again():
    errors, _ = follow(np.full(60, 50.0), np.tile([50.0, 40.0], (60, 1)))
    steps = 0
    while not errors.lost:
        errors, excited = weights.surprise(errors, 5.0, 2.0, 100.0)
        steps += 1
    assert steps == 10  # 1 - (7/8)**10 is the first share above 0.7
    assert excited == 0 and errors.count[0, 0] == 8  # what was learnt before counts little
    while errors.lost:
        errors, _ = weights.surprise(errors, 1.0, 2.0, 100.0)
        steps += 1
    assert steps == 10 + 5


def test_a_blend_somewhat_worse_is_not_lost():
    errors = weights.start(1, 2)
    for _ in range(50):
        errors, _ = weights.surprise(errors, 5.0, 3.0, 100.0)
    assert not errors.lost


def test_a_load_that_rests_as_it_did_yesterday_has_not_changed():
    errors = weights.start(1, 2)
    for _ in range(50):
        errors, _ = weights.surprise(errors, 0.5, 0.0, 100.0, before=0.0)
    assert not errors.lost
    for _ in range(50):
        errors, _ = weights.surprise(errors, 0.5, 0.0, 100.0, before=3.0)  # yesterday it did not rest
    assert errors.lost


def test_a_hopeless_one_does_not_keep_the_others_from_being_told_apart():
    rng = np.random.default_rng(2)
    outcomes = rng.normal(50, 5, 60)
    ahead = np.append(outcomes[1:], 50.0)
    said = np.stack([ahead + rng.normal(0, 1, 60), ahead + rng.normal(0, 4, 60), np.full(60, 1500.0)], axis=1)
    errors, _ = follow(outcomes, said)
    assert errors.shares[0, 0, 0] > 0.8 and errors.shares[0, 0, 1] < 0.2
