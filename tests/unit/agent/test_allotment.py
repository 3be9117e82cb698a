"""Executors of an application that several queries share: every one counts for one of them, whatever happens."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from tidecast.spark.allotment import KEPT, Allotment, allotment_of

QUERIES = ("orders", "payments", "views")
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("ask", "begin", "come", "die", "dismiss", "leave")),
        st.sampled_from(QUERIES),
        st.integers(0, 6),
    ),
    max_size=40,
)


@given(EVENTS)
def test_every_executor_that_stays_counts_for_one_scaled_query(events):
    shared, registered, started, dismissed = Allotment(), [], 0, set()
    for what, query, number in events:
        if what == "ask":
            shared.ask(query, number)
        elif what == "begin":  # three queries of two names
            shared.begin(query, query[0] if query == "orders" else "others")
        elif what == "come":
            registered += [f"{started + n}" for n in range(number)]
            started += number
        elif what == "die":
            registered = registered[number:]
        elif what == "dismiss" and shared.target(query) is not None:
            surplus = shared.own(query, registered)[shared.target(query) :]
            shared.dismiss(surplus)
            dismissed.update(surplus)
        elif what == "leave":
            shared.leave(query)
        scaled = [one for one in QUERIES if shared.target(one) is not None]
        own = {one: shared.own(one, registered) for one in scaled}
        assert shared.total("nobody", 0) == sum(shared.target(one) for one in scaled)
        assert all(shared.target(one) >= 0 for one in scaled)
        if scaled:
            live = [one for one in registered if one not in dismissed]
            assert sorted(chain(*own.values())) == sorted(live)
            gone = [*chain(*(shared.leaving(one, registered) for one in scaled))]
            assert len(gone) == len({*gone}) and {*gone} <= {*registered} - {*live}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3))
def test_when_all_that_was_asked_for_has_come_each_query_has_what_it_asks_for(numbers):
    shared = Allotment()
    for query, number in zip(QUERIES, numbers, strict=False):
        shared.ask(query, number)
    registered = [f"{n}" for n in range(sum(numbers))]
    assert [len(shared.own(query, registered)) for query in QUERIES[: len(numbers)]] == numbers


def test_the_first_query_has_what_it_finds_and_a_new_executor_goes_where_most_is_lacking():
    shared = Allotment()
    assert shared.own("orders", ["0", "1"]) == ["0", "1"]  # not scaled: it is told all
    shared.ask("orders", 2)
    shared.own("orders", ["0", "1"])
    shared.ask("payments", 1)
    shared.ask("views", 2)
    found = {query: shared.own(query, ["0", "1", "2", "3"]) for query in QUERIES}
    assert found == {"orders": ["0", "1"], "payments": ["3"], "views": ["2"]}
    shared.dismiss(["0"])
    assert shared.leaving("orders", ["0", "1", "2"]) == ["0"] and not shared.leaving("views", ["0", "1", "2"])


def test_an_allotment_is_that_of_an_application():
    one = allotment_of("app-1")
    assert allotment_of("app-1") is one and allotment_of("app-2") is not one


def test_who_lets_none_go_inherits_only_where_all_others_let_none_go_either():
    shared, there = Allotment(), ["0", "1", "2", "3"]
    for query, number in zip(QUERIES, (1, 1, 2), strict=True):
        shared.ask(query, number)
    assert [len(shared.own(query, there)) for query in QUERIES] == [1, 1, 2]
    shared.rest("orders", True)  # frozen by a person
    shared.leave("views")
    assert [shared.target(query) for query in QUERIES] == [1, 3, None]
    assert [len(shared.own(query, there)) for query in QUERIES[:2]] == [1, 3]
    shared.leave("payments")
    assert shared.target("orders") == 4 and shared.own("orders", there) == there


def test_who_begins_anew_has_what_it_left_also_from_an_heir_of_its_heir():
    shared, there = Allotment(), ["0", "1", "2", "3", "4", "5"]
    for query, number in zip(QUERIES, (1, 2, 3), strict=True):
        shared.begin(query, query)
        shared.ask(query, number)
    assert [len(shared.own(query, there)) for query in QUERIES] == [1, 2, 3]
    own = {query: shared.own(query, there) for query in QUERIES}
    shared.leave("orders")
    shared.leave("payments")
    assert shared.target("views") == 6 and shared.own("views", there) == there
    anew = {"payments": "of payments", "orders": "of orders"}
    assert [shared.begin(query, name) for name, query in anew.items()] == [2, 1]
    assert {name: shared.own(query, there) for name, query in anew.items()} == {name: own[name] for name in anew}
    assert shared.target("views") == 3 and shared.total("nobody", 0) == 6


def test_executors_that_come_and_go_for_weeks_take_no_more_room_and_the_newest_are_known():
    shared = Allotment()
    shared.ask("orders", 1)
    shared.ask("payments", 1)
    for number in range(5 * KEPT):
        there = [f"{number}", f"{number + 1}"]
        assert sum(len(shared.own(query, there)) for query in QUERIES[:2]) == len(there) - (number > 0)
        shared.dismiss(there[1:])
    assert len(shared._whose) <= KEPT + 3 and len(shared._asked_to_leave) <= KEPT + 3
    older = [f"{5 * KEPT - at}" for at in range(3, 0, -1)]
    assert not any(shared.own(query, older) for query in QUERIES[:2])
