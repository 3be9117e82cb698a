import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.contract import Contract, Executors, Planning
from configs.errors import SettingsError
from configs.policies import LISTENERS, PLANNED_BY, POLICIES
from models.policy.catalogue import CATALOGUE, build, entry, select_names, with_knob
from models.policy.core.paced import Paced
from models.policy.core.policy import decide
from models.policy.core.view import LoadAhead
from models.policy.rules.fixed import Static, Timetable
from tests.fakes.views import a_view, alone, driven

CONTRACT = Contract(job="j", executors=Executors(min=1, max=20), planning=Planning(batch_s=2.0))
TABLE = Timetable(np.array([100.0, 800.0, 400.0]))
HERE = [name for name in CATALOGUE if name != "dqn"]
RUNS = 3


def made(name, knob=None):
    return build(name, CONTRACT, TABLE, knob)


def rates():
    return st.floats(0.01, 1e5) | st.just(0.0)


@st.composite
def a_look(draw, now_s):
    """Any sane view of a few runs: numbers that fit together, among them idle jobs and unknown measurements."""

    def of(values):
        return np.array(draw(st.lists(values, min_size=RUNS, max_size=RUNS)), float)

    executors, starting = of(st.integers(0, 20)), of(st.integers(0, 5))
    leaving = np.minimum(of(st.integers(0, 3)), executors)
    upper = of(rates())
    return a_view(
        RUNS, now_s, draw(st.sampled_from([1.0, 15.0, 60.0])), arrival_rps=of(rates()), lag_records=of(rates()),
        processed_rps=of(rates()), busy=of(st.floats(0.001, 1) | st.just(0.0)),
        in_batch=of(st.sampled_from([0.0, 0.3, 1.0])), batch_s=of(st.floats(0.01, 100) | st.just(np.nan)),
        executors=executors, starting=starting, leaving=leaving, target=np.clip(executors - leaving + starting, 1, 20),
        since_change_s=of(st.floats(0, 1e6)),
        ahead=LoadAhead(np.array([5.0, 10.0]), (0.5, 0.9), np.tile(upper[:, None, None], (1, 2, 2))),
    )  # fmt: skip


@st.composite
def some_looks(draw):
    gaps = draw(st.lists(st.sampled_from([1.0, 15.0, 70.0, 4000.0]), min_size=1, max_size=6))
    return [draw(a_look(now)) for now in np.cumsum(gaps)]


def told(policy, looks):
    memory, choices = policy.fresh(looks[0].runs), []
    for look in looks:
        memory, choice = decide(policy, memory, look)
        choices.append(choice)
    return choices


@settings(max_examples=10, deadline=None)
@given(looks=some_looks())
def test_every_answer_is_a_whole_number_within_the_bounds_and_the_same_for_a_run_alone(looks):
    each = [[alone(look, run) for look in looks] for run in range(RUNS)]
    for name in HERE:  # to draw the looks takes as long as what a policy says of them
        together = told(made(name), looks)
        for choice, look in zip(together, looks, strict=True):
            assert ((choice.target >= look.least) & (choice.target <= look.most)).all(), name
            assert (choice.target == np.rint(choice.target)).all(), name
        for run, own in enumerate(each):
            for both, one in zip(together, told(made(name), own), strict=True):
                assert (both.target[run], both.why[run]) == (one.target[0], one.why[0]), name


@pytest.mark.parametrize("name", HERE)
def test_a_knob_per_run_gives_what_each_knob_gives_alone(name):
    sweep = np.array(CATALOGUE[name].knob_values(CONTRACT))
    looks = [a_view(len(sweep), now, busy=0.9, lag_records=1500, batch_s=1.7) for now in np.arange(4) * 1000.0]
    together = driven(made(name, sweep), looks)
    apart = [driven(made(name, knob), [alone(look, i) for look in looks])[:, 0] for i, knob in enumerate(sweep)]
    assert together.T.tolist() == np.array(apart).tolist()


