"""The list of `tidecast backfill JOB`: each order, and what was said of it as it stands."""

from dataclasses import replace

import pytest

from configs.settings import load
from pipelines.backfill import orders
from pipelines.backfill.ordering import refuse_second
from pipelines.cli.backfill import _list
from tidecast.orders import ReplayOrder, ReplayProgress

ORDER = ReplayOrder("fix", "orders", 100.0, "run", {"events": {"0": 0}}, {"events": {"0": 1000}})
SAID = ReplayProgress("fix", "orders", 150.0, 150.0, 1.0, "cancelled", 1000, 700)


@pytest.mark.parametrize(
    ("order", "said", "line"),
    [
        (ORDER, SAID, "70% cancelled"),
        (replace(ORDER, wall_time=200.0), SAID, "nothing was said of it yet"),
        (replace(ORDER, wall_time=200.0), replace(SAID, state="running"), "70% running"),
        (replace(ORDER, wall_time=200.0, wanted="done"), SAID, "70% cancelled"),
        (replace(ORDER, wall_time=200.0, wanted="done"), None, "it is over"),
        (ORDER, None, "nothing was said of it yet"),
    ],
)
def test_what_was_said_before_an_order_is_ordered_again_is_not_said_of_it(order, said, line, monkeypatch, capsys):
    monkeypatch.setattr(orders, "read_orders", lambda kafka, job: {"fix": order})
    monkeypatch.setattr(orders, "newest_progress", lambda kafka, job: {} if said is None else {"fix": said})
    _list(load(), "orders")
    assert line in capsys.readouterr().out.splitlines()[1]


def test_one_that_is_over_is_ordered_again_by_the_name_that_its_range_has(monkeypatch):
    known = {"fix": replace(ORDER, wall_time=200.0, wanted="done")}
    monkeypatch.setattr(orders, "read_orders", lambda kafka, job: known)
    with pytest.raises(orders.OrderError, match=r"'fix' of job 'orders' is over: order its range again, with --from"):
        orders.change_order(load().kafka, "orders", "fix", "run")
    refuse_second(replace(ORDER, wall_time=300.0), known)
