"""The controller around two queues: told too high a rate live records are late, told too low the replay waits."""

from pipelines.bench.sensitivity import WrongNumbers, run_loop

HOURS = 0.4


def test_wrong_numbers_cost_what_they_should():
    true, high, low = (run_loop(WrongNumbers(rate=rate), 0, hours=HOURS) for rate in (1.0, 1.3, 0.7))
    assert true.late == low.late == 0.0 and high.late > 0.02
    assert low.replayed < true.replayed < high.replayed
    few = run_loop(WrongNumbers(selectivity=0.7), 0, hours=HOURS)
    assert few.late > 0.02 and few.replayed > true.replayed


def test_a_frozen_model_replays_on_where_one_that_is_told_of_the_shift_gives_way():
    told, frozen = (run_loop(WrongNumbers(frozen=one), 0, shifted=True, hours=HOURS) for one in (False, True))
    assert told.replayed < frozen.replayed and told.late <= frozen.late
    assert run_loop(WrongNumbers(frozen=True), 0, hours=HOURS) == run_loop(WrongNumbers(), 0, hours=HOURS)
