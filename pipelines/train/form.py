"""The form of a training: values that take the place of those of the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from configs.errors import SettingsError

Section = TypeVar("Section", bound=BaseModel)


def with_form_values(section: Section, name: str, form: Mapping[str, Any]) -> Section:
    """Return a copy of a section of the settings with the values of a form in place of its own, all of them validated.

    Args:
        section: of the settings, a pydantic model; stays as it is.
        name: of the section, for messages.
        form: keys of the section and their new values.

    Raises:
        SettingsError: an unknown key or a wrong value; the message has a line for each, with what is expected.
    """
    try:
        return type(section).model_validate({**section.model_dump(), **form})
    except ValidationError as error:
        lines = [f"{name}.{'.'.join(map(str, e['loc']))}={e['input']!r}: {e['msg']}." for e in error.errors()]
        raise SettingsError("\n".join(lines)) from None
