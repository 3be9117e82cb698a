"""The JSON schema of contracts, for editors and for a team's own checks; its words are those of the sections."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pydantic import BaseModel

from configs.contract import LEAST_BUDGET, Contract
from tidecast.fields import JOB_NAME

_ENTRY = re.compile(r"    (?P<names>\w+(?:, \w+)*): (?P<text>.+)")


def contract_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a contract's file, with what each key means as its description.

    It refuses what a value alone shows to be wrong, but for the name of a time zone; that, and what follows from
    several together, `load_contract` tells.
    """
    schema = Contract.model_json_schema()
    _describe(schema, Contract)
    for section in _sections(Contract):  # others have one sentence, which pydantic takes over
        _describe(schema["$defs"][section.__name__], section)
    schema["properties"]["error_budget"]["minimum"] = LEAST_BUDGET
    schema["properties"]["job"]["pattern"] = f"^{JOB_NAME.pattern.pattern}$"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "A Tidecast job's contract",
        "required": ["job"],
    }  # fmt: skip


def _sections(of: type[BaseModel]) -> set[type[BaseModel]]:
    """The sections below a section, at any depth."""
    found: set[type[BaseModel]] = set()
    for field in of.model_fields.values():
        for part in _types(field.annotation):
            if inspect.isclass(part) and issubclass(part, BaseModel):
                found |= {part} | _sections(part)
    return found


def _types(annotation: Any) -> list[Any]:
    inner = getattr(annotation, "__args__", ())
    return [annotation, *(one for part in inner for one in _types(part))]


def _describe(schema: dict[str, Any], section: type[BaseModel]) -> None:
    """Give a section its first sentence, and each of its keys what the docstring says of the attribute."""
    said, _, attributes = (inspect.getdoc(section) or "").partition("\n\nAttributes:\n")
    schema["description"] = said.split("\n\n")[0].replace("\n", " ")
    keys = {name: field.alias or name for name, field in section.model_fields.items()}
    for names, text in _entries(attributes):
        for name in names.split(", "):
            schema["properties"][keys[name]]["description"] = text.replace("None", "left out")


def _entries(attributes: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in attributes.splitlines():
        if entry := _ENTRY.fullmatch(line):
            found.append((entry["names"], entry["text"]))
        elif found and line.startswith("        "):
            names, text = found.pop()
            found.append((names, f"{text} {line.strip()}"))
    return found
