"""What readers of committed records see of a topic, as texts."""

from pipelines.kafka.committed import read_committed


def committed_records(kafka, topic):
    """Keys and values of a topic that is named without the prefix; in order per partition."""
    return [(None if key is None else key.decode(), value.decode()) for key, value, _ in read_committed(kafka, topic)]
