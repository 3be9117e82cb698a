"""Says to Airflow's OpenLineage provider what our tasks touch, and gives it some seconds more when a task ends.

Where events are sent beside the task (the transport `async_http`), nobody waits for them, and a task's last ones would
end with its process. Its state is known by then, so that nothing of the DAG's run waits here. Where it is told no
address this imports nothing of ours, as every process of Airflow loads it.
"""

from typing import Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin
from airflow.providers.openlineage import conf

LAST_S = 5.0
"""Seconds for which a task that has ended holds its place for events that nobody takes."""


class LastEvents:
    """Waits for the events of a task that ends."""

    @hookimpl
    def before_stopping(self, component: Any) -> None:
        """Wait until they are sent, for `LAST_S` at most."""
        from airflow.providers.openlineage.plugins.listener import get_openlineage_listener
        from airflow.sdk.execution_time.task_runner import TaskRunnerMarker

        if isinstance(component, TaskRunnerMarker):
            transport = get_openlineage_listener().adapter.get_or_create_openlineage_client().transport
            if hasattr(transport, "wait_for_completion"):  # the others have sent what they were given
                transport.wait_for_completion(LAST_S)


def listeners() -> list[Any]:
    """Make the provider ask `dags.lineage` for datasets; returns the listener, or none where no address is set."""
    if conf.is_disabled():
        return []
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    from dags.lineage import TaskLineage

    TaskLineage.register(get_openlineage_listener().extractor_manager)
    return [LastEvents()]


class TidecastLineage(AirflowPlugin):
    """A listener, where OpenLineage is told where events go."""

    name = "tidecast_lineage"
    listeners = listeners()
