"""What Hadoop's configuration names: YARN's ResourceManager, and whether it answers, and Spark's file system."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
FILE, CORE = "yarn-site.xml", "core-site.xml"
ANSWERS_S = 2.0
_NAME = "yarn.resourcemanager"
_PORT = 8032
_REFERENCE = re.compile(r"\$\{([^}]+)\}")


def silent_manager() -> str | None:
    """Say that no ResourceManager accepts a connection, and what helps; None: one does, or none is known.

    YARN's client tries on in silence. Blocks for at most ANSWERS_S (2 s) per address.
    """
    folder = _folder()
    if folder is None:
        return None
    with suppress(OSError, ElementTree.ParseError, ValueError):
        addresses = manager_addresses(folder / FILE)
        if not any(_accepts(one) for one in addresses):
            return (
                f"Nobody accepts connections at {' or '.join(addresses)}, its ResourceManager by {folder / FILE}: "
                "start it, or name another configuration by HADOOP_CONF_DIR."
            )
    return None


def manager_addresses(file: Path) -> list[str]:
    """Return `host:port` of each ResourceManager that a `yarn-site.xml` names.

    Raises:
        OSError: the file cannot be read.
        xml.etree.ElementTree.ParseError: it is no XML.
        ValueError: it names none, or by a value that stands elsewhere.
    """
    values = _values(file)
    names = values.get(f"{_NAME}.ha.rm-ids", "").split(",")
    found = []
    for suffix in [f".{name.strip()}" if name else "" for name in names]:
        host = values.get(f"{_NAME}.hostname{suffix}")
        address = values.get(f"{_NAME}.address{suffix}") or (host and f"{host}:{_PORT}")
        if not address:
            raise ValueError(f"{file}: names no {_NAME}.address{suffix}")
        known = _REFERENCE.sub(lambda named: values.get(named[1], named[0]), address)
        if _REFERENCE.search(known):
            raise ValueError(f"{file}: {_NAME}.address{suffix}={address} stands elsewhere")
        found.append(known)
    return found


def configured_file_system() -> str:
    """Return where Spark looks for a path without a scheme, as `hdfs://namenode:8020`; "": on mounted ones.

    What spark-defaults.conf may say instead is not looked at.
    """
    folder = _folder()
    if folder is None:
        return ""
    with suppress(OSError, ElementTree.ParseError):
        named = _values(folder / CORE).get("fs.defaultFS", "")
        return "" if named.startswith("file:") else named
    return ""


def _folder() -> Path | None:
    return next((Path(os.environ[name]) for name in FOLDERS if os.environ.get(name)), None)


def _values(file: Path) -> dict[str, str]:
    return {one.findtext("name", ""): one.findtext("value", "").strip() for one in ElementTree.parse(file).getroot()}


def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), ANSWERS_S):
            return True
    except OSError:
        return False
