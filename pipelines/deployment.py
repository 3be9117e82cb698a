"""Which deployment speaks on a topic: told apart by a name in its folder `var`, which all of its processes share."""

from __future__ import annotations

import secrets
import socket
import time
from contextlib import suppress
from pathlib import Path

NAME = "deployment"
WRITTEN_S, LOOK_S = 2.0, 0.05
"""Seconds within which another process has written the file that it made, and between two looks."""


def deployment_name(var: Path) -> str:
    """Return the name of the deployment of a folder `var`, `<host>-<8 hexadecimal digits>`; made when first asked for.

    Raises:
        OSError: the file `deployment` in it cannot be read or written.
    """
    file = var / NAME
    var.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), file.open("x", encoding="utf-8") as made:
        made.write(f"{socket.gethostname()}-{secrets.token_hex(4)}")
    until = time.monotonic() + WRITTEN_S
    while not (name := file.read_text(encoding="utf-8").strip()) and time.monotonic() < until:
        time.sleep(LOOK_S)
    return name or socket.gethostname()
