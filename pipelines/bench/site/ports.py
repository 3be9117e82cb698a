"""Free ports of the loopback, for neighbours that are not parts of the embedded stack."""

from configs.sections import Ports
from pipelines.stack.ports import choose_ports


def free_ports(count: int) -> list[int]:
    """Return so many free ports, at most as many as the embedded stack has parts that need one.

    Raises:
        PortError: no free one was found.
    """
    return list(choose_ports(Ports(), list(Ports.model_fields)[:count]).values())
