from hypothesis import given
from hypothesis import strategies as st

from pipelines.serve.step.deployments import Deployment, choose_first_origin, deployment_at

DIGESTS = ("a", "b", "c")


def made(number, begins):
    return Deployment(number, "m", str(number), DIGESTS, begins, 0, -1, 3600.0)


def test_the_newest_generation_that_has_begun_serves():
    swaps = [made(1, 10), made(2, 15), made(3, 15)]
    assert [getattr(deployment_at(swaps, v), "number", None) for v in (9, 10, 14, 15, 99)] == [None, 1, 1, 3, 3]


def test_a_swap_begins_after_the_newest_origin_that_was_ever_sent():
    assert choose_first_origin([], 41, None) == 41  # nobody has spoken for the newest window
    assert choose_first_origin([], None, None) == 0
    assert choose_first_origin([made(1, 41)], 41, 41) == 42
    assert choose_first_origin([made(1, 41)], 41, 47) == 48  # the topic knows more than a store after a host crash
    assert choose_first_origin([made(1, 41)], 44, 42) == 45  # 43 and 44 were silent: they are over
    assert choose_first_origin([made(1, 48)], 41, 41) == 48


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=20))
def test_first_origins_never_decrease_and_no_origin_has_two_sets(steps):
    swaps, newest, sent, by = [], None, None, {}
    for windows, kind in steps:
        for _ in range(windows):
            newest = 0 if newest is None else newest + 1
            if (one := deployment_at(swaps, newest)) is not None:
                by[newest], sent = one.number, newest
        if kind == 0:
            begins = choose_first_origin(swaps, newest, sent)
            swaps.append(made(len(swaps) + 1, begins))
    assert [g.first_origin for g in swaps] == sorted(g.first_origin for g in swaps)
    assert all(deployment_at(swaps, origin).number == number for origin, number in by.items())
