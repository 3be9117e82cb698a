"""Where the query reads from, out of its own plan: topics, broker and security options."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tidecast.connection.security import from_spark
from tidecast.spark.cluster import Cluster

log = logging.getLogger("tidecast")

BOOTSTRAP = "kafka.bootstrap.servers"
Place = tuple[str, Mapping[str, Any]]
"""A broker's address, and kafka-python's security options for it."""


def sources(cluster: Cluster) -> list[Mapping[str, str]]:
    """Return the options of the query's Kafka sources that read the same broker as the first one.

    Empty if there are none or the plan cannot be read; that, and further brokers, are logged as warnings.
    """
    try:
        found = cluster.source_options()
    except Exception as error:  # private API: what is not found there comes from the arguments and the first batch
        log.warning("the query's sources cannot be read from its plan: %r", error)
        return []
    here = [source for source in found if source[BOOTSTRAP] == found[0][BOOTSTRAP]]
    if len(here) < len(found):
        log.warning("the query reads several brokers; arrivals and lag are those at %s", found[0][BOOTSTRAP])
    return here


def places(
    address: str, security: Mapping[str, Any] | None, own: str,
    source_security: Mapping[str, Any] | None, found: Sequence[Mapping[str, str]],
) -> tuple[Place, Place]:  # fmt: skip
    """Choose address and security options of Tidecast's broker and of the one that the query reads.

    Where both addresses are the same, the options of one serve for the other too. Source options that cannot be
    translated are logged and left out.

    Args:
        address: Tidecast's broker, `host:port`.
        security: kafka-python's options for it, as given; None if not given.
        own: broker of the query's source.
        source_security: kafka-python's options for that, as given; None if not given.
        found: options of the query's Kafka sources, as from `sources`.

    Returns:
        (address, options) of Tidecast's broker, then of the source's.

    Raises:
        ssl.SSLError: the source's inline truststore is no valid PEM.
    """
    read: Mapping[str, Any] | None = source_security
    if read is None and security is not None and own == address:
        read = security
    if read is None:
        try:
            read = from_spark(found[0]) if found else {}
        except ValueError as error:
            log.warning("arrivals at %s cannot be read with the query's own options: %s", own, error)
            read = {}
    return (address, security if security is not None else read if own == address else {}), (own, read)


def subscribed(found: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the sorted topics in the sources' `subscribe` option; empty if any source uses a pattern or an assignment.

    The first batch then shows the topics.
    """
    if any("subscribe" not in source for source in found):
        return []
    return sorted({topic.strip() for source in found for topic in source["subscribe"].split(",")})
