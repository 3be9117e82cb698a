import pytest

from tidecast.backfill.spec import BackfillError, Round, Spec, check_name, check_range, instant, overlapping

DAY = 86_400_000


def spec(name="a", begin=0, end=10, state="open", **more):
    return Spec(name, "/t", begin, end, "1", ("k",), state, **more)


def test_a_spec_is_read_as_it_was_written():
    made = spec().started_over(4, 9).with_written().with_round(6, 12)
    assert Spec.from_json(made.to_json()) == made
    assert made.rounds == (Round(0, 4, 9, True), Round(1, 6, 12))


def test_a_round_that_was_not_written_is_forgotten_and_its_number_is_not_used_again():
    made = spec().started_over(4, 9).with_written().with_round(6, 12).with_round(7, 13)
    assert made.rounds == (Round(0, 4, 9, True), Round(2, 7, 13)) and made.next_round == 3
    assert made.started_over(8, 14).rounds == (Round(3, 8, 14),)


@pytest.mark.parametrize("name", ["", ".x", "a/b", "..", "x" * 65, "a b", "a\n"])
def test_an_id_that_names_no_folder_is_refused(name):
    with pytest.raises(BackfillError, match="letters, digits"):
        check_name(name)


def test_an_id_is_taken():
    assert check_name("orders-2026.03_a") == "orders-2026.03_a"


@pytest.mark.parametrize(
    ("begin", "end", "says"),
    [(5, 5, "is empty"), (6, 5, "is empty"), (0, 11, "reaches into the future"), (20, 30, "reaches into the future")],
)
def test_empty_ranges_and_the_future_are_refused(begin, end, says):
    with pytest.raises(BackfillError, match=says):
        check_range(begin, end, now=10)


def test_a_range_up_to_now_is_taken():
    check_range(0, 10, now=10)


def test_a_range_stands_in_the_message_with_its_dates():
    with pytest.raises(BackfillError, match=r"\[1970-01-02 00:00:00, 1970-01-01 00:00:00.007\) is empty: give an end"):
        check_range(DAY, 7, now=DAY)
    assert instant(10**21) == f"{10**21} ms"


def test_only_others_that_share_time_and_may_still_publish_overlap():
    mine = spec("mine", 10, 20)
    others = [spec("before", 0, 10), spec("in", 12, 13), spec("after", 20, 30), spec("over", 0, 30, "published"),
              spec("old", 10, 20, "superseded"), spec("mine", 10, 20)]  # fmt: skip
    assert [one.name for one in overlapping(mine, others)] == ["in", "over"]
