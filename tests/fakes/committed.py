"""What readers of committed records see of a topic."""

from confluent_kafka import Consumer, TopicPartition


def committed_records(kafka, topic):
    """Keys and values, as texts, of a topic that is named without the prefix; in order per partition."""
    reader = Consumer({
        "bootstrap.servers": kafka.bootstrap, "group.id": "reads", "isolation.level": "read_committed",
        "enable.auto.commit": False, "enable.partition.eof": True,
    })  # fmt: skip
    partitions = [TopicPartition(kafka.topic(topic), p, 0) for p in range(kafka.event_partitions)]
    reader.assign(partitions)
    found, ended = [], set()
    while len(ended) < len(partitions):
        message = reader.poll(30)
        assert message is not None, f"{topic}: nothing more came, {len(found)} records were read"
        if message.error():
            ended.add(message.partition())
        else:
            key, value = message.key(), message.value()
            found.append((None if key is None else key.decode(), value.decode()))
    reader.close()
    return found
