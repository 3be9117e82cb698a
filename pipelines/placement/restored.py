"""A job's folder and broker of which one does not know what the other does: records would be lost, or sent twice."""

from __future__ import annotations

import shlex
from typing import Protocol

from configs.errors import CorrectableError
from configs.sections import Kafka
from pipelines.kafka.transactions import BatchMark, SupersededError
from pipelines.placement.job_folder import JobFolder, checkpoint_of
from pipelines.placement.watched_block import BlockEpoch
from pipelines.spark.checkpoint.files import Checkpoint
from pipelines.spark.checkpoint.repair import free_name


class RestoredError(CorrectableError, RuntimeError):
    """The broker knows of more than a job's folder, or has forgotten it; the message says of what, and what to do."""


class ClaimedSink(Protocol):
    """Where a block sends: a `BlockSink`."""

    def has_marks(self, kafka: Kafka) -> bool:
        """Return whether the broker knows of any part what was sent last."""

    def claim(self, kafka: Kafka) -> list[BatchMark]:
        """Shut out whoever wrote with a lower epoch, and return the mark of each part."""


def claim_sink(sink: ClaimedSink, kafka: Kafka, folder: JobFolder, epoch: BlockEpoch) -> None:
    """Shut out whoever ran a block before, unless its folder is older than what was sent, or that is forgotten.

    A query plans a batch in its checkpoint before it sends any of it. So a mark beyond the newest batch there is of
    batches that the checkpoint has forgotten: it would plan others under their numbers, and each share of these would
    be left out as sent before. Without any mark, which a first start leaves for each part, nobody knows of a batch that
    was planned last and not committed whether it was sent. Who accepts that it is sent twice says so by a file of its
    number beside the checkpoint, which counts once.

    Args:
        sink: of the block.
        kafka: the broker.
        folder: of the job.
        epoch: of the block, the newest in the folder.

    Raises:
        RestoredError: batches, or a whole epoch, were sent of which the folder does not know; or the broker has
            forgotten what was sent.
        SupersededError: the block was moved meanwhile.
        BrokerError: the broker refuses or does not answer.
    """
    name, topology = epoch.block.name, folder.topology().name
    aside = shlex.join(["mv", f"{folder.path.resolve()}", f"{free_name(folder.path.resolve())}"])
    end = f"end `tidecast job up {topology}`, then\n  {aside}"
    remedy = (
        "To begin the job anew, on what is sent from then on, or to bring a newer backup of the folder back afterwards "
        f"(`tidecast restore FILE --only jobs/{folder.path.name}`): {end}"
    )
    known = Checkpoint(checkpoint_of(epoch))
    planned, done = (max(batches, default=-1) for batches in (known.offsets, known.commits))
    accepted = epoch.folder / f"send_again.{planned}"
    if planned > done and not accepted.exists() and not sink.has_marks(kafka):
        touch = shlex.join(["touch", f"{accepted.resolve()}"])
        raise RestoredError(
            f"{name}: the broker has forgotten which of its batches were sent, so batch {planned}, which was planned "
            "last, may be sent twice. It forgets that after `offsets.retention.minutes` without a batch, by default "
            "seven days: set ten years there (5256000). To go on at the next try, whether or not this one batch comes "
            f"twice:\n  {touch}\nTo begin the job anew, on what is sent from then on: {end}"
        )
    try:
        marks = sink.claim(kafka)
    except SupersededError:
        newest = folder.newest(name)
        if newest is not None and newest.number > epoch.number:
            raise
        raise RestoredError(
            f"{name}: an epoch after {epoch.number} has sent for it, and {folder.path} knows of none: it was restored "
            f"from a backup of before a move, or a copy of it runs elsewhere, which is to go on alone. {remedy}"
        ) from None
    sent = max(mark.next_batch for mark in marks) - 1
    if sent > planned:
        raise RestoredError(
            f"{name}: its checkpoint in {epoch.folder} ends with batch {planned}, and batch {sent} was sent: the "
            "checkpoint is older than that (restored from a backup, or repaired). What it reads next would be left out "
            f"as sent before. {remedy}"
        )
    accepted.unlink(missing_ok=True)
