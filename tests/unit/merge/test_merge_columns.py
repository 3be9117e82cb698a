import pytest

from tests.fakes.clock import clock_with
from tidecast.merge import upsert
from tidecast.merge.columns import BATCHES, MergeError, identifier, quoted, version_of
from tidecast.merge.upsert import is_conflict, retried


def test_versions_rise_with_batches_and_with_epochs():
    versions = [version_of(0, 0), version_of(0, 1), version_of(0, BATCHES - 1), version_of(1, 0), version_of(2, 7)]
    assert versions == sorted({*versions})
    assert version_of((1 << 22) - 1, BATCHES - 1) < 2**63


@pytest.mark.parametrize(("epoch", "batch"), [(-1, 0), (1 << 22, 0), (0, -1), (0, BATCHES)])
def test_versions_out_of_range_are_refused(epoch, batch):
    with pytest.raises(MergeError, match=r"from 0 on|0 or more"):
        version_of(epoch, batch)


def test_names_as_sql_takes_them():
    assert quoted("a`b") == "`a``b`"
    assert identifier("/lake/my `orders`") == "delta.`/lake/my ``orders```"
    assert identifier("sales.hourly") == "`sales`.`hourly`"


def test_a_conflict_is_tried_again_from_the_beginning_and_nothing_else_is(monkeypatch):
    waits = []
    monkeypatch.setattr(upsert, "time", clock_with(sleep=waits.append))
    errors = [Exception("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] x"), Exception("[DELTA_METADATA_CHANGED] y")]

    def action():
        if errors:
            raise errors.pop(0)
        return "done"

    assert retried(action, 3) == "done" and waits == [0.1, 0.2]
    errors[:] = [Exception("[DELTA_CONCURRENT_DELETE_READ] x")] * 3
    with pytest.raises(Exception, match="DELETE_READ"):
        retried(action, 2)
    errors[:] = [OSError("No space left on device")]
    with pytest.raises(OSError, match="space"):
        retried(action, 9)
    assert not is_conflict(ValueError("delta"))
