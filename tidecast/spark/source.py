"""Where the query reads from, out of its own plan: topics, broker and security options."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tidecast.connection.security import translate_spark_options
from tidecast.spark.cluster import Cluster

log = logging.getLogger("tidecast")

BOOTSTRAP = "kafka.bootstrap.servers"
Endpoint = tuple[str, Mapping[str, Any]]
"""A broker's address, and kafka-python's security options for it."""


def kafka_sources(cluster: Cluster) -> list[Mapping[str, str]]:
    """Return the options of each of the query's Kafka sources, as the user gave them, keys in lower case.

    Sources at another broker than the first one's are left out, with a warning in the log. Empty if there are none, or,
    with a warning too, if the query's plan cannot be read.
    """
    try:
        sources = cluster.kafka_source_options()
    except Exception as error:  # private API: what is missing here comes from the arguments and the first batch
        log.warning("the query's sources cannot be read from its plan: %r", error)
        return []
    at_first_broker = [source for source in sources if source[BOOTSTRAP] == sources[0][BOOTSTRAP]]
    if len(at_first_broker) < len(sources):
        log.warning("the query reads several brokers; arrivals and lag are those at %s", sources[0][BOOTSTRAP])
    return at_first_broker


def choose_brokers(
    address: str, security: Mapping[str, Any] | None, source_address: str,
    source_security: Mapping[str, Any] | None, source_options: Sequence[Mapping[str, str]],
) -> tuple[Endpoint, Endpoint]:  # fmt: skip
    """Pair the addresses of Tidecast's broker and of the one that the query reads with security options for each.

    Options that are not given are the other broker's if both addresses are the same, else, for the source's broker,
    those of the query's first Kafka source; if these cannot be translated, that is logged and there are none.

    Args:
        address: Tidecast's broker, `host:port`.
        security: kafka-python's options for it; None if not given.
        source_address: the query's broker, `host:port`.
        source_security: kafka-python's options for it; None if not given.
        source_options: Spark's options of the query's Kafka sources, as `kafka_sources` returns them.

    Returns:
        (address, kafka-python's options) of Tidecast's broker, then of the query's.
    """
    same = source_address == address
    if source_security is None and same:
        source_security = security
    if source_security is None:
        try:
            source_security = translate_spark_options(source_options[0]) if source_options else {}
        except (ValueError, OSError) as error:
            log.warning("arrivals at %s cannot be read with the query's own options: %s", source_address, error)
            source_security = {}
    if security is None:
        security = source_security if same else {}
    return (address, security), (source_address, source_security)


def subscribed_topics(sources: Sequence[Mapping[str, str]]) -> list[str]:
    """List the topics in the sources' `subscribe` options, sorted; empty if a source has a pattern or an assignment."""
    if any("subscribe" not in source for source in sources):
        return []
    return sorted({topic.strip() for source in sources for topic in source["subscribe"].split(",")})
