"""What stands on disk of a query's epochs and its checkpoint, and what is no such thing."""

import json

import pytest

from tidecast.orders import ReplayOrder
from tidecast.recovery.checkpoint import RecoveryError, read_committed
from tidecast.recovery.epochs import LiveEpoch, checkpoint_of, read_epochs, write_epochs

ORDER = ReplayOrder(
    "gap-3", "orders", 5.0, "run", {"events": {"0": 1}}, {"events": {"0": 9}}, begin_ms=1, end_ms=9, holds=7,
    open_ms=4, open_starts={"events": {"0": 3}},
)  # fmt: skip


def test_epochs_come_back_as_they_were_written(tmp_path):
    root = tmp_path / "live"
    assert read_epochs(root) == [] and checkpoint_of(root, []) == root
    epochs = [LiveEpoch(3, 8_000, 12.5, ORDER)]
    write_epochs(root, epochs)
    assert read_epochs(root) == epochs and checkpoint_of(root, epochs) == tmp_path / "live.3"
    (tmp_path / "live.epochs.json").write_text('[{"number": 3}]')
    with pytest.raises(RecoveryError, match=r"live\.epochs\.json is no list of epochs .*: restore it"):
        read_epochs(root)


def checkpoint(folder, lines, commits=(3, 12)):
    for name in ("commits", "offsets"):
        (folder / name).mkdir(parents=True)
    for number in commits:
        (folder / "commits" / str(number)).write_text("v1\n{}")
        (folder / "commits" / f".{number}.crc").touch()
    (folder / "offsets" / "12").write_text("\n".join(lines))
    (folder / "offsets" / "13").write_text("planned, and not committed")
    return folder


BATCH = json.dumps({"batchWatermarkMs": 940_000, "batchTimestampMs": 1_000_500, "conf": {}})


def test_a_checkpoint_tells_the_last_committed_batch(tmp_path):
    assert read_committed(tmp_path / "none") is None
    known = read_committed(checkpoint(tmp_path / "live", ["v1", BATCH, '{"events":{"0":7,"1":9}}']))
    assert known.batch == 12 and known.at_s == 1_000.5 and known.watermark_ms == 940_000
    assert known.offsets == {("events", 0): 7, ("events", 1): 9}


@pytest.mark.parametrize(("lines", "words"), [
    (["v2", BATCH, "{}"], "is of version 'v2', 'v1' is known: recover in_order"),
    (["v1", BATCH, '{"a":{"0":1}}', '{"b":{"0":1}}'], "the offsets of 2 sources: one Kafka source is expected"),
    (["v1", BATCH, '{"logOffset":3}'], "one Kafka source is expected"),
    ([], "is of version ''"),
])  # fmt: skip
def test_a_checkpoint_of_something_else_is_refused(tmp_path, lines, words):
    with pytest.raises(RecoveryError, match=words):
        read_committed(checkpoint(tmp_path / "live", lines))
