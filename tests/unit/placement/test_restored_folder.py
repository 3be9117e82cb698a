"""A job's folder that is older than what its queries have sent, or of which that is forgotten, is refused by name."""

import shlex
import subprocess
from pathlib import Path

import pytest

from configs.sections import Kafka
from configs.settings import ROOT
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Placement
from pipelines.kafka.transactions import BatchMark, SupersededError
from pipelines.placement.job_folder import JobFolder, checkpoint_of
from pipelines.placement.restored import RestoredError, claim_sink
from pipelines.placement.topic_sink import BlockSink

KAFKA = Kafka(bootstrap="broker:9092")
ONE = Placement((Block(("parse", "views", "project", "join", "count"), "east", 1, 1.0, 1.0),), 1.0, 1.0, True)


class FakeWriter:
    """Of a part, as the broker knows it."""

    marks = ()

    def __init__(self, kafka, query, part, epoch, marks):
        self._part, self._epoch = part, epoch

    def has_mark(self):
        return self.marks[self._part] is not None

    def claim(self):
        next_batch, epoch = self.marks[self._part] or (0, 0)
        if epoch > self._epoch:
            raise SupersededError(f"part {self._part} is written by epoch {epoch}")
        return BatchMark(next_batch, self._epoch)


@pytest.fixture
def claimed(tmp_path, monkeypatch):
    """Claims for the job's only query, of which the broker knows marks; batches are in its checkpoint's plan."""
    folder = JobFolder(tmp_path / "adverts")
    folder.begin(ROOT / "configs" / "topologies" / "adverts.yaml", ONE)
    epoch = folder.begin_epoch(applications_of(folder.topology(), ONE)[0])
    monkeypatch.setattr("pipelines.kafka.transactions.BatchWriter", FakeWriter)

    def claim(marks, planned=(), done=()):
        monkeypatch.setattr(FakeWriter, "marks", marks)
        for log, batches in (("offsets", planned), ("commits", done)):
            for batch in batches:
                file = checkpoint_of(epoch) / log / str(batch)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        claim_sink(BlockSink("adverts.parse.x", epoch.number, "adverts.count", len(marks)), KAFKA, folder, epoch)

    return folder, epoch, claim


def test_a_first_start_and_one_after_a_batch_that_was_planned_sent_or_done_go_on(claimed):
    _, _, claim = claimed
    claim([(0, 0), (0, 0)])
    claim([(7, 1), (8, 1)], planned=(7, 8))  # a part that had no records of the last batch is behind
    claim([(9, 1), (9, 1)])


def test_a_checkpoint_that_is_older_than_what_was_sent_is_refused_with_the_command_that_begins_anew(claimed):
    folder, epoch, claim = claimed
    with pytest.raises(
        RestoredError, match=rf"^adverts.parse: .*{epoch.folder} ends with batch 8, and batch 9 was sent"
    ):
        claim([(3, 1), (10, 1)], planned=(7, 8))
    with pytest.raises(RestoredError) as refused:
        claim([(3, 1), (10, 1)])
    command = str(refused.value).splitlines()[-1]
    assert shlex.split(command) == ["mv", str(folder.path), f"{folder.path}.damaged-1"]
    assert "end `tidecast job up adverts`, then" in str(refused.value)


def test_a_checkpoint_that_has_gone_is_no_new_beginning(claimed):
    _, _, claim = claimed
    with pytest.raises(RestoredError, match="ends with batch -1, and batch 0 was sent"):
        claim([(1, 1)])


def test_an_epoch_of_which_the_folder_knows_nothing_was_a_move_after_its_backup(claimed):
    folder, _, claim = claimed
    with pytest.raises(RestoredError, match=r"an epoch after 1 has sent for it, and .* knows of none: it was restored"):
        claim([(3, 1), (3, 2)], planned=(2,))
    folder.begin_epoch(applications_of(folder.topology(), ONE)[0])  # moved meanwhile: whoever asks is the old one
    with pytest.raises(SupersededError):
        claim([(3, 1), (3, 2)])


def test_a_broker_that_has_forgotten_what_was_sent_is_named_where_the_last_batch_may_have_been(claimed):
    folder, _, claim = claimed
    with pytest.raises(RestoredError, match=r"forgotten .*batch 8, .* twice.*`offsets.retention.minutes`") as refused:
        claim([None, None], planned=(7, 8), done=(7,))
    assert shlex.split(str(refused.value).splitlines()[-1])[:2] == ["mv", str(folder.path)]
    with pytest.raises(RestoredError, match="forgotten"):  # a batch is planned only after each part had a mark
        claim([None, None], planned=(0,))


def test_one_batch_that_may_be_sent_twice_is_accepted_once_by_the_command_that_the_refusal_names(claimed):
    _, epoch, claim = claimed

    def refused(*planned):
        with pytest.raises(RestoredError, match="To go on at the next try, whether or not this one") as error:
            claim([None, None], planned=planned, done=(7,))
        (line,) = (line for line in str(error.value).splitlines() if line.startswith("  touch "))
        return shlex.split(line)

    command = refused(7, 8)
    assert Path(command[1]).parent == epoch.folder
    subprocess.run(command, check=True)
    refused(9)  # another batch
    (checkpoint_of(epoch) / "offsets" / "9").unlink()
    claim([None, None])
    assert refused(8) == command  # forgotten again


def test_marks_that_are_not_needed_or_of_a_part_that_was_long_idle_may_be_forgotten(claimed):
    _, _, claim = claimed
    claim([(0, 0), (0, 0)], planned=(0,))  # the first batch: no part has sent
    claim([(9, 1), (0, 0)], planned=(7, 8), done=(7,))
