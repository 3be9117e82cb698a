"""Ports of the embedded services on the loopback, and the way to them past a proxy."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, MutableMapping

import psutil

from configs.errors import CorrectableError
from configs.sections import Ports
from pipelines.stack.processes import name_process

HOST = "127.0.0.1"
# Below the ranges from which Linux (32768) and macOS (49152) take the local ends of outgoing connections, so that
# nothing else is given a chosen port before its service listens.
_RANGE = range(20_000, 32_000)
_SPARED = ("no_proxy", "NO_PROXY")


class PortError(CorrectableError, RuntimeError):
    """A port cannot be had; the message names the port, its setting and who holds it."""


def bypass_proxies(environment: MutableMapping[str, str]) -> None:
    """Have HTTP clients that read these variables ask the loopback itself, where they name a proxy for other hosts.

    For this process and the children that it starts from now on: `no_proxy` and `NO_PROXY` get 127.0.0.1 and localhost
    where they lack them. Where no proxy is named nothing changes.
    """
    named = any(value and name.lower().endswith("_proxy") for name, value in environment.items() if name not in _SPARED)
    listed = next((value for name in _SPARED if (value := environment.get(name))), "")
    spared = [host.strip() for host in listed.split(",") if host.strip()]
    if named and "*" not in spared:
        spared += [host for host in (HOST, "localhost") if host not in spared]
        environment.update(dict.fromkeys(_SPARED, ",".join(spared)))


def choose_ports(ports: Ports, names: Iterable[str]) -> dict[str, int]:
    """Choose a port on 127.0.0.1 for every name: the one in the settings, or, where that is 0, a free one.

    Every port is opened once to see that it is free, and closed again. Free ones are drawn from 20000 to 31999.

    Args:
        ports: the settings.
        names: fields of `Ports`.

    Raises:
        PortError: a port is in use, is named twice, or may not be opened, or 200 tries found no free one.
        AttributeError: a name that is no field of `Ports`.
    """
    held: dict[str, socket.socket] = {}
    try:
        for name in sorted(names, key=lambda n: getattr(ports, n) == 0):  # the fixed ones first
            wanted = getattr(ports, name)
            held[name] = _hold(name, wanted, held) if wanted else _hold_any()
        return {name: sock.getsockname()[1] for name, sock in held.items()}
    finally:
        for sock in held.values():
            sock.close()


def describe_listener(port: int) -> str | None:
    """Return "process PID (COMMAND LINE)" of what listens on a TCP port, the command line cut at 120 characters.

    None where nothing listens, or this user may not see what does; without the command line where only that is hidden.
    """
    try:
        connections = psutil.net_connections(kind="inet")
    except (psutil.AccessDenied, OSError):  # macOS shows other people's sockets to root only
        return None
    listening = (c for c in connections if c.laddr and c.status == psutil.CONN_LISTEN and c.pid)
    pid = next((c.pid for c in listening if c.laddr.port == port), None)
    return None if pid is None else name_process(pid)


def _hold(name: str, port: int, held: dict[str, socket.socket]) -> socket.socket:
    setting = f"TIDECAST_PORTS__{name.upper()}"
    for other, sock in held.items():
        if sock.getsockname()[1] == port:
            raise PortError(
                f"{setting}={port}: TIDECAST_PORTS__{other.upper()} names the same port. Give one of them another."
            )
    try:
        return _bind(port)
    except PermissionError:
        raise PortError(f"{setting}={port}: this user may not open that port. Choose one above 1023, or 0.") from None
    except OSError:
        by = describe_listener(port)
        held_by = f"in use by {by}" if by else "in use"
        raise PortError(
            f"{setting}={port}: the port is {held_by}. End that, or choose another port; 0 takes any free one."
        ) from None


def _hold_any() -> socket.socket:
    for port in random.sample(_RANGE, 200):
        try:
            return _bind(port)
        except OSError:
            continue
    raise PortError(
        f"no free port found between {_RANGE.start} and {_RANGE.stop} in 200 tries. "
        "Name ports by TIDECAST_PORTS__<NAME>."
    )


def _bind(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # As Java and uvicorn do: connections of an ended service that linger in TIME_WAIT do not count as use.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
        # A listener on all interfaces does not always stop the bind above, but it stops this.
        sock.listen(1)
    except BaseException:
        sock.close()
        raise
    return sock
