import math

from hypothesis import given
from hypothesis import strategies as st

from tidecast.control import WALL, Clock, clock_of
from tidecast.messages import Control

walls = st.floats(0, 4e9)


@given(walls)
def test_the_wall_clock_tells_the_wall_time(wall):
    assert WALL.at(wall) == wall


def test_a_replay_runs_faster():
    clock = Clock(wall_start=1000.0, trace_start=50_000.0, scale=720.0)
    assert clock.at(1000.0) == 50_000.0
    assert clock.at(1002.5) == 50_000.0 + 1800.0  # half an hour of the trace in two and a half seconds
    assert clock.at(999.0) == 50_000.0 - 720.0
    assert clock.wall_at(50_000.0 + 1800.0) == 1002.5


@given(walls, walls, st.floats(0.01, 1e4))
def test_time_passes_at_the_scale(first, second, scale):
    clock = Clock(1000.0, 0.0, scale)
    assert math.isclose(clock.at(second) - clock.at(first), (second - first) * scale, rel_tol=1e-6, abs_tol=1e-2)


def test_a_control_word_announces_a_clock_only_when_it_is_whole():
    assert clock_of(Control("j", 0.0, wall_start=1.0, trace_start=2.0, time_scale=3.0)) == Clock(1.0, 2.0, 3.0)
    assert clock_of(Control("j", 0.0, mode="act")) is None
    assert clock_of(Control("j", 0.0, wall_start=1.0, trace_start=2.0)) is None
    assert clock_of(Control("j", 0.0, wall_start=0.0, trace_start=0.0, time_scale=1.0)) == WALL
