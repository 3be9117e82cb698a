"""`tidecast codecs`: which codec a topic's records would be compressed by, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import settings_of_stack

TOPICS = ["events", "results", "windows"]


def codecs(
    topics: Annotated[
        list[str] | None, typer.Argument(help="Topics, without the prefix; default: what jobs read and write.")
    ] = None,
) -> None:
    """Say which codec a query that starts now would compress a topic's records by, with the price of each.

    Measures every codec that all of Tidecast's readers can decompress here on the newest records, as a managed job does
    when it starts; a job's own choice stands in its log. Cores are priced by how busy they are now. The network is not
    measured: it is taken as idle, at 125 MB/s. On a busy one a codec that leaves fewer bytes is worth more.

    Raises:
        BrokerError: no broker is known (status 2).
    """
    from pipelines.kafka.compression import NONE, chosen_codec, readable
    from pipelines.kafka.connection import bootstrap_address

    kafka = settings_of_stack().kafka
    bootstrap_address(kafka)
    print(f"candidates: {', '.join(readable())}")
    for topic in topics or TOPICS:
        found = chosen_codec(kafka, topic, NONE)
        print(f"{topic}: {found.name}; {found.why}")
