"""`python -m pipelines.stack.broker_archive`: a broker does a little of all that ours do, and archives its classes.

Once per Java and class path; some seconds. Without it everything works; a broker starts 2 s of CPU later.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from configs.sections import Kafka, Ports
from configs.settings import load
from pipelines.kafka.broker import read_records
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.kafka.transactions import BatchWriter, OutRecord
from pipelines.spark import class_archive
from pipelines.stack.services.kafka import broker_jars
from pipelines.stack.stack import Stack

_DUMP_S = 180.0
_TERMINATED = 128 + 15
"""Exit status of a JVM that was asked to end, and did so in order."""


def write_archive() -> Path:
    """Write the class archive (AppCDS) that later brokers of this computer map; returns its path.

    Starts a broker on free ports, with a folder of its own, and ends it. Replaces an archive only by a complete one,
    and then removes those of other versions.

    Raises:
        StackError, PortError, JavaError, JarsError, ProcessError: the broker does not start.
        BrokerError, kafka.errors.KafkaError: it does not answer.
        OSError: a folder cannot be written, or the broker left no archive.
    """
    archive = class_archive.broker_archive_path(broker_jars())
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(".new")
    option = class_archive.write_option(fresh)
    with tempfile.TemporaryDirectory() as folder:
        own = load(var=Path(folder)).model_copy(update={"kafka": Kafka(), "ports": Ports(broker=0, controller=0)})
        with Stack(own, {"broker"}, given={"JDK_JAVA_OPTIONS": option}) as stack:
            kafka = stack.settings.kafka
            create_topics(kafka)
            publisher = Publisher(kafka)
            publisher.send_bytes("events", b"key", b"value")
            publisher.close()
            BatchWriter(kafka, "archive", 0, 1, "results").send(0, [OutRecord("results", b"key", b"value")])
            list(read_records(kafka, "events"))
            status = stack.end("broker", _DUMP_S)
    if status != _TERMINATED:  # it could not write all; a file that is cut short would crash whoever maps it
        fresh.unlink(missing_ok=True)
        raise OSError(f"the broker ended with {status} while it wrote {fresh}. Is the disk full?")
    class_archive.replace_archive(archive, fresh)
    return archive


def main() -> int:
    """Write the archive unless it is there. Returns 0 also where none was written, because nothing depends on it."""
    try:
        if not class_archive.broker_archive_path(broker_jars()).is_file():
            write_archive()
    except Exception as error:  # whatever of the broker it was: a set-up that fails over this would cost more
        print(f"no class archive of the broker was written, so that it starts more slowly: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
