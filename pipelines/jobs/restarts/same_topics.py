"""A run goes on at the topics on which it began: those of another cluster have other records at the same offsets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from configs.errors import CorrectableError
from configs.sections import Kafka
from pipelines.jobs.launch import RunFileError, damaged_file, move_away
from pipelines.kafka.topics import topic_id
from pipelines.whole_json import write_json


class OtherTopicsError(CorrectableError, RuntimeError):
    """A run began on topics of another cluster, or on ones that were made anew since; the message says what to do."""


def refuse_other_topics(kafka: Kafka, run_dir: Path, job: str, topics: Sequence[str], command: str = "") -> None:
    """Refuse to go on where a topic's id, which the broker gave it, is not the one that was noted at the first start.

    The first start notes them in `<job>.topics.json`; so does that of a run which began without, under an earlier
    release.

    Args:
        kafka: the broker.
        run_dir: folder of the run, which exists.
        job: name of the job.
        topics: that it reads and writes, without the prefix.
        command: that starts the job again whenever it ends: to be ended before the folder is moved; "": there is none.

    Raises:
        OtherTopicsError: as said.
        BrokerError, kafka.errors.KafkaError: the broker does not answer, or has no such topic.
        OSError: the file cannot be read or written.
        RunFileError: it is damaged.
    """
    file, now = run_dir / f"{job}.topics.json", {topic: topic_id(kafka, topic) for topic in topics}
    try:
        known = json.loads(file.read_text()) if file.is_file() else {}
    except ValueError as error:
        anew = f"If {kafka.bootstrap} has the topics on which the run began, note them anew"
        raise RunFileError(damaged_file(file, error, f"{anew}: rm {shlex.quote(str(file))}")) from None
    if other := [kafka.topic(topic) for topic in topics if known.get(topic, now[topic]) != now[topic]]:
        first = f", end `{command}`, then" if command else ""
        raise OtherTopicsError(
            f"{job}: {', '.join(other)} at {kafka.bootstrap}: not the topics on which {run_dir} began, but ones of "
            "another cluster, or made anew. Its checkpoint names offsets, at which these have other records or none. "
            "Name the cluster that has the old ones, or bring them there as they were (those of the embedded broker: "
            f"`tidecast restore FILE --only kafka`). To begin anew, on what is sent from then on{first}:\n  "
            f"{move_away(run_dir)}\n"
            f"Only where every record has the offset that it had before: rm {shlex.quote(str(file))}"
        )
    if known != now:
        write_json(file, now)
