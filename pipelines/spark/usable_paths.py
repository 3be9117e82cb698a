"""Which folders a checkout and `var` may lie in: what JVM options, class paths and Kafka's properties can hold."""

from __future__ import annotations

import re
from pathlib import Path

from configs.errors import SettingsError
from configs.settings import ROOT

# JVM options are split at blanks, class paths at colons, quotes and % mean something to Spark, and a JVM knows letters
# beyond ASCII only where the locale says how they are written. The Makefile has the same letters.
_NOT_OF_CLONE = re.compile(r"[^A-Za-z0-9/._+@=~-]")
# Kafka reads its properties as Latin-1, splits the list of its folders at commas, and takes a backslash away.
_NOT_OF_VAR = re.compile(r"[^ -~]|[,\\]")


def clone_fault(root: Path) -> str:
    """Return why a checkout cannot lie in this folder, with the remedy; empty where it can."""
    if (found := _NOT_OF_CLONE.search(str(root))) is None:
        return ""
    return (
        f"the path {root} holds {found[0]!r}, and options of Spark's JVMs can hold letters of ASCII, digits and "
        "/ . _ + @ = ~ - alone. Clone into another folder."
    )


def var_fault(var: Path) -> str:
    """Return why this folder cannot be `var` of an embedded broker, with the remedy; empty where it can."""
    if (found := _NOT_OF_VAR.search(str(var))) is None:
        return ""
    return (
        f"TIDECAST_VAR={var} holds {found[0]!r}, and Kafka would write beside it: it can be told of ASCII alone, "
        "without commas and backslashes. Set TIDECAST_VAR to another folder."
    )


def refuse_unusable(var: Path, broker: bool) -> None:
    """Refuse the folder of this checkout, or `var` of an embedded broker, where services cannot be told of it.

    Raises:
        SettingsError: one of them holds a letter that it may not.
    """
    if fault := clone_fault(ROOT) or (var_fault(var) if broker else ""):
        raise SettingsError(fault)
