"""A drawn workload as a session sends it, and its truth, against which what readers see is held."""

from dataclasses import replace

import numpy as np
import pytest

from models.workload.generator import SignedRecords, Workload, draw_workload
from pipelines.bench.backfill import workloads
from pipelines.bench.backfill.loads import PARTITIONS
from pipelines.bench.backfill.session.merged_job import WINDOW_MS, group_of
from pipelines.bench.backfill.session.merging import ResultTable, Windows, count_net, judge_table
from pipelines.bench.backfill.session.producer import NEW, RETRACTION, name_of
from pipelines.bench.backfill.session.workload import as_sent, drawn_truth, errors_of, stamps_of

BEGAN_MS = 1_700_000_000_000


def columns(*rows):
    return SignedRecords(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


@pytest.fixture(scope="module")
def drawn():
    how = workloads.arrange_workload(workloads.plan_load(workloads.GENERATED, 1.0)[0])
    return draw_workload(how.shape(), how.seed)


def on_the_topic(work):
    """Key, ms and value of each record, as a broker has them that cuts stamps to whole milliseconds."""
    sent, stamps = as_sent(work), stamps_of(work).tolist()
    for key, stamp_s, takes_back in zip(sent.key.tolist(), stamps, sent.takes_back.tolist(), strict=True):
        yield name_of(key).decode(), int((BEGAN_MS / 1000 + stamp_s) * 1000), NEW if takes_back < 0 else RETRACTION


def test_a_few_records_by_hand():
    work = Workload(columns((0, 7, -4000, 0, 1), (9, 7, 0, 0, 1), (9, 7, 0, 9, 1), (9, 7, 0, 11_000, -1)), 0, ())
    sent = as_sent(work)
    assert sent.at_s.tolist() == [0.0, 0.0, 0.009, 11.0] and sent.partition.tolist() == [0, 1, 1, 9 % PARTITIONS]
    assert sent.takes_back.tolist() == [-1, -1, -1, 2]
    assert [at for _, at, _ in on_the_topic(work)] == [BEGAN_MS - 4000, BEGAN_MS, BEGAN_MS, BEGAN_MS]
    assert drawn_truth(work, BEGAN_MS) == {("key-000", BEGAN_MS - WINDOW_MS): 1, ("key-009", BEGAN_MS): 1}


def test_what_is_sent_comes_to_the_generators_truth(drawn):
    sent = as_sent(drawn)
    assert count_net(on_the_topic(drawn), str) == drawn_truth(drawn, BEGAN_MS)
    assert count_net(on_the_topic(drawn), group_of) == drawn_truth(drawn, BEGAN_MS, sampled=True)
    assert {*sent.partition.tolist()} == {*range(PARTITIONS)} and (sent.takes_back >= 0).any()


def test_a_truth_that_is_off_by_one_is_reported_wrong(drawn):
    truth = drawn_truth(drawn, BEGAN_MS)
    table = ResultTable({window: (net, 0.0) for window, net in truth.items()}, truth, truth)
    assert judge_table(table, 60.0, truth)["wrong"] == 0
    window = next(iter(truth))
    assert judge_table(table, 60.0, truth + Windows({window: 1}))["wrong"] == 1
    lost = replace(drawn, records=drawn.records.part(np.arange(1, len(drawn.records))))
    assert judge_table(table, 60.0, drawn_truth(lost, BEGAN_MS))["wrong"] == 1
    missing = table._replace(shown={one: told for one, told in table.shown.items() if one != window})
    found = judge_table(missing, 60.0, truth)
    assert found["wrong"] == found["unlike"] == 1 and found["exact"] is False


def test_errors_are_those_of_all_windows_beside_their_bounds():
    a, b, c = (("g", start) for start in (0, 10, 20))
    error, bound = errors_of({a: (9.0, 2.0), b: (3.0, 0.0)}, Windows({a: 10, b: 3, c: 4}))
    assert error.tolist() == [1.0, 0.0, 4.0] and bound.tolist() == [2.0, 0.0, 0.0]
    assert errors_of({}, Windows({c: 4}), absent=5.0)[1].tolist() == [5.0]
