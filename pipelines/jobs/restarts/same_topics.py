"""A run goes on at the topics on which it began, with all that it had read of them.

Those of another cluster have other records at the same offsets, and so have, once they grow again, those that were
brought back from a backup which is older than the run's checkpoint.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from configs.errors import CorrectableError
from configs.sections import Kafka
from pipelines.jobs.launch import RunFileError, damaged_file, move_away
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.topics import topic_id
from pipelines.spark.checkpoint.files import Checkpoint
from pipelines.whole_file import write_json


class OtherTopicsError(CorrectableError, RuntimeError):
    """A run began on topics of another cluster, or ones that were made anew or lost records; what to do is said."""


def refuse_other_topics(
    kafka: Kafka, run_dir: Path, job: str, topics: Sequence[str], checkpoint: Path, command: str = ""
) -> None:
    """Refuse to go on where a topic's id, which the broker gave it, is not the one that was noted at the first start.

    The first start notes them in `<job>.topics.json`; so does that of a run which began without, under an earlier
    release. Likewise where a topic ends before what the checkpoint has planned to read of it. That is noted, too: it
    will grow past that, with other records.

    Args:
        kafka: the broker.
        run_dir: folder of the run, which exists.
        job: name of the job.
        topics: that it reads and writes, without the prefix.
        checkpoint: of its query; it may not exist yet.
        command: that starts the job again whenever it ends: to be ended before the folder is moved; "": there is none.

    Raises:
        OtherTopicsError: as said.
        BrokerError: the broker does not answer, or has no such topic.
        OSError: the file cannot be read or written.
        RunFileError: it is damaged.
    """
    file, now = run_dir / f"{job}.topics.json", {topic: topic_id(kafka, topic) for topic in topics}
    try:
        known = json.loads(file.read_text()) if file.is_file() else {}
    except ValueError as error:
        anew = f"If {kafka.bootstrap} has the topics on which the run began, note them anew"
        raise RunFileError(damaged_file(file, error, f"{anew}: rm {shlex.quote(str(file))}")) from None
    same = [topic for topic in topics if known.get(topic, now[topic]) == now[topic]]
    short = _ends_too_soon(kafka, same, checkpoint)
    if other := [kafka.topic(topic) + short.get(topic, "") for topic in topics if topic in short or topic not in same]:
        if noted := short.keys() & known.keys():
            write_json(file, {**known, **dict.fromkeys(noted, "older than the checkpoint")})
        first = f", end `{command}`, then" if command else ""
        raise OtherTopicsError(
            f"{job}: {', '.join(other)} at {kafka.bootstrap}: not the topics on which {run_dir} began, but ones of "
            "another cluster, made anew, or brought back older than its checkpoint. That names offsets, at which these "
            "have other records or none. Name the cluster that has the old ones, or bring them there as they were (to "
            "the embedded broker: `tidecast restore FILE --only kafka`). To begin anew, on what is sent from then on"
            f"{first}:\n  {move_away(run_dir)}\n"
            f"Only where every record has the offset that it had before: rm {shlex.quote(str(file))}"
        )
    if known != now:
        write_json(file, now)


def _ends_too_soon(kafka: Kafka, topics: Sequence[str], checkpoint: Path) -> dict[str, str]:
    """Say of each topic that ends before what is planned of it where that is."""
    anew = checkpoint.parent.glob(f"{checkpoint.name}.[0-9]*")  # of a query that begins anew after an outage
    planned = [Checkpoint(one).planned() for one in (checkpoint, *anew)]
    found = {}
    for topic in topics:
        wanted = [(p, offset) for one in planned for (name, p), offset in one.items() if name == kafka.topic(topic)]
        ends = {p: end for p, (_, end) in topic_offsets(kafka, topic).items()} if wanted else {}
        for p, offset in wanted:
            if offset > (end := ends.get(p, 0)):
                found[topic] = f" (ends at offset {end} of partition {p}, and {offset} was planned)"
    return found