MORE = {
    "hpa": {"busy": 1.0}, "ds2": {"arrival_rps": 1e4}, "keda": {"lag_records": 1e5}, "spark_dstream": {"batch_s": 1e2},
    "spark_microbatch": {"batch_s": 1e2}, "flink": {"arrival_rps": 1e4, "lag_records": 1e6},
    "reactive": {"arrival_rps": 1e4, "lag_records": 1e6},
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
@settings(max_examples=8, deadline=None)
@given(shares=st.tuples(st.floats(0, 1), st.floats(0, 1)), executors=st.integers(1, 20))
def test_more_load_never_asks_for_fewer(name, shares, executors):
    low, high = sorted(shares)

    def after_an_hour(share):
        fields = {field: share * top for field, top in MORE[name].items()}
        looks = [a_view(1, now, 150.0, executors=executors, **fields) for now in np.arange(0, 5400, 150.0)]
        return np.array([choice.target[0] for choice in told(made(name), looks)])

    assert (after_an_hour(low) <= after_an_hour(high)).all()


@pytest.mark.parametrize("name", MORE)
def test_more_load_asks_for_more_and_less_for_fewer_in_the_end(name):
    # Load far above what four executors do, and next to none on twelve.
    above = {"busy": 1.0, "arrival_rps": 1e4, "lag_records": 1e5, "batch_s": 30.0, "processed_rps": 800}
    none = {"busy": 0.01, "arrival_rps": 8, "lag_records": 0, "batch_s": 0.1, "processed_rps": 8}
    looks = [a_view(now_s=now, since_s=60.0, **above) for now in np.arange(0, 3600, 60.0)]
    assert driven(made(name), looks)[-1, 0] > 4
    looks = [a_view(now_s=now, since_s=60.0, executors=12, **none) for now in np.arange(0, 7200, 60.0)]
    assert driven(made(name), looks)[-1, 0] < 12


def test_static_stays():
    assert driven(Static("static", 7.0), [a_view(busy=1.0), a_view(now_s=60.0, busy=0.0)]).tolist() == [[7], [7]]


def test_the_catalogue_knows_every_name_and_its_sweep():
    assert tuple(CATALOGUE) == POLICIES
    for name, kind in CATALOGUE.items():
        sweep = kind.knob_values(CONTRACT)
        assert len(sweep) == 8 and list(sweep) == sorted(set(sweep)), name
        assert kind.usual_setting is None or kind.usual_setting in sweep, name


@pytest.mark.parametrize("name", [name for name in HERE if CATALOGUE[name].usual_setting is not None])
def test_the_shipped_knob_is_the_one_that_is_built(name):
    policy = made(name)
    inner = policy.policy if isinstance(policy, Paced) else policy
    assert getattr(inner, inner.knob) == CATALOGUE[name].usual_setting
    assert getattr(with_knob(policy, 0.123).policy, inner.knob) == 0.123


def test_an_unknown_name_lists_those_there_are():
    for ask in (lambda: entry("hpaa"), lambda: build("hpaa", CONTRACT), lambda: select_names(["static", "hpaa"])):
        with pytest.raises(SettingsError, match=r"'hpaa' is unknown.*static, hpa, .*dqn"):
            ask()


def test_names_come_in_the_catalogues_order():
    assert select_names(["flink", "static", "flink"]) == ["static", "flink"]
    assert select_names(["all", "static"]) == list(POLICIES)


def test_the_catalogue_is_light():
    code = "import sys, models.policy.catalogue; assert not {'torch', 'sklearn', 'pandas'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


OTHERS = {
    "quantile": 0.7, "target_utilisation": 0.6, "scale_down_delay_s": 50.0, "cooldown_s": 60.0, "max_step_down": 3,
}  # fmt: skip


@pytest.mark.parametrize("key", PLANNED_BY)
def test_a_policy_keeps_to_the_keys_of_a_contract_that_are_said_of_it(key):
    planning = CONTRACT.planning.model_copy(update={key: OTHERS[key]})
    edited = CONTRACT.model_copy(update={"planning": planning})
    others = {name for name in HERE if repr(build(name, edited, TABLE)) != repr(made(name))}
    others &= {*LISTENERS} if key == "quantile" else {*HERE}  # `reactive` has one, and no forecast to read it of
    assert others == {*PLANNED_BY[key]} - {"dqn"}
    assert ("dqn" in PLANNED_BY[key]) == ("mpc" in PLANNED_BY[key]), "its advice and its fall-back"
